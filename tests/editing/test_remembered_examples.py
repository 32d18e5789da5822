"""An editor that foresees what followed like states in the nearest examples."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from redraft import Example, RetrieveAndEdit
from redraft.config import override
from redraft.data.edit_numbers import EditNumbering, EditNumberingConfig
from redraft.data.vocabulary import END_NUMBER, START_NUMBER
from redraft.editing.beam_search import Hypothesis
from redraft.editing.candidate import Candidate
from redraft.editing.draft import Draft
from redraft.editing.explanation import explain
from redraft.editing.known_outputs import follow
from redraft.editing.neural_draft import Words
from redraft.editing.neural_editor import DecodingConfig, NeuralEditor
from redraft.editing.remembering import AT_ONCE, remember
from redraft.models.edit_network import EditNetworkConfig
from redraft.models.ngram_cache import NgramCache
from redraft.models.state_cache import StateCache
from redraft.retrieval.lexical import LexicalRetriever
from redraft.retrieval.prototype import Prototype
from redraft.training.prototypes import NoPrototypes
from redraft.training.train_editor import EditorConfig, train_editor
from tests.greetings import NAMES, greeter, greeting, settings

X = {"text": "greet Zorblax"}
ASKED = [f"greet {name}" for name in ("Zorblax", "Quux42", "straße")]
NEAR = [Prototype(greeting(name), 0.1 * at) for at, name in enumerate(NAMES[:3])]
ODD = Prototype(Example(X, 'print("hello Wonderful")'), 0.4)  # a word that nothing else has
FAR = Prototype(Example({"text": "far"}, "alpha beta gamma delta epsilon"), 0.9)
ALONE = 30.0
"""A pull by which hardly anything but the state cache is heard."""


def remembering(
    *, remembered: int, prototypes: int = 1, pull: float = 0.0, editor: NeuralEditor | None = None
) -> NeuralEditor:
    """The greeter's editor, or another; the higher the pull, the more it trusts what it knows."""
    editor = editor or plain()
    decoding = replace(editor.decoding, remembered=remembered, prototypes=prototypes)
    state_cache = replace(StateCache(), share=StateCache.share + pull)
    return replace(editor, decoding=decoding, state_cache=state_cache)


def plain() -> NeuralEditor:
    editor = greeter().editor
    assert isinstance(editor, NeuralEditor)
    return editor


@cache
def several() -> NeuralEditor:
    """An ensemble of the greeter's network and of one that differs somewhat."""
    learned = plain()
    other = NeuralEditor.build(learned.numbering, learned.network.config, learned.decoding)
    other.network.requires_grad_(False).eval()
    other.network.load_state_dict(learned.network.state_dict())
    generator = torch.Generator().manual_seed(0)
    for each in other.network.parameters():
        each.add_(0.02 * torch.randn(each.shape, generator=generator))
    return NeuralEditor.together([learned, other])


def log_probs(draft: Draft, prefix: str) -> dict[str, float]:
    return {each.token: each.log_prob for each in draft.complete(prefix, k=10_000)}


def assert_alike(one: list[Candidate], other: list[Candidate]) -> None:
    assert [each.output for each in one] == [each.output for each in other]
    assert [each.prototype for each in one] == [each.prototype for each in other]
    assert [each.provenance for each in one] == [each.provenance for each in other]
    expected = pytest.approx([each.log_prob for each in other], abs=1e-4)
    assert [each.log_prob for each in one] == expected


def test_as_many_prototypes_are_wanted_as_are_read_or_remembered() -> None:
    assert remembering(remembered=7).wants(1) == 7
    assert remembering(remembered=1, prototypes=3).wants(1) == 3
    assert remembering(remembered=0).wants(1) == 1
    both = remembering(remembered=4).with_cache(NgramCache())
    assert both.with_decoding(replace(both.decoding, cached=6)).wants(1) == 6
    assert both.with_decoding(replace(both.decoding, cached=2)).wants(1) == 4
    question = remembering(remembered=2).question(X, [*NEAR, FAR])
    assert (question.groups, question.cached) == ([NEAR[:1]], [])
    assert question.remembered == NEAR[:2]
    assert remembering(remembered=0).question(X, NEAR).remembered == []


def test_a_remembered_example_is_read_with_the_nearest_of_the_others() -> None:
    editor = remembering(remembered=3)
    question = editor.question(X, [*NEAR, FAR])
    words, tokenize = Words(editor.numbering, question.unknown), editor.numbering.tokenize_output
    others = [NEAR[1], NEAR[0], NEAR[0]]
    edits = question.edits[0].remembered
    for edit, own, other in zip(edits, NEAR, others, strict=True):
        assert words.tokens(edit.target[1:-1]) == tokenize(own.example.y)
        assert (edit.target[0], edit.target[-1]) == (START_NUMBER, END_NUMBER)
        assert words.tokens(edit.sources[1][:-1]) == tokenize(other.example.y)


