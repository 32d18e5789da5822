"""Why an output came out: the prototype that it was made from, and the origin of each token."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from redraft.editing.remembering import trace
from redraft.models.ngram_cache import evidence_of
from redraft.models.state_cache import Remembered
from redraft.retrieval.prototype import Prototype

if TYPE_CHECKING:
    from redraft.editing.neural_editor import NeuralEditor

Found = tuple[Question, Sequence[Hypothesis]]

_LEAST_LIKELY = -100.0


@dataclass(frozen=True)
class _Made:
    """How an output came about."""

    best: int  # the group that made it likeliest
    chances: Tensor  # (T, O), logs: written, copied from each source, remembered, looked up
    remembered: Tensor  # (T, N), the chance that a token came by each remembered example


def explain(
    editor: "NeuralEditor", found: Sequence[Found], remembered: Remembered
) -> list[list[Candidate]]:
    """Candidates of what was found for each question, no two with the same output."""
    has_any = any(hypotheses for _, hypotheses in found)
    made = iter(_made(editor, found, remembered) if has_any else [])
    answers = []
    for question, hypotheses in found:
        candidates: dict[str, Candidate] = {}
        for hypothesis in hypotheses:
            candidate = _candidate(editor, question, hypothesis, next(made))
            candidates.setdefault(candidate.output, candidate)
        answers.append(list(candidates.values()))
    return answers


def _made(editor: "NeuralEditor", found: Sequence[Found], remembered: Remembered) -> list[_Made]:
    """How each output of each question came about."""
    pairs = [(question, each) for question, hypotheses in found for each in hypotheses]
    owners = [row for row, (_, hypotheses) in enumerate(found) for _ in hypotheses]
    of_pairs = remembered.select(torch.tensor(owners, device=remembered.ids.device))
    rows = [
        replace(edit, target=[START_NUMBER, *hypothesis.tokens])
        for question, hypothesis in pairs
        for edit in question.edits
    ]
    batch = editor.batch(rows)
    repeated = [row for row, (question, _) in enumerate(pairs) for _ in question.edits]
    of_rows = of_pairs.select(torch.tensor(repeated, device=remembered.ids.device))
    traced = trace(editor, batch, of_rows)
    # of what is not remembered
    edited = editor.network.origins(batch) + (-traced.share[:, :, None]).log1p()  # (rows, T, 1+R)
    chances = torch.cat([edited, traced.chances.sum(2, keepdim=True).log()], 2)
    # a word that no group has, only the cache: beside it the other words must still count
    likely = chances.logsumexp(2).clamp(min=_LEAST_LIKELY)
    likelihoods = (likely * batch.target.mask[:, 1:]).sum(1).tolist()
    looked_up, share = _looked_up(editor, pairs, of_pairs)
    made, at = [], 0
    for row, (question, _) in enumerate(pairs):
        weights = question.log_weights
        joint = [likelihoods[at + each] + weight for each, weight in enumerate(weights)]
        best = joint.index(max(joint))
        cached = share[row, : chances.shape[1], None]
        others = chances[at + best] + (-cached).log1p()
        lookups = looked_up[row, : len(cached), None]
        by_example = traced.chances[at + best] * (1 - cached)
        made.append(_Made(best, torch.cat([others, lookups], 1), by_example))
        at += len(weights)
    return made


def _looked_up(
    editor: "NeuralEditor",
    pairs: Sequence[tuple[Question, Hypothesis]],
    remembered: Remembered,
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
    walk, state = editor.start_walk([question for question, _ in pairs], remembered)
    chances, shares = [], []
    for at, (expected, cache) in enumerate(walk.follow(state, target[:, :-1])):
        foreseen = editor.cache(cache, expected.shape[1])
        share = editor.cache.share(foreseen, evidence_of(expected, foreseen))
        chances.append(foreseen.chances.gather(1, target[:, at + 1 : at + 2])[:, 0] * share)
        shares.append(share)
    return torch.stack(chances, 1).log(), torch.stack(shares, 1)


def _candidate(
    editor: "NeuralEditor", question: Question, hypothesis: Hypothesis, made: _Made
) -> Candidate:
    numbers = [each for each in hypothesis.tokens if each != END_NUMBER]
    texts = spell(editor.numbering.words(numbers, question.unknown))
    names = _names(editor.numbering)
    origins = made.chances[: len(texts)].argmax(1).tolist()
    candidate = Candidate(
        "".join(texts),
        hypothesis.score,
        _prototype(editor.numbering, question, made, len(texts)),
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
    """What each origin is called; what is remembered or looked up stands in a retrieved example."""
    roles = range(numbering.roles)
    copied = ["input" if numbering.prototype_of(role) is None else "prototype" for role in roles]
    return ["generated", *copied, "prototype", "prototype"]  # type: ignore[list-item]


def _prototype(
    numbering: EditNumbering, question: Question, made: _Made, length: int
) -> Prototype | None:
    """The one that most tokens came from: of the best group, or remembered."""
    group = question.groups[made.best]
    sources = [*group, *question.remembered]
    if not sources:
        return next(iter(question.cached), None)
    amounts: dict[str, float] = {each.example.identity: 0.0 for each in sources}
    for role, amount in enumerate(made.chances[:length, 1:-2].exp().sum(0).tolist()):
        owner = numbering.prototype_of(role)
        if owner is not None and owner < len(group):
            amounts[group[owner].example.identity] += amount
    given = made.remembered[:length].sum(0).tolist()
    for source, amount in zip(question.remembered, given, strict=False):  # others may have more
        amounts[source.example.identity] += amount
    return max(sources, key=lambda each: amounts[each.example.identity])


def features_of_candidate(candidate: Candidate) -> list[float]:
    """What a confidence is read from."""
    distance = candidate.prototype.distance if candidate.prototype else None
    return features_of(candidate.log_prob or 0.0, len(candidate.provenance) + 1, distance)
