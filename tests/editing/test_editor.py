"""The editor that edits nothing."""

from redraft.data.example import Example
from redraft.editing.editor import VerbatimEditor
from redraft.retrieval.prototype import Prototype


def test_verbatim_returns_the_outputs_of_the_prototypes_in_their_order() -> None:
    prototypes = [
        Prototype(Example({"text": y}, y), distance) for y, distance in (("a", 0.1), ("b", 0.4))
    ]
    near, nothing = VerbatimEditor().edit([{"text": "x"}, {"text": "z"}], [prototypes, []])
    assert [(c.output, c.score, c.prototype) for c in near] == [
        ("a", -0.1, prototypes[0]),
        ("b", -0.4, prototypes[1]),
    ]
    assert nothing == []