def test_every_word_is_remembered_with_the_state_that_it_followed_there() -> None:
    editor = remembering(remembered=3)
    found = [[NEAR[0], FAR], [], [*NEAR]]
    questions = [editor.question(X, row) for row in found]
    with torch.inference_mode():
        remembered = remember(editor, questions)
        for row, question in enumerate(questions):
            at = 0
            for rank, edit in enumerate(question.edits[0].remembered):
                batch = editor.batch([edit])
                encoded = editor.network.encode(batch, generator=None)
                read, _ = editor.network.read(encoded, batch.target.ids[:, :-1])
                there = slice(at, at + len(edit.target) - 1)
                assert remembered.ids[row, there].tolist() == edit.target[1:]
                assert set(remembered.ranks[row, there].tolist()) == {rank}
                expected = read.states[0] / read.states[0].norm(dim=1, keepdim=True)
                torch.testing.assert_close(remembered.states[row, there], expected)
                at = there.stop
            assert not remembered.ids[row, at:].any()


@pytest.mark.parametrize("prefix", ["", "print", 'print("hello', 'print("hel', "alpha beta gam"])
@pytest.mark.parametrize("prototypes", [1, 2])
@pytest.mark.parametrize("members", [1, 2])
def test_all_that_may_follow_has_a_chance_of_one(
    prefix: str, prototypes: int, members: int
) -> None:
    editor = plain() if members == 1 else several()
    asked = remembering(remembered=4, prototypes=prototypes, editor=editor)
    found = asked.begin(X, [*NEAR, ODD, FAR]).complete(prefix, k=10_000)
    total = math.fsum(math.exp(each.log_prob) for each in found)
    assert total == pytest.approx(1, abs=1e-4)


def test_a_word_that_only_a_remembered_example_has_is_a_completion() -> None:
    prefix, found = 'print("hello', [*NEAR, ODD]
    before = log_probs(remembering(remembered=3).begin(X, found), prefix)
    after = log_probs(remembering(remembered=4).begin(X, found), prefix)
    assert "Wonderful" not in before
    assert after["Wonderful"] > math.log(0.01)
    sure = remembering(remembered=4, pull=ALONE).begin(X, found)
    assert sure.complete(prefix, k=1)[0].token == "Wonderful"
    within = sure.complete(prefix + " Wond", k=1)[0]
    assert within.token == "Wonderful"
    assert within.log_prob == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("prototypes", [1, 2])
@pytest.mark.parametrize("members", [1, 2])
def test_what_is_remembered_comes_from_its_example(prototypes: int, members: int) -> None:
    editor = plain() if members == 1 else several()
    asked = remembering(remembered=4, prototypes=prototypes, pull=ALONE, editor=editor)
    ((best,),) = asked.edit([X], [[*NEAR, ODD]])
    assert best.output == ODD.example.y
    assert {token.origin for token in best.provenance} == {"prototype"}
    assert best.prototype == ODD
    ((best,),) = editor.edit([X], [[*NEAR, ODD]])
    assert best.output != ODD.example.y
    assert best.prototype in NEAR


def test_what_is_heard_little_changes_neither_the_answer_nor_its_origins() -> None:
    found = [*NEAR, ODD]
    ((expected,),) = plain().edit([X], [found])
    ((best,),) = remembering(remembered=4, pull=-5.0).edit([X], [found])
    assert best.output == expected.output
    assert best.provenance == expected.provenance
    assert best.prototype == NEAR[0]


def test_an_end_that_is_remembered_makes_no_example_the_source() -> None:
    editor = remembering(remembered=2, pull=ALONE)
    question = editor.question(X, [NEAR[0], FAR])
    edit = question.edits[0]
    second = replace(edit, remembered=edit.remembered[1:])  # it has no such word
    question = replace(question, remembered=[FAR], edits=[second])
    (hello,) = Words(editor.numbering, question.unknown).read(["hello"])
    with torch.inference_mode():
        found = [(question, [Hypothesis((hello, END_NUMBER), -1.0, -1.0)])]
        ((best,),) = explain(editor, found, remember(editor, [question]))
    assert (best.output, best.prototype) == ("hello", NEAR[0])


