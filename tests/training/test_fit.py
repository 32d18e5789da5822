"""Fitting: the dev split, validation, calibration and settings."""

from dataclasses import replace
from typing import Any

import pytest

from redraft import Example, RetrieveAndEdit
from redraft.editing.neural import NeuralEditor
from redraft.errors import ConfigError
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.training.fit import (
    RETRIEVER_SHARE,
    FitOptions,
    Split,
    after_retriever,
    check_settings,
    editor_config,
    time_left,
)
from redraft.training.fit_neural import prototype_source
from redraft.training.progress import Report
from tests.greetings import NAMES, greeting, settings

GREETINGS = [greeting(name) for name in NAMES]
FEW = FitOptions(settings(4))


def confidence(model: RetrieveAndEdit) -> object:
    assert isinstance(model.editor, NeuralEditor)
    return model.editor.confidence


def fit(examples: list[Example], options: FitOptions) -> RetrieveAndEdit:
    return RetrieveAndEdit.fit(examples, retriever="lexical", editor="neural", options=options)


def test_held_out_examples_are_indexed_in_the_end() -> None:
    parts = Split.of(GREETINGS, FEW)
    assert len(parts.dev) == 3
    model = fit(GREETINGS, FEW)
    assert list(model.retriever.examples) == GREETINGS
    for held_out in parts.dev:
        assert model.retriever.retrieve([held_out.x])[0][0].example == held_out


def test_confidence_takes_twenty_examples() -> None:
    assert confidence(fit(GREETINGS[:20], FEW)) is not None
    assert confidence(fit(GREETINGS[:19], FEW)) is None
    assert Split.of(GREETINGS[:19], FEW).dev == []


def test_the_users_own_dev_is_used_and_does_not_join() -> None:
    options = FitOptions(settings(4), dev=GREETINGS[:2])
    assert Split.of(GREETINGS[2:], options) == Split(GREETINGS[2:], GREETINGS[:2])
    model = fit(GREETINGS[2:], options)
    assert model.retriever.examples == GREETINGS[2:]
    assert len(confidence(model).held_out) == 2  # type: ignore[attr-defined]


def test_an_empty_dev_holds_out_nothing() -> None:
    model = fit(GREETINGS, FitOptions(settings(4), dev=[]))
    assert model.retriever.examples == GREETINGS
    assert confidence(model) is None


def test_the_parts_are_the_same_whatever_the_seed() -> None:
    one, other = (Split.of(GREETINGS, FitOptions(seed=seed)) for seed in (0, 1))
    assert one == other


def test_settings_reach_the_training_and_the_first_line_says_what_it_takes() -> None:
    told: list[str] = []
    heard: list[Report] = []
    fit(GREETINGS[:5], FitOptions(settings(3), on_step=heard.append, log=told.append))
    assert [(report.step, report.steps) for report in heard] == [(1, 3), (2, 3), (3, 3)]
    assert told == ["editor: training on 5 pairs, 0 held out, about 1 second"]


def test_the_budget_is_shared_by_retriever_and_editor() -> None:
    options = FitOptions(budget=100.0, seed=5)
    retriever, editor = options.run(share=RETRIEVER_SHARE), after_retriever(options).run()
    assert (retriever.budget, editor.budget) == (20.0, 80.0)
    assert retriever.seed == editor.seed == 5


@pytest.mark.parametrize(("option", "value"), [("seed", -1), ("budget", -1.0)])
def test_invalid_options_are_rejected_before_training(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{option} is -1; expected a"):
        check_settings(60, replace(FitOptions(), **{option: value}))


def test_small_datasets_train_longer_with_word_dropout() -> None:
    few, many = (editor_config(count, FitOptions()) for count in (500, 5_000))
    projects = editor_config(500, FitOptions(), projects=2)
    assert few.training.steps == 4 * projects.training.steps
    chosen = [
        (each.network.word_dropout > 0, each.decoding.syntax) for each in (few, many, projects)
    ]
    assert chosen == [(True, "auto"), (False, "any"), (False, "any")]
    assert [each.prototypes.prototype_dropout for each in (few, many, projects)] == [0.5, 0.0, 0.5]


def test_a_model_without_a_retriever_reads_no_prototype() -> None:
    model = RetrieveAndEdit.fit(GREETINGS[:5], retriever="none", editor="neural", options=FEW)
    assert isinstance(model.editor, NeuralEditor)
    assert model.editor.encoding.source_ids == 1
    assert model.predict_one("greet Ada").prototype is None


def drawn_without(absent: float, examples: list[Example]) -> int:
    options = FitOptions({"editor": {"prototypes": {"prototype_dropout": absent}}})
    config = editor_config(len(examples), options)
    source = prototype_source(BowRetriever.build(examples), examples, config)
    return source.draw(range(len(examples)), seed=0).count([])


def test_a_share_of_examples_is_trained_without_prototypes() -> None:
    assert drawn_without(0.0, GREETINGS) == 0
    assert 0 < drawn_without(0.5, GREETINGS) < len(GREETINGS)
    assert drawn_without(0.9, GREETINGS) > drawn_without(0.1, GREETINGS)


def test_invalid_shares_are_rejected() -> None:
    with pytest.raises(
        ConfigError, match=r"cross_project is 0\.1 and prototype_dropout 0\.95; make them shares"
    ):
        drawn_without(0.95, GREETINGS)
    with pytest.raises(ConfigError, match="prototype_dropout is -1"):
        drawn_without(-1, GREETINGS)


def test_more_of_a_small_set_is_held_out_to_judge_a_network() -> None:
    def held_out(count: int, *, judges: bool) -> int:
        examples = [Example({"text": str(i)}, str(i)) for i in range(count)]
        return len(Split.of(examples, FitOptions(), judges=judges).dev)

    assert [held_out(count, judges=False) for count in (200, 600, 2_000)] == [20, 60, 200]
    assert [held_out(count, judges=True) for count in (200, 600, 2_000)] == [40, 100, 200]


def test_the_newest_of_equal_inputs_comes_first_though_some_pairs_are_held_out() -> None:
    examples = [Example({"text": f"Question {i % 40}"}, f"answer {i}") for i in range(120)]
    examples += [Example({"text": f"asked once {i}"}, str(i)) for i in range(120)]
    parts = Split.of(examples, FitOptions(), judges=True)
    assert parts.dev
    assert all(example.x["text"].startswith("asked once") for example in parts.dev)
    assert len(parts.train) + len(parts.dev) == len(examples)
    retriever = Bm25Retriever.build(parts.train).add(parts.dev)
    for i in range(40):
        [[newest]] = retriever.retrieve([{"text": f"question {i}?"}], 1)
        assert newest.example.y == f"answer {80 + i}"


def test_no_time_is_left_of_no_limit_and_a_second_of_a_spent_budget() -> None:
    assert time_left(0.0, 50.0) == 0.0
    assert time_left(60.0, 20.0) == 40.0
    assert time_left(60.0, 70.0) == 1.0
