"""Why an output came out: the prototype that it was made from, and the origin of each token."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from redraft.data.edit_numbers import EditNumbering
from redraft.data.tokenizer import spell
from redraft.data.vocabulary import END_NUMBER, START_NUMBER
from redraft.editing.beam_search import Hypothesis
from redraft.editing.candidate import Candidate
from redraft.editing.confidence import features_of
from redraft.editing.provenance import Origin, TracedToken
from redraft.editing.question import Question
from redraft.models.ngram_cache import evidence_of
from redraft.retrieval.prototype import Prototype

if TYPE_CHECKING:
    from redraft.editing.neural_editor import NeuralEditor

Found = tuple[Question, Sequence[Hypothesis]]

_LEAST_LIKELY = -100.0


def explain(editor: "NeuralEditor", found: Sequence[Found]) -> list[list[Candidate]]:
    """Candidates of what was found for each question, no two with the same output."""
    pairs = [(question, each) for question, hypotheses in found for each in hypotheses]
    origins = iter(_origins(editor, pairs) if pairs else [])
    answers = []
    for question, hypotheses in found:
        candidates: dict[str, Candidate] = {}
        for hypothesis in hypotheses:
            best, chances = next(origins)
            candidate = _candidate(editor, question, hypothesis, best, chances)
            candidates.setdefault(candidate.output, candidate)
        answers.append(list(candidates.values()))
    return answers


def _origins(
    editor: "NeuralEditor", pairs: Sequence[tuple[Question, Hypothesis]]
) -> list[tuple[int, Tensor]]:
    """Of each output the group that made it likeliest, and logs of each origin's chance (T, O).

    The origins: written, copied from each source, looked up.
    """
    rows = [
        replace(edit, target=[START_NUMBER, *hypothesis.tokens])
        for question, hypothesis in pairs
        for edit in question.edits
    ]
    batch = editor.batch(rows)
    edited = editor.network.origins(batch)  # (rows, T, 1+R)
    # a word that no group has, only the cache: beside it the other words must still count
    likely = edited.logsumexp(2).clamp(min=_LEAST_LIKELY)
    likelihoods = (likely * batch.target.mask[:, 1:]).sum(1).tolist()
    looked_up, share = _looked_up(editor, pairs)
    found, at = [], 0
    for row, (question, _) in enumerate(pairs):
        weights = question.log_weights
        joint = [likelihoods[at + each] + weight for each, weight in enumerate(weights)]
        best = joint.index(max(joint))
        chances = edited[at + best] + (-share[row, : edited.shape[1], None]).log1p()
        lookups = looked_up[row, : edited.shape[1], None]
        found.append((best, torch.cat([chances, lookups], 1)))
        at += len(weights)
    return found


def _looked_up(
    editor: "NeuralEditor", pairs: Sequence[tuple[Question, Hypothesis]]
) -> tuple[Tensor, Tensor]:
    """The log of the chance that each token was looked up, and the cache's share: (rows, T)."""
    rows = [
        replace(question.edits[0], target=[START_NUMBER, *hypothesis.tokens])
        for question, hypothesis in pairs
    ]
    target = editor.batch(rows).target.ids
    if editor.cache is None:
        share = torch.zeros(target[:, 1:].shape, device=target.device)
        return share.log(), share
    walk, state = editor.start_walk([question for question, _ in pairs])
    chances, shares = [], []
    for at, (expected, cache) in enumerate(walk.follow(state, target[:, :-1])):
        foreseen = editor.cache(cache, expected.shape[1])
        share = editor.cache.share(foreseen, evidence_of(expected, foreseen))
        chances.append(foreseen.chances.gather(1, target[:, at + 1 : at + 2])[:, 0] * share)
        shares.append(share)
    return torch.stack(chances, 1).log(), torch.stack(shares, 1)


def _candidate(
    editor: "NeuralEditor", question: Question, hypothesis: Hypothesis, best: int, chances: Tensor
) -> Candidate:
    numbers = [each for each in hypothesis.tokens if each != END_NUMBER]
    texts = spell(editor.numbering.words(numbers, question.unknown))
    chances = chances[: len(texts)]
    names = _names(editor.numbering)
    origins = chances.argmax(1).tolist()
    candidate = Candidate(
        "".join(texts),
        hypothesis.score,
        _prototype(editor.numbering, question, best, chances),
        log_prob=hypothesis.log_prob,
        provenance=tuple(
            TracedToken(text, names[origin]) for text, origin in zip(texts, origins, strict=True)
        ),
    )
    if editor.confidence is None:
        return candidate
    confidence = editor.confidence.of([features_of_candidate(candidate)])[0]
    return replace(candidate, confidence=float(confidence))


def _names(numbering: EditNumbering) -> list[Origin]:
    """What each origin is called; what is looked up stands in an example that was retrieved."""
    roles = range(numbering.roles)
    copied = ["input" if numbering.prototype_of(role) is None else "prototype" for role in roles]
    return ["generated", *copied, "prototype"]  # type: ignore[list-item]


def _prototype(
    numbering: EditNumbering, question: Question, best: int, chances: Tensor
) -> Prototype | None:
    """The prototype of the best group that most was copied from."""
    group = question.groups[best]
    if not group:
        return next(iter(question.cached), None)
    copied = [0.0] * len(group)
    for role, amount in enumerate(chances[:, 1:-1].exp().sum(0).tolist()):
        owner = numbering.prototype_of(role)
        if owner is not None and owner < len(group):
            copied[owner] += amount
    return group[copied.index(max(copied))]


def features_of_candidate(candidate: Candidate) -> list[float]:
    """What a confidence is read from."""
    distance = candidate.prototype.distance if candidate.prototype else None
    return features_of(candidate.log_prob or 0.0, len(candidate.provenance) + 1, distance)