def test_what_was_looked_up_is_not_said_to_be_remembered() -> None:
    editor = remembering(remembered=2, pull=ALONE).with_cache(NgramCache().requires_grad_(False))
    editor = editor.with_decoding(replace(editor.decoding, cached=2))
    question = editor.question(X, [NEAR[0], FAR])
    words = Words(editor.numbering, question.unknown).read(["alpha", "beta", "print", "("])
    hypothesis = Hypothesis((*words, END_NUMBER), -1.0, -1.0)
    sources = []
    for pull in (0.0, 1000.0):
        assert editor.cache is not None
        editor.cache.shares.add_(pull)
        with torch.inference_mode():
            remembered = remember(editor, [question])
            ((best,),) = explain(editor, [(question, [hypothesis])], remembered)
        assert {token.origin for token in best.provenance} == {"prototype"}
        sources.append(best.prototype)
    assert sources == [FAR, NEAR[0]]  # nothing is left of what was remembered: that which is read


@pytest.mark.parametrize("prototypes", [1, 3])
@pytest.mark.parametrize("pull", [0.0, ALONE])
def test_the_log_probability_is_that_of_the_words_one_after_the_other(
    prototypes: int, pull: float
) -> None:
    editor = remembering(remembered=4, prototypes=prototypes, pull=pull)
    inputs = [{"text": text} for text in ASKED]
    found = greeter().retriever.retrieve(inputs, editor.wants(1))
    ranked = editor.edit(inputs, found)
    answers = [Example(x, best.output) for x, (best,) in zip(inputs, ranked, strict=True)]
    total = torch.zeros(len(answers))
    for step in follow(editor, answers, found):
        total[step.rows] += step.expected.gather(1, step.tokens[:, None])[:, 0]
    for (best,), expected in zip(ranked, total.tolist(), strict=True):
        assert best.log_prob == pytest.approx(expected, abs=1e-4)
        assert "".join(token.text for token in best.provenance) == best.output


@pytest.mark.parametrize("prototypes", [1, 2])
@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("pull", [0.0, ALONE])
def test_rows_of_a_batch_are_answered_as_they_would_be_alone(
    prototypes: int, members: int, pull: float
) -> None:
    editor = plain() if members == 1 else several()
    editor = remembering(remembered=4, prototypes=prototypes, pull=pull, editor=editor)
    found = [[*NEAR, ODD, FAR], [FAR], [], NEAR[:2], [ODD, *NEAR]]
    inputs = [X, X, X, {"text": "greet Ada and Boole7"}, {"text": "greet straße"}]
    for at, ranked in enumerate(editor.edit(inputs, found, k=3)):
        (alone,) = editor.edit(inputs[at : at + 1], found[at : at + 1], k=3)
        assert_alike(ranked, alone)


def test_more_examples_than_are_read_side_by_side_are_remembered_alike() -> None:
    many = [Prototype(greeting(f"name{at}"), float(at)) for at in range(AT_ONCE)]
    editor = remembering(remembered=AT_ONCE + 1, pull=ALONE)
    for found in ([ODD, *many], [*many, ODD]):
        ((best,),) = editor.edit([X], [found])
        assert best.output == ODD.example.y
        assert best.prototype == ODD


def test_candidates_differ_and_come_in_order() -> None:
    editor = remembering(remembered=4, pull=ALONE)
    (ranked,) = editor.edit([X], [[*NEAR, ODD]], k=4)
    assert {each.output for each in ranked} == {each.example.y for each in [*NEAR, ODD]}
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)
    for each in ranked:
        assert each.prototype is not None
        assert each.prototype.example.y == each.output


def test_outputs_can_be_drawn_at_random() -> None:
    editor, found = remembering(remembered=4, pull=ALONE), [[*NEAR, ODD]] * 2
    one, other = (
        editor.edit([X, X], found, k=3, generator=torch.Generator().manual_seed(0))
        for _ in range(2)
    )
    assert one == other
    assert all(each.log_prob is not None for row in one for each in row)


@pytest.mark.parametrize("prototypes", [1, 2])
def test_what_is_not_asked_to_remember_answers_as_before(prototypes: int) -> None:
    found, inputs = [[*NEAR, ODD, FAR]] * 3, [{"text": text} for text in ASKED]
    without = plain().with_decoding(replace(plain().decoding, prototypes=prototypes))
    editor = remembering(remembered=0, prototypes=prototypes, pull=ALONE)
    assert editor.wants(2) == without.wants(2)
    assert editor.edit(inputs, found, k=2) == without.edit(inputs, found, k=2)
    completed = editor.begin(X, found[0]).complete('print("', k=50)
    assert completed == without.begin(X, found[0]).complete('print("', k=50)


