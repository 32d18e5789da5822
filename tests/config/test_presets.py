"""Presets: which one is chosen, that they list only differences, and that they can be built."""

from typing import Any

import pytest

from redraft.config import presets
from redraft.config.toml import build
from redraft.errors import ConfigError
from redraft.text.edit_encoder import EditEncoderConfig
from redraft.training.editor_config import EditorConfig, default_config
from redraft.training.retriever_config import RetrieverConfig
from redraft.training.schedule import TrainingConfig

DEFAULTS: dict[str, Any] = {"retriever": RetrieverConfig(), "editor": EditorConfig()}


@pytest.mark.parametrize(
    ("examples", "projects", "name"),
    [(1, 1, "few"), (4_999, 1, "few"), (5_000, 1, "many"), (60, 2, "projects")],
)
def test_the_data_choose_the_preset(examples: int, projects: int, name: str) -> None:
    assert presets.choose(examples, projects=projects) == name
    tables = presets.preset(name, examples)["editor"]
    expected = build(EditorConfig, tables, where="here")
    assert default_config(examples, projects=projects) == expected


@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_preset_lists_only_what_differs_from_the_defaults(name: str) -> None:
    for part, tables in presets.preset(name, presets.TYPICAL[name]).items():
        for table, values in tables.items():
            default = getattr(DEFAULTS[part], table)
            same = [key for key, value in values.items() if getattr(default, key) == value]
            assert not same, f"{part}.{table}"


@pytest.mark.parametrize("name", presets.PRESETS)
@pytest.mark.parametrize("examples", [1, 60, 5_000, 31_999, 32_000, 1_000_000])
def test_a_preset_can_be_built_for_any_number_of_examples(name: str, examples: int) -> None:
    for part, tables in presets.preset(name, examples).items():
        assert build(type(DEFAULTS[part]), tables, where=name)


def test_the_sizes_depend_on_the_defaults() -> None:
    assert TrainingConfig().batch_size == presets.BATCH_SIZE
    assert EditEncoderConfig().max_output_vocab == presets.MAX_OUTPUT_VOCAB


def test_examples_that_are_seen_a_few_times_need_no_dropout() -> None:
    assert "dropout" not in presets.many(31_999)["editor"]["network"]
    assert presets.many(32_000)["editor"]["network"]["dropout"] == 0.0


def test_an_unknown_preset_is_one_line() -> None:
    message = "no preset is called 'huge'; choose one of: few, many, projects, paper"
    with pytest.raises(ConfigError, match=message):
        presets.preset("huge", 60)
