"""Every numeric setting has a range, and a value outside of it is one line that names it."""

import dataclasses
import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.config.ranges import Range, check_ranges, shown, types_of
from redraft.config.toml import build, override
from redraft.editing.decoding import DecodingConfig
from redraft.errors import ConfigError
from redraft.models.config import AutoencoderConfig, EditNetworkConfig
from redraft.text.edit_encoder import EditEncoderConfig
from redraft.text.token_encoder import TokenEncoderConfig
from redraft.training import editor_config, retriever_config
from redraft.training.augmentation import AugmentationConfig
from redraft.training.editor_config import EditorConfig, PrototypesConfig
from redraft.training.fit import FitOptions, check_settings
from redraft.training.retriever_config import RetrieverConfig
from redraft.training.schedule import AdamConfig, TrainingConfig

CONFIGS = (
    AugmentationConfig,
    AutoencoderConfig,
    DecodingConfig,
    EditNetworkConfig,
    EditEncoderConfig,
    EditorConfig,
    TokenEncoderConfig,
    PrototypesConfig,
    RetrieverConfig,
    AdamConfig,
    TrainingConfig,
)


def numeric_settings() -> Iterator[tuple[type, str, type, Range]]:
    """Every numeric field of every config, with its type and its range."""
    for config in CONFIGS:
        for name, (kind, allowed) in types_of(config).items():
            if kind in (int, float):
                assert allowed is not None, f"{config.__name__}.{name} has no range"
                yield config, name, kind, allowed


def outside(kind: type, allowed: Range) -> Iterator[int | float]:
    """Values that a setting must not have, at its ends and far beyond them."""
    step = 1 if kind is int else 1e-3
    yield from (allowed.low if allowed.above else allowed.low - step, -(10**30))
    yield from (allowed.high if allowed.below else allowed.high + step * 2, 10**30, 10**400)
    if kind is float:
        yield from (math.nan, math.inf, -math.inf)


SETTINGS = list(numeric_settings())
IDS = [f"{config.__name__}.{name}" for config, name, _, _ in SETTINGS]


def test_the_table_has_every_config_that_a_file_reaches() -> None:
    reached = {EditorConfig, RetrieverConfig}
    for config in (EditorConfig, RetrieverConfig):
        kinds = (kind for kind, _ in types_of(config).values())
        reached |= {kind for kind in kinds if dataclasses.is_dataclass(kind)}
    assert reached == set(CONFIGS)
    assert len(SETTINGS) > 30


@pytest.mark.parametrize(("config", "name", "kind", "allowed"), SETTINGS, ids=IDS)
def test_a_number_outside_of_its_range_is_refused(
    config: type, name: str, kind: type, allowed: Range
) -> None:
    expected = f"x.toml: {name} is {{}}; expected {allowed.describe(kind)}"
    for value in outside(kind, allowed):
        with pytest.raises(ConfigError) as caught:
            build(config, {name: value}, where="x.toml")
        assert str(caught.value) == expected.format(shown(value))
        with pytest.raises(ConfigError, match=f"^{name} is "):  # in Python too
            config(**{name: value})


@pytest.mark.parametrize(("config", "name", "kind", "allowed"), SETTINGS, ids=IDS)
def test_a_truth_value_is_not_a_number(
    config: type,
    name: str,
    kind: type,
    allowed: Range,  # noqa: ARG001
) -> None:
    with pytest.raises(ConfigError) as caught:
        build(config, {name: True}, where="x.toml")
    assert str(caught.value) == f"x.toml: {name} must be of type {kind.__name__}, got bool"


@pytest.mark.parametrize(("config", "name", "kind", "allowed"), SETTINGS, ids=IDS)
def test_the_default_lies_in_the_range(config: Any, name: str, kind: type, allowed: Range) -> None:
    assert getattr(config(), name) in allowed
    assert type(getattr(config(), name)) is kind


def test_a_whole_number_becomes_a_float() -> None:
    rate = build(EditNetworkConfig, {"word_dropout": 1}, where="x.toml").word_dropout
    assert (rate, type(rate)) == (1.0, float)


@pytest.mark.parametrize(
    ("config", "values", "message"),
    [
        (EditNetworkConfig, {"width": 100}, "width is 100; make it a multiple of 8"),
        (AutoencoderConfig, {"encoder_layers": 0, "bag_of_words": False}, "an encoder needs"),
        (
            PrototypesConfig,
            {"cross_project": 0.6, "prototype_dropout": 0.6},
            "cross_project is 0.6 and prototype_dropout 0.6; make",
        ),
        (EditNetworkConfig, {"copying": "x" * 999}, f"copying is '{'x' * 38}…; choose one of"),
        (DecodingConfig, {"syntax": "x" * 999}, f"no syntax is called '{'x' * 38}… here"),
    ],
)
def test_settings_at_odds_name_the_file(config: type, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(config, values, where="x.toml")
    assert str(caught.value).startswith(f"x.toml: {message}")


def test_a_setting_of_a_file_is_refused_with_its_name_and_table() -> None:
    tables = {"editor": {"network": {"width": 0}}}
    options = FitOptions(tables, settings_file=Path("my.toml"))
    with pytest.raises(ConfigError) as caught:
        check_settings(60, options)
    expected = "my.toml: [editor]: network: width is 0; expected a whole number from 1 to 8,192"
    assert str(caught.value) == expected
    with pytest.raises(ConfigError) as caught:
        check_settings(60, FitOptions({"editor": {"network": 3}}, settings_file=Path("my.toml")))
    assert str(caught.value) == "my.toml: [editor]: network: expected a table of settings, got int"


def test_shipped_configs_lie_in_their_ranges() -> None:
    sizes = (1, 60, 4_999, 5_000, 1_000_000)
    editors: list[Any] = [
        editor_config.default_config(n, projects=p) for n in sizes for p in (1, 9)
    ]
    papers = [module.preset_config("paper", 1) for module in (editor_config, retriever_config)]
    for config in (*editors, *papers):
        for part in (config, *(getattr(config, each.name) for each in dataclasses.fields(config))):
            if dataclasses.is_dataclass(part):
                check_ranges(part)


# what TOML can hold
values = st.recursive(
    st.booleans()
    | st.integers()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.text()
    | st.just(datetime.date(2026, 1, 1)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)
names = st.sampled_from(
    [each.name for config in CONFIGS for each in dataclasses.fields(config)]
) | st.text(max_size=3)
tables = st.dictionaries(names, values | st.dictionaries(names, values, max_size=3), max_size=3)


@settings(deadline=None, max_examples=300)
@given(tables, st.sampled_from([EditorConfig(), RetrieverConfig()]))
def test_any_table_is_taken_or_refused_in_one_line(table: dict[str, Any], config: Any) -> None:
    try:
        taken = override(config, table, where="x.toml")
    except ConfigError as error:
        message = str(error)
        assert message.startswith("x.toml: ")
        assert len(message.splitlines()) == 1
        assert len(message) < 500
    else:
        check_ranges(taken)
