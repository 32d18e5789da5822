"""The editor that learned, on networks so small that they are trained here."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from redraft import Candidate, RetrieveAndEdit
from redraft.data.example import Input
from redraft.data.tokenizer import spell
from redraft.editing import neural_editor
from redraft.editing.neural_editor import NeuralEditor
from redraft.errors import ConfigError
from redraft.models.edit_network import EditNetwork
from redraft.retrieval.prototype import Prototype
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
    """log p_edit(output | x, prototype) of each prototype, as the network has it."""
    numbering = editor.numbering
    groups = [[numbering.tokenize(prototype.example)] for prototype in prototypes]
    rows = numbering.number(
        numbering.tokenize_input(x), groups or [[]], numbering.tokenize_output(output)
    )
    return editor.network.log_likelihoods(editor.batch(rows)).sum(1)


def as_spelled(editor: NeuralEditor, candidate: Candidate) -> bool:
    """Whether its tokens are those that its text would be cut into."""
    tokens = editor.numbering.tokenize_output(candidate.output)
    return spell(tokens) == [token.text for token in candidate.provenance]


@pytest.mark.parametrize("retriever", ["task", "lexical", "none"])
def test_ten_pairs_teach_an_output_with_words_that_were_never_seen(retriever: str) -> None:
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
def test_the_log_probability_is_the_networks_own(k: int) -> None:
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
def test_the_traced_tokens_are_the_output_and_none_is_the_unknown_token(prototypes: int) -> None:
    asked = [*ASKED, "greet", "", "greet Ada Zorblax", "äöü !! 12 <unk>"]
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
    asked = [*ASKED, "greet Ada and Zorblax and Boole", "", *(f"greet {name}" for name in NAMES)]
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


def test_more_prototypes_than_there_are_is_all_of_them() -> None:
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


def test_where_nothing_is_retrieved_the_input_alone_is_answered_from() -> None:
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


def test_a_seed_draws_the_same_again_and_another_seed_something_else() -> None:
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


def test_a_known_confidence_comes_with_every_candidate() -> None:
    for ranked in greeter(30).predict(ASKED, k=3):
        assert all(0 < (candidate.confidence or 0) < 1 for candidate in ranked)


def test_words_can_begin_as_likely_as_they_are_frequent() -> None:
    taught = editor_of(greeter())
    config = replace(taught.network.config, expects_words=True)
    fresh = NeuralEditor.build(taught.numbering, config, taught.decoding)
    assert isinstance(fresh.network, EditNetwork)
    chances = fresh.network.write.bias.exp()
    counts = taught.numbering.vocabulary.counts[: taught.numbering.written]
    expected = torch.tensor(counts) + 0.5
    assert torch.allclose(chances / chances.sum(), expected / expected.sum(), atol=1e-6)


class Shouting:
    """Outputs without a small letter."""

    def begins(self, text: str) -> bool:
        return text == text.upper()

    def accepts(self, text: str) -> bool:
        return text.endswith(")") and self.begins(text)


def test_a_syntax_of_ones_own_is_kept_by_every_candidate() -> None:
    model = greeter()
    shouting = RetrieveAndEdit(model.retriever, editor_of(model).with_syntax(Shouting()))
    free, kept = model.predict(["greet ZORBLAX"], k=5)[0], shouting.predict(["greet ZORBLAX"], k=5)
    assert any(each.output != each.output.upper() for each in free)
    assert kept[0]
    assert all(Shouting().accepts(each.output) for each in kept[0])


def test_the_syntax_that_the_decoding_names_is_kept_by_every_candidate(tmp_path: Path) -> None:
    model = greeter()
    editor = editor_of(model)
    named = editor.with_decoding(replace(editor.decoding, syntax="python", beam_size=20))
    RetrieveAndEdit(model.retriever, named).save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    for ranked in loaded.predict(ASKED, k=20):
        assert len(ranked) > 1
        for candidate in ranked:
            compile(candidate.output, "an output", "exec")
    with pytest.raises(ConfigError, match="no syntax is called 'perl'"):
        replace(editor.decoding, syntax="perl")


class Only:
    """One output is valid, and a search is told so only when it ends."""

    def __init__(self, output: str) -> None:
        self.output = output

    def begins(self, text: str) -> bool:  # noqa: ARG002
        return True

    def accepts(self, text: str) -> bool:
        return text == self.output


def test_where_the_likeliest_leads_to_nothing_valid_the_search_widens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = greeter()
    editor = editor_of(model)
    unlikely = model.predict(["greet Ada"], k=12)[0][-1].output
    narrow = editor.with_decoding(replace(editor.decoding, beam_size=1))
    asking = RetrieveAndEdit(model.retriever, narrow.with_syntax(Only(unlikely)))
    assert [each.output for each in asking.predict(["greet Ada"])[0]] == [unlikely]
    monkeypatch.setattr(neural_editor, "WIDEST", 1)
    assert asking.predict(["greet Ada"]) == [[]]


class Impossible(Shouting):
    """Nothing is valid in the end."""

    def accepts(self, text: str) -> bool:  # noqa: ARG002
        return False


def test_where_nothing_is_valid_there_is_no_candidate() -> None:
    model = greeter()
    strict = RetrieveAndEdit(model.retriever, editor_of(model).with_syntax(Impossible()))
    assert strict.predict(["greet ZORBLAX", "greet ADA"]) == [[], []]
