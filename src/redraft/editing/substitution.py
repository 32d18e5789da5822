"""The training-free editor: what differs between x and x' is carried over into y'.

A slot of the prototype is a value that its output made from its input. Each slot is filled with the
span of the new input that corresponds best: by its alignment with x', by the contexts in which the
value is known, and by the words around it. Everything else of y' stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from redraft.editing.base import Editor
from redraft.editing.session import CompletionSession, VerbatimSession
from redraft.editing.slot_filling import Query, SlottedExample, assign, opposites
from redraft.editing.slots import Slot
from redraft.editing.value_table import ValueTable
from redraft.storage.artifact import Artifact
from redraft.text.spans import Span, WordSpans, overlaps
from redraft.text.value_formats import in_code, rewrite
from redraft.types import Candidate, Example, Input, Origin, Prototype, TracedToken

TABLE = "values.json"


@dataclass(frozen=True)
class Replacement:
    """A part of the prototype's output, by its characters, and the text in its place."""

    start: int
    end: int
    text: str
    origin: Origin


@dataclass(frozen=True)
class Edit:
    """An edited output and what the edit left undone."""

    output: str
    replacements: tuple[Replacement, ...]
    slots: int
    stale: tuple[str, ...]  # values of the prototype's input that stayed, though x has them not
    unused: int  # values of x that fill no slot
    evidence: float  # mean evidence of the slots


def substitute(
    query: Query,
    source: SlottedExample,
    table: ValueTable,
    *,
    opposite: Sequence[Span | None],
    by_position: bool = False,
) -> Edit:
    """Edit the output of `source` into an output for `query`, given what `opposites` returned.

    `by_position` ignores in which contexts a value is known: the alignment alone fills the slots.
    """
    fills, evidence = assign(query, source, opposite, by_position=by_position)
    replacements: list[Replacement] = []
    stale = []
    for slot, span in zip(source.slots, fills, strict=True):
        if span is None:
            stale.append(source.x.slice(slot.source))
            continue
        if query.words.fold(span) != source.x.fold(slot.source):
            replacements += _fill(query.words, span, slot, source, table)
    used = [span for span in fills if span is not None]
    unused = sum(
        not any(overlaps(span, other) for other in used) for span in query.longest_mentions
    )
    replacements.sort(key=lambda replacement: replacement.start)
    return Edit(
        _apply(source.y.text, replacements),
        tuple(replacements),
        len(source.slots),
        tuple(stale),
        unused,
        sum(evidence) / len(evidence) if evidence else 0.0,
    )


def _fill(
    x: WordSpans, span: Span, slot: Slot, source: SlottedExample, table: ValueTable
) -> list[Replacement]:
    """Write a span of the input into every target of a slot."""
    new, form = x.slice(span), x.fold(span)
    old_source = source.x.slice(slot.source)
    replacements = []
    for target in slot.targets:
        old = source.y.text[target.start : target.end]
        text = rewrite(old, old_source, new)
        if not target.is_quoted and old == old_source:
            text = in_code(old, text)
        known = table.text_of(form, target.context)
        # the table knows derived values and their spelling; a copy keeps that of the input
        if known is not None and not (known.casefold() == new.casefold() and old == old_source):
            text = known
        origin: Origin = "input" if text.casefold() == new.casefold() else "mapped"
        replacements.append(Replacement(target.start, target.end, text, origin))
    return replacements


def _apply(text: str, replacements: Sequence[Replacement]) -> str:
    parts, end = [], 0
    for replacement in replacements:
        parts += [text[end : replacement.start], replacement.text]
        end = replacement.end
    return "".join([*parts, text[end:]])


def provenance_of(edit: Edit, output: str) -> tuple[TracedToken, ...]:
    """Return the origin of each word of an edited output; `output` is the prototype's."""
    pieces: list[tuple[str, Origin]] = []
    end = 0
    for replacement in edit.replacements:
        pieces += [
            (output[end : replacement.start], "prototype"),
            (replacement.text, replacement.origin),
        ]
        end = replacement.end
    pieces.append((output[end:], "prototype"))
    return tuple(TracedToken(text, origin) for piece, origin in pieces for text in _tokens(piece))


def _tokens(piece: str) -> list[str]:
    """Cut a text into its words, each with the white space before it."""
    words = WordSpans.of(piece)
    ends = [end for word, end in zip(words.words, words.ends, strict=True) if word != "\n"]
    cuts = [0, *ends[:-1], len(piece)] if ends else [0, len(piece)]
    return [piece[start:end] for start, end in pairwise(cuts) if start < end]


class SubstitutionEditor(Editor):
    """Substitutes the values of x into the outputs of the nearest prototypes; needs no training."""

    name = "substitution"

    def __init__(self, table: ValueTable) -> None:
        self.table = table

    @classmethod
    def fit(cls, examples: Sequence[Example], retriever: object) -> "SubstitutionEditor":  # noqa: ARG003
        """Return an editor that knows the values of `examples`."""
        return cls(ValueTable.learn(examples))

    def wants(self, k: int) -> int:
        """Return `k`: one prototype per candidate."""
        return k

    def edit(
        self,
        inputs: Sequence[Input],
        prototypes: Sequence[Sequence[Prototype]],
        k: int = 1,
        *,
        generator: np.random.Generator | None = None,  # noqa: ARG002
    ) -> list[list[Candidate]]:
        """Edit the first `k` prototypes of each input; equal outputs are merged."""
        return [
            self._edit_one(x, retrieved[:k])
            for x, retrieved in zip(inputs, prototypes, strict=True)
        ]

    def _edit_one(self, x: Input, prototypes: Sequence[Prototype]) -> list[Candidate]:
        query = Query.of(x, self.table)
        candidates: dict[str, Candidate] = {}
        for prototype in prototypes:
            source = SlottedExample.of(prototype.example, self.table)
            opposite = opposites(query, source, self.table)
            edit = substitute(query, source, self.table, opposite=opposite)
            provenance = provenance_of(edit, prototype.example.y)
            candidate = Candidate(
                edit.output, -prototype.distance, prototype, provenance=provenance
            )
            candidates.setdefault(edit.output, candidate)
        return list(candidates.values())

    def start_session(self, x: Input, prototypes: Sequence[Prototype]) -> CompletionSession:  # noqa: ARG002
        """Return a session that completes from the aligned prototypes."""
        return VerbatimSession(prototypes)

    def save(self, folder: Path) -> None:
        """Write the table of values."""
        self.table.save(folder / TABLE)

    @classmethod
    def load(cls, artifact: Artifact) -> "SubstitutionEditor":
        """Load the editor that `save` wrote."""
        return cls(ValueTable.load(artifact.path(TABLE)))
