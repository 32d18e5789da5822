"""The neural editor, on networks small enough to be trained in a test."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from redraft import Candidate, RetrieveAndEdit
from redraft.editing import neural as neural_editor
from redraft.editing.neural import NeuralEditor
from redraft.errors import ConfigError
from redraft.text.tokenizer import spell
from redraft.types import Input, Prototype
from tests.greetings import NAMES, greeter

NEW = ("Zorblax", "Quux42", "straße")
ASKED = [f"greet {name}" for name in NEW]


def editor_of(model: RetrieveAndEdit) -> NeuralEditor:
    assert isinstance(model.editor, NeuralEditor)
    return model.editor


def mixing(model: RetrieveAndEdit, prototypes: int) -> RetrieveAndEdit:
    editor = editor_of(model)
    decoding = replace(editor.decoding, prototypes=prototypes)
    return RetrieveAndEdit(model.retriever, editor.with_decoding(decoding))


@torch.inference_mode()
def likelihood(
    editor: NeuralEditor, x: Input, prototypes: list[Prototype], output: str
) -> torch.Tensor:
    """Return log p_edit(output | x, prototype) of each prototype, from the network alone."""
    encoding = editor.encoding
    groups = [[encoding.tokenize(prototype.example)] for prototype in prototypes]
    rows = encoding.encode(
        encoding.tokenize_input(x), groups or [[]], encoding.tokenize_output(output)
    )
    return editor.network.log_likelihoods(editor.batch(rows)).sum(1)


def as_spelled(editor: NeuralEditor, candidate: Candidate) -> bool:
    """Return True if the tokens are the tokenization of their text."""
    tokens = editor.encoding.tokenize_output(candidate.output)
    return spell(tokens) == [token.text for token in candidate.provenance]


@pytest.mark.parametrize("retriever", ["task", "lexical", "none"])
def test_ten_pairs_are_enough_to_learn_to_copy_new_words(retriever: str) -> None:
    model = greeter(retriever=retriever)
    for name in NEW:
        answer = model.predict_one(f"greet {name}")
        assert answer.output == f'print("hello {name}")'
        origins = {token.text.strip(): token.origin for token in answer.provenance}
        assert origins[name] == "input"
        assert answer.confidence is None  # too few pairs to learn it from
        if retriever == "none":
            assert answer.prototype is None
            assert "prototype" not in origins.values()
        else:
            assert answer.prototype in model.retriever.retrieve([{"text": f"greet {name}"}])[0]


@pytest.mark.parametrize("k", [1, 4])
def test_the_log_probability_is_that_of_the_network(k: int) -> None:
    model = greeter()
    editor = editor_of(model)
    for text, ranked in zip(ASKED, model.predict(ASKED, k), strict=True):
        found = model.retriever.retrieve([{"text": text}])[0]
        assert as_spelled(editor, ranked[0])
        for candidate in filter(lambda each: as_spelled(editor, each), ranked):
            expected = likelihood(editor, {"text": text}, found, candidate.output).item()
            assert candidate.log_prob == pytest.approx(expected, abs=1e-4)


def test_several_prototypes_are_mixed_by_their_retrieval_probabilities() -> None:
    model = mixing(greeter(), 3)
    editor = editor_of(model)
    for text, ranked in zip(ASKED, model.predict(ASKED), strict=True):
        found = model.retriever.retrieve([{"text": text}], 3)[0]
        weights = torch.tensor([prototype.log_weight for prototype in found]).log_softmax(0)
        each = weights + likelihood(editor, {"text": text}, found, ranked[0].output)
        assert ranked[0].log_prob == pytest.approx(each.logsumexp(0).item(), abs=1e-4)
        assert ranked[0].prototype is not None
        assert ranked[0].prototype.example == found[int(each.argmax())].example


@pytest.mark.parametrize("prototypes", [1, 3])
def test_the_traced_tokens_spell_the_output_without_unk(prototypes: int) -> None:
    asked = [*ASKED, "greet", "greet Ada Zorblax", "äöü !! 12 <unk>"]
    for ranked in mixing(greeter(), prototypes).predict(asked, k=5):
        assert ranked
        for candidate in ranked:
            assert "".join(token.text for token in candidate.provenance) == candidate.output
            assert "<unk>" not in candidate.output


def test_candidates_are_distinct_and_come_best_first() -> None:
    for ranked in greeter().predict(ASKED, k=5):
        assert 1 < len(ranked) <= 5
        assert len({candidate.output for candidate in ranked}) == len(ranked)
        scores = [candidate.score for candidate in ranked]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("prototypes", [1, 3])
def test_the_size_of_a_batch_changes_no_answer(
    prototypes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = mixing(greeter(), prototypes)
    asked = [*ASKED, "greet Ada and Zorblax and Boole", *(f"greet {name}" for name in NAMES)]
    together = model.predict(asked, k=2)
    for size in (1, 3):
        monkeypatch.setattr(neural_editor, "BATCH", size)
        for ones, others in zip(together, model.predict(asked, k=2), strict=True):
            assert [c.output for c in ones] == [c.output for c in others]
            assert [c.prototype and c.prototype.example for c in ones] == [
                c.prototype and c.prototype.example for c in others
            ]
            assert [c.log_prob for c in ones] == pytest.approx(
                [c.log_prob for c in others], abs=1e-4
            )


def test_mixing_more_prototypes_than_exist_mixes_all_of_them() -> None:
    model = greeter()
    assert [ranked[0].output for ranked in mixing(model, 50).predict(ASKED)] == [
        ranked[0].output for ranked in mixing(model, 10).predict(ASKED)
    ]


def test_inputs_with_different_numbers_of_prototypes_are_answered_together() -> None:
    model = mixing(greeter(), 3)
    found = model.retriever.retrieve([{"text": text} for text in ASKED], 3)
    inputs: list[Input] = [{"text": text} for text in ASKED]
    uneven = [found[0], found[1][:1], []]
    together = model.editor.edit(inputs, uneven)
    alone = [model.editor.edit([x], [p])[0] for x, p in zip(inputs, uneven, strict=True)]
    for ones, others in zip(together, alone, strict=True):
        assert ones[0].output == others[0].output
        assert ones[0].prototype == others[0].prototype
        assert ones[0].log_prob == pytest.approx(others[0].log_prob, abs=1e-4)


def test_without_prototypes_the_answer_depends_on_the_input_alone() -> None:
    model = greeter()
    (ranked,) = model.predict(["greet Zorblax"], where={"initial": "?"})
    assert ranked[0].prototype is None
    assert all(token.origin != "prototype" for token in ranked[0].provenance)
    empty = RetrieveAndEdit(model.retriever.remove(range(10)), model.editor)
    assert [c.output for c in empty.predict(["greet Zorblax"])[0]] == [c.output for c in ranked]


def test_a_saved_editor_answers_as_before(tmp_path: Path) -> None:
    model = greeter(30)
    model.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert loaded.predict(ASKED, k=3) == model.predict(ASKED, k=3)
    assert loaded.complete(ASKED, ['print("'] * 3) == model.complete(ASKED, ['print("'] * 3)
    assert loaded.sample(ASKED, k=2, seed=5) == model.sample(ASKED, k=2, seed=5)
    assert editor_of(loaded).confidence == editor_of(model).confidence


def test_equal_seeds_draw_equal_samples_and_other_seeds_others() -> None:
    model = greeter()
    drawn = [model.sample(ASKED, k=3, seed=seed) for seed in (1, 1, 2, 3, 4)]
    assert drawn[0] == drawn[1]
    assert any(drawn[0] != other for other in drawn[2:])
    for ranked in drawn[0]:
        assert len({candidate.output for candidate in ranked}) == len(ranked)


def test_a_wider_beam_finds_nothing_less_likely() -> None:
    model = greeter()
    editor = editor_of(model)
    found = []
    for size in (1, 8):
        tuned = editor.with_decoding(replace(editor.decoding, beam_size=size))
        answers = RetrieveAndEdit(model.retriever, tuned).predict(ASKED)
        found.append([ranked[0].log_prob or 0.0 for ranked in answers])
    assert all(wide >= greedy - 1e-6 for greedy, wide in zip(*found, strict=True))


def test_every_candidate_has_a_confidence_if_it_was_fitted() -> None:
    for ranked in greeter(30).predict(ASKED, k=3):
        assert all(0 < (candidate.confidence or 0) < 1 for candidate in ranked)


class Shouting:
    """Accepts outputs without lower-case letters."""

    def begins(self, text: str) -> bool:
        return text == text.upper()

    def accepts(self, text: str) -> bool:
        return text.endswith(")") and self.begins(text)


def test_every_candidate_satisfies_a_custom_syntax() -> None:
    model = greeter()
    shouting = RetrieveAndEdit(model.retriever, editor_of(model).with_syntax(Shouting()))
    free, kept = model.predict(["greet ZORBLAX"], k=5)[0], shouting.predict(["greet ZORBLAX"], k=5)
    assert any(each.output != each.output.upper() for each in free)
    assert kept[0]
    assert all(Shouting().accepts(each.output) for each in kept[0])


def test_every_candidate_satisfies_the_syntax_of_the_decoding_settings(tmp_path: Path) -> None:
    model = greeter()
    editor = editor_of(model)
    named = editor.with_decoding(replace(editor.decoding, syntax="python", beam_size=20))
    RetrieveAndEdit(model.retriever, named).save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    for ranked in loaded.predict(ASKED, k=20):
        assert len(ranked) > 1
        for candidate in ranked:
            ast.parse(candidate.output)  # not compile(), which warns about valid but odd code
    with pytest.raises(ConfigError, match="no syntax is called 'perl'"):
        replace(editor.decoding, syntax="perl")


class Only:
    """Accepts one output, and rejects no prefix."""

    def __init__(self, output: str) -> None:
        self.output = output

    def begins(self, text: str) -> bool:  # noqa: ARG002
        return True

    def accepts(self, text: str) -> bool:
        return text == self.output


def test_the_beam_widens_until_an_output_is_valid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = greeter()
    editor = editor_of(model)
    unlikely = model.predict(["greet Ada"], k=12)[0][-1].output
    narrow = editor.with_decoding(replace(editor.decoding, beam_size=1))
    asking = RetrieveAndEdit(model.retriever, narrow.with_syntax(Only(unlikely)))
    assert [each.output for each in asking.predict(["greet Ada"])[0]] == [unlikely]
    monkeypatch.setattr(neural_editor, "MAX_BEAM", 1)
    assert asking.predict(["greet Ada"]) == [[]]


class Impossible(Shouting):
    """Accepts no output."""

    def accepts(self, text: str) -> bool:  # noqa: ARG002
        return False


def test_without_a_valid_output_there_is_no_candidate() -> None:
    model = greeter()
    strict = RetrieveAndEdit(model.retriever, editor_of(model).with_syntax(Impossible()))
    assert strict.predict(["greet ZORBLAX", "greet ADA"]) == [[], []]
