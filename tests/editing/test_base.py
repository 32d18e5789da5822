"""Tests of the verbatim editor."""

import math

from redraft.editing.base import VerbatimEditor
from redraft.types import Example, Prototype


def prototypes(*outputs: str) -> list[Prototype]:
    return [Prototype(Example({"text": y}, y), 0.1 + i) for i, y in enumerate(outputs)]


def test_verbatim_returns_the_outputs_of_the_prototypes_in_their_order() -> None:
    found = prototypes("a", "b")
    near, nothing = VerbatimEditor().edit([{"text": "x"}, {"text": "z"}], [found, []], k=2)
    assert [(c.output, c.score, c.prototype) for c in near] == [
        ("a", -0.1, found[0]),
        ("b", -1.1, found[1]),
    ]
    assert nothing == []


def test_verbatim_returns_at_most_k_candidates_without_probabilities() -> None:
    (ranked,) = VerbatimEditor().edit([{"text": "x"}], [prototypes("a", "b")])
    assert [candidate.output for candidate in ranked] == ["a"]
    assert (ranked[0].log_prob, ranked[0].confidence, ranked[0].provenance) == (None, None, ())
    assert VerbatimEditor().wants(7) == 7


def test_verbatim_completes_with_the_line_of_the_prototype_after_the_prefix() -> None:
    found = prototypes("total = 0\nreturn sum(cards)\n", "x")
    complete = VerbatimEditor().complete
    ((first, second),) = complete([{"text": "x"}], ["y = 1\nreturn sum("], [found])
    assert (first.token, first.text, first.prototype) == ("cards", "cards)\n", found[0])
    assert first.log_prob == -math.inf
    assert (second.token, second.text) == ("", "")
    assert complete([{"text": "x"}], ["return"], [found], k=1)[0][0].text == " sum(cards)\n"
    assert complete([{"text": "x"}], [""], [[]]) == [[]]
