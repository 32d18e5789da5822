"""Proposals: the outputs that the editors make of the prototypes of one input, with features.

Every prototype proposes its output as it is and with the values of x substituted; other editors
add theirs. Equal outputs are merged, and the number of prototypes behind them is evidence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from redraft.editing.cancellation import check_cancelled
from redraft.editing.reranker import Differences
from redraft.editing.slot_filling import Query, opposites
from redraft.editing.substitution import Edit, provenance_of, substitute
from redraft.editing.templates import Comparison, Template, TemplateModel
from redraft.text.spans import WordSpans, is_word, overlaps
from redraft.types import Candidate, Input, Prototype, TracedToken, normal_input

_LEAST_DISTANCE = 1e-3

STORED_CONFIDENCE = 0.99
"""The confidence of a stored output, shared among the different outputs of equal inputs."""

VERBATIM, SUBSTITUTION, POSITION = "verbatim", "substitution", "position"

FEATURES = (
    "nearness",  # of the nearest prototype behind the output, relative to the nearest of all
    "closeness",  # the same, absolute
    "rank",
    "cosine",  # of the templates of x and x'
    "cosine_lead",
    "cosine_rank",
    "predicted",  # similarity to the output that the prototypes predict together
    "predicted_lead",
    "predicted_rank",
    "missing",  # words of x that x' has not
    "extra",
    "unlike",  # both
    "unchanged",  # a stored output as it is, though its prototype has values of its own
    "stale",  # values of x' that stayed
    "unused",  # values of x that the output leaves out
    "evidence",
    "slots",
    "filled",
    "votes",
    "vote_share",
    "vote_weight",
    "transfer",  # log-odds, by the re-ranker, that the edit of the best prototype is right
    "transfer_lead",
    "transfer_rank",
    "transfer_sum",  # of all prototypes behind the output
)


@dataclass(frozen=True)
class Support:
    """A prototype behind a proposal, and how the proposal was made of it."""

    row: int  # its rank among the prototypes
    proposer: str
    edit: Edit | None  # None: the stored output as it is


@dataclass
class Proposal:
    """An output, and every source that proposes it."""

    output: str
    sources: list[Support] = field(default_factory=list)


@dataclass(frozen=True)
class Proposals:
    """The proposals for one input."""

    query: Query
    prototypes: Sequence[Prototype]
    templates: Sequence[Template]
    comparison: Comparison
    items: list[Proposal]
    known_share: float  # of the words of the input that the training inputs have, by squared IDF

    def candidate(self, proposal: Proposal) -> Candidate:
        """Return the candidate of a proposal, with its best source as the prototype."""
        comparison = self.comparison
        best = max(
            proposal.sources,
            key=lambda source: (
                comparison.cosine[source.row] + comparison.predicted[source.row],
                -source.row,
            ),
        )
        prototype = self.prototypes[best.row]
        stored = prototype.example.y
        provenance: tuple[TracedToken, ...] = (TracedToken(stored, "prototype"),)
        if best.edit is not None:
            provenance = provenance_of(best.edit, stored)
        return Candidate(proposal.output, 0.0, prototype, provenance=provenance)

    def first_of(self, proposer: str) -> int:
        """Return the row of the proposal that an editor makes of the nearest prototype."""
        rows = [
            (source.proposer != proposer, row)
            for row, item in enumerate(self.items)
            for source in item.sources
            if source.row == 0
        ]
        return min(rows)[1]

    def invented(self, output: str, templates: TemplateModel) -> tuple[str, ...]:
        """Return the values of an output that neither the input nor the prototypes explain."""
        table, y = templates.table, WordSpans.of(output)
        explained = [
            (target.start, target.end)
            for slot in table.slots(self.query.words, y)
            for target in slot.targets
        ]
        quoted = y.quoted
        return tuple(
            dict.fromkeys(
                y.words[i]
                for i, word in enumerate(y.folded)
                if (quoted[i] or table.is_value(word))
                and is_word(word)
                and word not in self.constants
                and not any(overlaps((y.starts[i], y.ends[i]), span) for span in explained)
            )
        )

    @cached_property
    def differences(self) -> Differences:
        """The differences between the input and each prototype."""
        return Differences.of(self.comparison, self.templates)

    @cached_property
    def constants(self) -> set[str]:
        """The words that outputs of prototypes have for any input: those outside of slots."""
        return set().union(*(template.constants for template in self.templates))


def merge_key(output: str) -> str:
    """Return an output without differences in white space and a final semicolon."""
    return " ".join(output.split()).rstrip("; ")


def propose(
    x: Input,
    prototypes: Sequence[Prototype],
    templates: TemplateModel,
) -> Proposals:
    """Propose outputs for `x`."""
    table = templates.table
    query = Query.of(x, table)
    read = [templates.template(prototype.example) for prototype in prototypes]
    merged: dict[str, Proposal] = {}

    def proposal(output: str) -> Proposal:
        return merged.setdefault(merge_key(output), Proposal(output))

    for row, template in enumerate(read):
        check_cancelled()
        opposite = opposites(query, template.source, table)
        edit = substitute(query, template.source, table, opposite=opposite)
        proposal(edit.output).sources.append(Support(row, SUBSTITUTION, edit))
        moved = substitute(query, template.source, table, opposite=opposite, by_position=True)
        if moved.output != edit.output:
            proposal(moved.output).sources.append(Support(row, POSITION, moved))
        stored = template.source.y.text
        if merge_key(stored) != merge_key(edit.output):
            proposal(stored).sources.append(Support(row, VERBATIM, None))
    items = list(merged.values())
    comparison = templates.compare(query, read)
    return Proposals(query, prototypes, read, comparison, items, templates.known_share(query))


def features_of(proposals: Proposals, transfer: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the features (N, F) of all proposals, in the order of `FEATURES`.

    `transfer` has the score of each prototype by the re-ranker.
    """
    comparison = proposals.comparison
    distances = np.array([prototype.distance for prototype in proposals.prototypes])
    closeness = -np.log(distances.clip(_LEAST_DISTANCE))
    nearness = np.exp(closeness - closeness.max(initial=-np.inf))
    cosine_rank, predicted_rank = _ranks(comparison.cosine), _ranks(comparison.predicted)
    transfer_rank, best_transfer = _ranks(transfer), transfer.max(initial=-np.inf)
    best_cosine = comparison.cosine.max(initial=0.0)
    best_predicted = comparison.predicted.max(initial=0.0)
    total = sum(len({source.row for source in item.sources}) for item in proposals.items) or 1
    mentions = len(proposals.query.longest_mentions)
    rows = []
    for item in proposals.items:
        behind = sorted({source.row for source in item.sources})
        edits = [source.edit for source in item.sources if source.edit is not None]
        cosine = comparison.cosine[behind].max()
        predicted = comparison.predicted[behind].max()
        slots = max((edit.slots for edit in edits), default=0)
        stale = min((len(edit.stale) for edit in edits), default=mentions)
        rows.append(
            [
                nearness[behind].max(),
                closeness[behind].max(),
                1 / (1 + behind[0]),
                cosine,
                cosine - best_cosine,
                1 / (1 + cosine_rank[behind].min()),
                predicted,
                predicted - best_predicted,
                1 / (1 + predicted_rank[behind].min()),
                comparison.missing[behind].min(),
                comparison.extra[behind].min(),
                (comparison.missing + comparison.extra)[behind].min(),
                not edits,
                stale,
                min((edit.unused for edit in edits), default=mentions),
                max((edit.evidence for edit in edits), default=0.0),
                slots,
                slots - stale if edits else 0,
                math.log1p(len(behind)),
                len(behind) / total,
                comparison.cosine[behind].sum(),
                transfer[behind].max(),
                transfer[behind].max() - best_transfer,
                1 / (1 + transfer_rank[behind].min()),
                np.logaddexp.reduce(transfer[behind]),
            ]
        )
    return np.array(rows, np.float64).reshape(len(rows), len(FEATURES))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return ranks


def stored_candidates(x: Input, prototypes: Sequence[Prototype]) -> list[Candidate]:
    """Return the stored outputs of inputs equal to `x`, newest first as they were retrieved."""
    own = normal_input(x)
    stored: dict[str, Prototype] = {}
    for prototype in prototypes:
        if normal_input(prototype.example.x) == own:
            stored.setdefault(prototype.example.y, prototype)
    return [
        Candidate(
            output,
            0.0,
            prototype,
            confidence=STORED_CONFIDENCE / len(stored),
            provenance=(TracedToken(output, "prototype"),),
        )
        for output, prototype in stored.items()
    ]
