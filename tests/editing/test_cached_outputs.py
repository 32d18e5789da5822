"""An editor with an n-gram cache over the nearest outputs and the output so far."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from redraft import Example, RetrieveAndEdit
from redraft.editing import neural_session
from redraft.editing.beam_search import Hypothesis
from redraft.editing.explanation import explain
from redraft.editing.forced_decoding import follow
from redraft.editing.neural import NeuralEditor
from redraft.editing.neural_session import RESERVED_OOVS, NeuralSession, Words
from redraft.editing.session import CompletionSession
from redraft.models.ngram_cache import OWN, NgramCache
from redraft.text.vocabulary import EOS_ID
from redraft.types import Prototype
from tests.greetings import NAMES, greeter, greeting

X = {"text": "greet Zorblax"}
ASKED = [f"greet {name}" for name in ("Zorblax", "Quux42", "straße")]
RUN = "alpha beta gamma delta epsilon"
NEAR = [Prototype(greeting(name), 0.1 * i) for i, name in enumerate(NAMES[:3])]
FAR = Prototype(Example({"text": "far"}, RUN), 0.9)
FARTHER = Prototype(Example({"text": "farther"}, f"gamma delta zeta {RUN}"), 1.0)


def caching(*, cached: int, prototypes: int = 1, pull: float = 0.0) -> NeuralEditor:
    """Return the greeter's editor with a cache; `pull` raises the weight of the cache."""
    editor = greeter().editor
    assert isinstance(editor, NeuralEditor)
    cache = NgramCache().requires_grad_(False)
    cache.shares.add_(pull)
    decoding = replace(editor.decoding, ngram_cache_neighbours=cached, prototypes=prototypes)
    return editor.with_decoding(decoding).with_cache(cache)


def log_probs(session: CompletionSession, prefix: str) -> dict[str, float]:
    return {each.token: each.log_prob for each in session.complete(prefix, k=10_000)}


def test_as_many_prototypes_are_wanted_as_are_read_or_cached() -> None:
    assert caching(cached=7).wants(1) == 7
    assert caching(cached=1, prototypes=3).wants(1) == 3
    assert caching(cached=7).with_cache(None).wants(1) == 1
    editor_input = caching(cached=2).editor_input(X, [*NEAR, FAR])
    assert (editor_input.groups, editor_input.cached) == ([NEAR[:1]], NEAR[:2])
    assert caching(cached=2).with_cache(None).editor_input(X, NEAR).cached == []


def test_an_oov_of_the_prefix_can_be_predicted_by_the_cache_alone() -> None:
    prefix = "qqqq = 1; xxxx = 2; qqqq = 1;"
    found = log_probs(caching(cached=2).start_session(X, NEAR), prefix)
    assert found["xxxx"] > found["qqqq"] > -math.inf
    assert "xxxx" not in log_probs(caching(cached=2).start_session(X, NEAR), "qqqq = 1;")
    assert "xxxx" not in log_probs(
        caching(cached=2).with_cache(None).start_session(X, NEAR), prefix
    )


def test_a_word_of_a_cached_output_is_predicted_after_its_context() -> None:
    session = caching(cached=4, pull=5.0).start_session(X, [*NEAR, FAR])
    assert session.complete("alpha beta gamma delta", k=1)[0].token == "epsilon"
    assert "epsilon" not in log_probs(
        caching(cached=3).start_session(X, [*NEAR, FAR]), "alpha beta"
    )


@pytest.mark.parametrize("prefix", ["", "alpha", "alpha beta gam", "new = new2; new", 'print("'])
@pytest.mark.parametrize("prototypes", [1, 2])
def test_the_probabilities_of_all_tokens_sum_to_one(
    prefix: str, prototypes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # completions leave out the unknown token, which has up to 0.002 of the probability here
    monkeypatch.setattr(neural_session, "SUPPRESSED", ())
    session = caching(cached=5, prototypes=prototypes).start_session(X, [*NEAR, FAR, FARTHER])
    found = session.complete(prefix, k=10_000)
    total = math.fsum(math.exp(each.log_prob) for each in found)
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("prefix", "token", "source"),
    [
        ("alpha beta gamma", "delta", FAR),  # the nearest of equals
        ("x y beta gamma delta", "epsilon", FAR),
        ("gamma delta zeta", "alpha", FARTHER),
        ("gamma delta zeta alpha beta gamma", "delta", FARTHER),  # the longest match
        ("gamma delta", "zeta", FARTHER),  # the start of an output counts as a word
        ("q gamma delta", "zeta", NEAR[0]),  # a match of two words is too short
        ("alpha beta gamma", ")", NEAR[0]),
        ("", "print", NEAR[0]),
    ],
)
def test_the_source_of_a_completion_is_the_cached_example_with_its_context(
    prefix: str, token: str, source: Prototype
) -> None:
    session = caching(cached=5).start_session(X, [*NEAR, FAR, FARTHER])
    (found,) = (each for each in session.complete(prefix, k=10_000) if each.token == token)
    assert found.prototype == source


def test_the_source_of_a_word_of_the_prefix_is_the_prototype_that_is_read() -> None:
    session = caching(cached=2).start_session(X, NEAR)
    completions = session.complete("one two three four five; one two three four", k=10_000)
    (found,) = (each for each in completions if each.token == "five")
    assert found.prototype == NEAR[0]


