"""The page on scaling: its derived figures are right, and it shows what was measured last."""

import json

import pytest

from benchmarks.scaling import DOCS, Scale, partition_table, plan_table, tables

PAGE = DOCS / "scaling.md"


def stage(pairs: int, retriever: str, name: str, **figures: float) -> dict[str, object]:
    return {"pairs": pairs, "retriever": retriever, "stage": name, **figures}


MADE_UP = Scale(
    {
        "stages": [
            stage(100_000, "task", "index", default_embed_us_per_pair=300.0),
            stage(
                1_000_000, "task", "index", default_embed_us_per_pair=360.0, compress_seconds=36.0
            ),
            stage(100_000, "task", "fit", peak_mb=1_000.0, bytes_per_pair=900.0),
            stage(1_000_000, "task", "fit", peak_mb=1_900.0, bytes_per_pair=1_000.0),
            stage(100_000, "bm25", "fit", bytes_per_pair=300.0),
            stage(1_000_000, "bm25", "fit", bytes_per_pair=300.0),
        ]
    }
)


def cells(table: str) -> dict[str, list[str]]:
    """The lines of a table by their first cell."""
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return {line[0].strip(): line[1:] for line in lines}


def test_a_plan_takes_what_a_pair_took_at_the_largest_size() -> None:
    plan = cells(plan_table(MADE_UP))
    # 360 µs a pair are 100 core hours for 10⁹ pairs, and 16 cores do 384 of them in a day
    assert plan["embed it"] == ["360", "100", "0.26", "5"]
    assert plan["index its vector"][1] == "10"
    assert plan["**all of it**"][-3:] == ["110", "0.29", "6"]
    assert "mine it" not in plan  # it was not measured


def test_a_partition_goes_on_along_the_line_of_the_two_largest_sizes() -> None:
    table = cells(partition_table(MADE_UP))
    there = (1_900 + 9_000_000 * 900 / 900_000) / 1024
    assert table["memory of fit, learned"] == ["1.86 GB", "1,049 bytes", f"{there:.1f} GB"]
    assert table["disk of a model with a learned retriever"][1:] == [
        "1,000 bytes",
        "10.0 GB; all 100 of them 100 a month",
    ]


@pytest.mark.parametrize(
    "name", ["costs", "answers", "memory", "store", "workers", "bulk", "bm25", "plan"]
)
def test_the_page_shows_what_was_kept(name: str) -> None:
    made = tables(json.loads((DOCS / "scaling.json").read_text(encoding="utf-8")))
    assert f"<!-- table: scaling, {name} -->\n{made[name]}<!--" in PAGE.read_text(encoding="utf-8")
