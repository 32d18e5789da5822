"""Plots of systems side by side: well-formed, legible in light and dark, no label on another."""

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.lib.plots import (
    Estimate,
    completion_plot,
    distance_plot,
    growth_plot,
    spread,
)

NAMES = ("retrieve+edit", "seq2seq + suffix", "seq2seq + cache", "decoder-only", "seq2seq", "task")
ALIKE = {
    name: {k: Estimate(k / 2 + at / 100, k / 2 - 0.3, k / 2 + 0.3) for k in (1, 5, 10)}
    for at, name in enumerate(NAMES)
}
SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    """All that is written in a picture."""
    root = ElementTree.fromstring(picture)
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


def label_heights(picture: str) -> list[float]:
    """How far down each system's label stands."""
    root = ElementTree.fromstring(picture)
    labels = [each for each in root.iter(f"{SVG}text") if each.find(f"{SVG}tspan") is not None]
    return sorted(float(each.attrib["y"]) for each in labels)


def by_distance(count: int = 100) -> str:
    generator = np.random.default_rng(1)
    distances = generator.random(count)
    systems = {"retrieve+edit": 80 - 40 * distances, "seq2seq": 60 - 5 * distances}
    return distance_plot(distances, systems, metric="keys saved, in per cent")


def test_every_system_is_named_with_its_last_mean() -> None:
    written = texts(completion_plot(ALIKE))
    for at, name in enumerate(NAMES):
        assert f"{5 + at / 100:.2f} {name}" in written
    assert {"1", "5", "10"} <= set(written)


def test_labels_of_lines_that_end_together_stand_apart() -> None:
    heights = label_heights(completion_plot(ALIKE))
    assert len(heights) == len(NAMES)
    assert min(after - before for before, after in itertools.pairwise(heights)) >= 20


def test_a_point_has_a_whisker_over_its_interval_and_says_it() -> None:
    picture = completion_plot({"a<b>": {1: Estimate(2, 1, 3), 5: Estimate(4, 3, 6)}})
    root = ElementTree.fromstring(picture)
    whiskers = [each for each in root.iter(f"{SVG}path") if each.get("class") == "whisker"]
    assert len(whiskers) == 2
    hints = [each.text for each in root.iter(f"{SVG}title")]
    assert hints == ["a<b>, k = 1: 2.00 (1.00 – 3.00)", "a<b>, k = 5: 4.00 (3.00 – 6.00)"]
    low, high = re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", whiskers[0].attrib["d"])[0]
    assert float(low) > float(high)


def test_a_picture_loads_nothing_and_knows_light_and_dark() -> None:
    picture = by_distance()
    assert not re.search(r"url\(|@import|href|<script", picture)
    light, dark = picture.split("prefers-color-scheme: dark")
    assert ".paper { fill: #ffffff; }" in light
    assert ".paper { fill: #ffffff; }" not in dark
    assert ".group-12 .mark" in light
    assert ".group-12 .mark" in dark


def test_bins_of_the_distance_hold_about_as_many_examples() -> None:
    notes = [each for each in texts(by_distance()) if each.startswith("n = ")]
    counts = [int(each.removeprefix("n = ")) for each in notes]
    assert sum(counts) == 100
    assert max(counts) - min(counts) <= 1


def test_examples_without_a_distance_are_left_out() -> None:
    distances = [0.1, 0.2, float("nan"), float("inf")]
    written = texts(distance_plot(distances, {"a": [1, 2, 50, 50]}, metric="score"))
    assert "n = 2" in written
    assert "1.50 a" in written


def test_means_by_distance_are_those_of_the_bin_and_clusters_widen_them() -> None:
    distances, values = np.repeat([0.0, 1.0], 20), np.tile(np.repeat([1.0, 3.0], 10), 2)
    clusters = [str(at // 10) for at in range(40)]
    hints = []
    for given_clusters in (None, clusters):
        picture = distance_plot(distances, {"a": values}, metric="m", clusters=given_clusters)
        root = ElementTree.fromstring(picture)
        hints.append([each.text or "" for each in root.iter(f"{SVG}title")])
    assert all("2.00" in hint for hint in hints[0] + hints[1])
    assert all(hint.endswith("(1.00 – 3.00)") for hint in hints[1])
    assert not any(hint.endswith("(1.00 – 3.00)") for hint in hints[0])


def test_growth_is_drawn_in_powers_of_ten_and_equal_factors_are_equal_steps() -> None:
    figures = {"read": {10_000: 0.5, 100_000: 5.0, 1_000_000: 50.0}, "embed": {10_000: 2_000.0}}
    picture = growth_plot(figures, title="pairs", metric="seconds")
    written = texts(picture)
    assert {"10,000", "100,000", "1,000,000", "0.1", "10"} <= set(written)
    assert {"50.0 read", "2,000 embed"} <= set(written)
    root = ElementTree.fromstring(picture)
    assert not [each for each in root.iter(f"{SVG}path") if each.get("class") == "whisker"]
    lines = [each.attrib["points"] for each in root.iter(f"{SVG}polyline")]
    heights = [float(point.split(",")[1]) for point in lines[-1].split()]
    first, second = (after - before for before, after in itertools.pairwise(heights))
    assert first == pytest.approx(second, abs=0.2)
    assert first < 0


def test_what_cannot_be_plotted_is_refused() -> None:
    with pytest.raises(ValueError, match="seconds: powers of ten need figures above 0, got 0"):
        growth_plot({"read": {10: 0.0}}, title="pairs", metric="seconds")
    with pytest.raises(ValueError, match="no example has a distance"):
        distance_plot([float("nan")], {"a": [1.0]}, metric="m")
    with pytest.raises(ValueError, match="a has 1 values for 2 distances"):
        distance_plot([0.1, 0.2], {"a": [1.0]}, metric="m")
    with pytest.raises(ValueError, match="needs a system"):
        completion_plot({})


@given(st.dictionaries(st.text("<&é ", max_size=9), st.floats(-1e3, 1e3), min_size=1, max_size=15))
def test_any_values_make_a_picture(means: dict[str, float]) -> None:
    systems = {name: {1: Estimate(mean, mean - 1, mean)} for name, mean in means.items()}
    heights = label_heights(completion_plot(systems))
    assert all(after - before >= 20 for before, after in itertools.pairwise(heights))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=9))
def test_places_are_apart_within_the_ends_and_in_order(wanted: list[float]) -> None:
    placed = spread(wanted, gap=10, low=0, high=100)
    assert all(-1e-6 <= each <= 100 + 1e-6 for each in placed)
    ranked = sorted(placed)
    assert all(after - before >= 10 - 1e-6 for before, after in itertools.pairwise(ranked))
    for one, other in itertools.combinations(range(len(wanted)), 2):
        assert (placed[one] - placed[other]) * (wanted[one] - wanted[other]) >= 0


def test_places_that_are_apart_stay() -> None:
    assert spread([50, 10, 90], gap=10, low=0, high=100) == [50, 10, 90]
    assert spread([50, 50], gap=10, low=0, high=100) == [45, 55]