def test_completions_do_not_depend_on_the_new_words_of_earlier_prefixes() -> None:
    used = caching(cached=2).start_session(X, NEAR)
    for i in range(3 * RESERVED_OOVS):
        used.complete(f"word{i} = {i}; wo", k=1)
    prefix = "qqqq = 1; xxxx = 2; qqqq"
    fresh = caching(cached=2).start_session(X, NEAR)
    assert log_probs(used, prefix) == pytest.approx(log_probs(fresh, prefix), abs=1e-4)
    assert "word1" not in log_probs(used, "wo")


def test_new_words_beyond_the_reserved_ids_are_unknown() -> None:
    session = caching(cached=2).start_session(X, NEAR)
    assert isinstance(session, NeuralSession)
    prefix = [f"v{i}" for i in range(RESERVED_OOVS + 5)]
    ids = session.words.encode(prefix)
    assert session.words.tokens(ids) == [*prefix[:RESERVED_OOVS], *["<unk>"] * 5]
    assert len(set(ids)) == RESERVED_OOVS + 1
    assert all(math.isfinite(each) for each in log_probs(session, " ".join(prefix)).values())


@pytest.mark.parametrize("prototypes", [1, 3])
def test_the_log_probability_is_that_of_the_mixture_with_the_cache(prototypes: int) -> None:
    editor = caching(cached=4, prototypes=prototypes)
    found = greeter().retriever.retrieve([{"text": text} for text in ASKED], editor.wants(1))
    ranked = editor.edit([{"text": text} for text in ASKED], found)
    answers = [
        Example({"text": text}, best.output) for text, (best,) in zip(ASKED, ranked, strict=True)
    ]
    assert editor.cache is not None
    total = torch.zeros(len(answers))
    for step in follow(editor, answers, found):
        mixed = editor.cache.mix(step.expected, step.cache)
        total[step.rows] += mixed.gather(1, step.tokens[:, None])[:, 0]
    for (best,), expected in zip(ranked, total.tolist(), strict=True):
        assert best.log_prob == pytest.approx(expected, abs=1e-4)
        assert "".join(token.text for token in best.provenance) == best.output


@pytest.mark.parametrize("prototypes", [1, 2])
def test_a_token_of_the_cache_has_the_origin_prototype(
    prototypes: int,
) -> None:
    editor = caching(cached=4, prototypes=prototypes, pull=30.0)  # nearly the cache alone
    assert editor.cache is not None
    editor.cache.ranks[:2] = editor.cache.ranks[OWN] = -20.0  # and of it the fourth output
    ((best,),) = editor.edit([X], [[*NEAR, FAR]])
    assert best.output == RUN
    assert {token.origin for token in best.provenance} == {"prototype"}


def test_a_token_of_the_cache_does_not_decide_the_prototype_of_the_others() -> None:
    near, other = NEAR[0], Prototype(Example({"text": "other"}, "something(else)"), 0.0)
    for found in ([near, other], [other, near]):
        editor = caching(cached=3, prototypes=2)
        editor_input = editor.editor_input(X, [*found, FAR], reserved_oovs=0)
        epsilon = len(editor.encoding.vocabulary) + editor_input.oovs.index("epsilon")
        words = Words(editor.encoding, editor_input.oovs)
        tokens = words.encode(["print", "(", '"', "hello", "epsilon", '"', ")"])
        assert tokens[4] == epsilon
        hypothesis = Hypothesis((*tokens, EOS_ID), -1.0, -1.0)
        with torch.inference_mode():
            ((best,),) = explain(editor, [(editor_input, [hypothesis])])
        assert best.output == 'print("hello epsilon")'
        assert best.prototype == near


def test_batching_does_not_change_answers() -> None:
    editor = caching(cached=5, prototypes=2)
    found = [[*NEAR, FAR, FARTHER], [FAR], [], NEAR[:2]]
    inputs = [{"text": "greet Zorblax"}, X, X, {"text": "greet Ada and Boole7"}]
    for at, ranked in enumerate(editor.edit(inputs, found, k=2)):
        (alone,) = editor.edit(inputs[at : at + 1], found[at : at + 1], k=2)
        assert [each.output for each in ranked] == [each.output for each in alone]
        assert [each.prototype for each in ranked] == [each.prototype for each in alone]
        assert [each.log_prob for each in ranked] == pytest.approx(
            [each.log_prob for each in alone], abs=1e-4
        )


def test_a_saved_editor_keeps_its_cache(tmp_path: Path) -> None:
    editor = caching(cached=6, pull=0.5)
    assert editor.cache is not None
    editor.cache.evidence.add_(torch.tensor([0.3, -0.2, 0.1, 0.2, -0.1]))
    model = RetrieveAndEdit(greeter().retriever, editor)
    model.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert isinstance(loaded.editor, NeuralEditor)
    assert loaded.editor.cache is not None
    assert loaded.editor.decoding.ngram_cache_neighbours == 6
    for name, each in editor.cache.state_dict().items():
        assert torch.equal(loaded.editor.cache.state_dict()[name], each)
    assert loaded.predict(ASKED, k=3) == model.predict(ASKED, k=3)
    prefixes = ["qqqq = 1; qqqq", 'print("', ""]
    assert loaded.complete(ASKED, prefixes) == model.complete(ASKED, prefixes)


def test_an_editor_without_a_cache_is_loaded_without_one(tmp_path: Path) -> None:
    greeter().save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert isinstance(loaded.editor, NeuralEditor)
    assert loaded.editor.cache is None