def test_an_input_for_which_nothing_is_found_is_answered_as_before() -> None:
    editor = remembering(remembered=4, pull=ALONE)
    assert editor.question(X, []).remembered == []
    assert editor.edit([X], [[]], k=2) == plain().edit([X], [[]], k=2)


def test_an_editor_that_reads_no_prototype_and_is_given_none_remembers_nothing() -> None:
    config = override(EditorConfig(), settings(20)["editor"], where="test")
    config = override(config, {"numbering": {"prototypes": 0}}, where="test")
    with TemporaryDirectory() as folder:
        editor = train_editor(
            [greeting(name) for name in NAMES],
            NoPrototypes(),
            config,
            judge=lambda _: {},
            folder=Path(folder),
        )
    inputs = [{"text": text} for text in ASKED]
    asked = remembering(remembered=3, pull=ALONE, editor=editor)
    assert asked.edit(inputs, [[]] * 3) == editor.edit(inputs, [[]] * 3)
    assert asked.begin(X, []).complete("print") == editor.begin(X, []).complete("print")


@pytest.mark.parametrize("prefix", ["", 'print("hello', "new = new2; new"])
def test_a_draft_may_be_asked_in_any_order(prefix: str) -> None:
    found = [*NEAR, ODD]
    used, fresh = (remembering(remembered=4).begin(X, found) for _ in range(2))
    for earlier in ("print", 'print("hello Wonderful', "unheard of = 1; unheard", 'print("hello'):
        used.complete(earlier, k=3)
    assert log_probs(used, prefix) == pytest.approx(log_probs(fresh, prefix), abs=1e-4)


def test_the_rest_of_a_line_is_completed_by_what_is_remembered() -> None:
    draft = remembering(remembered=4, pull=ALONE).begin(X, [*NEAR, ODD])
    assert draft.complete('print("hello', k=1)[0].text == ' Wonderful")'


@cache
def speller() -> NeuralEditor:
    """An untrained editor that writes in parts and pieces what it can neither write nor copy."""
    examples = [Example({"text": f"say {word}"}, word) for word in ("abc", "abd", "bcd", "cab")]
    numbering = EditNumbering.learn(examples, EditNumberingConfig(min_count=3, pieces=30))
    config = EditNetworkConfig(
        word_width=8, slot_width=4, width=8, heads=2, encoder_layers=1, decoder_layers=1
    )
    torch.manual_seed(0)
    editor = NeuralEditor.build(numbering, config, DecodingConfig(max_length=12))
    editor.network.eval()
    return editor


def test_a_word_in_pieces_is_remembered_piece_by_piece() -> None:
    editor = remembering(remembered=2, pull=ALONE, editor=speller())
    x, spelled = {"text": "say it"}, Prototype(Example({"text": "say"}, "dcba"), 0.0)
    other = Prototype(Example({"text": "say"}, "abc"), 0.1)
    question = editor.question(x, [other, spelled])
    words = Words(editor.numbering, question.unknown)
    pieces = words.tokens(question.edits[0].remembered[1].target[1:-1])
    assert len(pieces) > 1
    assert all(each < editor.numbering.written for each in words.read(pieces))
    found = [other, spelled]
    alone = editor.edit([x], [found], k=2)
    together = editor.edit([x, X], [found, []], k=2)
    assert_alike(alone[0], together[0])
    assert all(each.prototype in found for each in alone[0])
    begun = editor.begin(x, found).complete("", k=10_000)
    assert math.fsum(math.exp(each.log_prob) for each in begun) == pytest.approx(1, abs=1e-4)


def test_a_saved_editor_still_remembers(tmp_path: Path) -> None:
    editor = remembering(remembered=4)
    model = RetrieveAndEdit(greeter().retriever, editor)
    model.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert isinstance(loaded.editor, NeuralEditor)
    assert loaded.editor.decoding.remembered == 4
    assert loaded.predict(ASKED, k=3) == model.predict(ASKED, k=3)
    prefixes = ["print(", 'print("hello', ""]
    assert loaded.complete(ASKED, prefixes) == model.complete(ASKED, prefixes)


def test_an_example_that_was_added_after_training_is_remembered() -> None:
    editor = remembering(remembered=4, pull=ALONE)
    before = LexicalRetriever.build([greeting(name) for name in NAMES[:9]])
    after = before.add([ODD.example])
    assert RetrieveAndEdit(before, editor).predict_one(X).output != ODD.example.y
    assert RetrieveAndEdit(after, editor).predict_one(X).output == ODD.example.y
    assert RetrieveAndEdit(after, plain()).predict_one(X).output != ODD.example.y
