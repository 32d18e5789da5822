"""Attribution: the prototype that an output was edited from, and the origin of each token."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from redraft.editing.beam_search import Hypothesis
from redraft.editing.confidence import features_of_candidate
from redraft.editing.editor_input import EditorInput
from redraft.models.ngram_cache import evidence_of
from redraft.text.edit_encoder import EditEncoder
from redraft.text.tokenizer import spell
from redraft.text.vocabulary import BOS_ID, EOS_ID
from redraft.types import Candidate, Origin, Prototype, TracedToken

if TYPE_CHECKING:
    from redraft.editing.neural import NeuralEditor

MIN_LOG_PROB = -100.0
"""The lowest log-probability of a token."""


@dataclass(frozen=True)
class _Attribution:
    """The best group of prototypes for an output, and the origins of its tokens."""

    best: int  # the group with the highest joint probability
    log_probs: Tensor  # (T, O) of the origins: generated, copied from each source, n-gram cache


def explain(
    editor: "NeuralEditor", results: Sequence[tuple[EditorInput, Sequence[Hypothesis]]]
) -> list[list[Candidate]]:
    """Turn the hypotheses of each input into candidates with distinct outputs and provenance."""
    pairs = [
        (editor_input, hypothesis)
        for editor_input, hypotheses in results
        for hypothesis in hypotheses
    ]
    attributions = iter(_attribute(editor, pairs) if pairs else [])
    answers = []
    for editor_input, hypotheses in results:
        candidates: dict[str, Candidate] = {}
        for hypothesis in hypotheses:
            candidate = _candidate(editor, editor_input, hypothesis, next(attributions))
            candidates.setdefault(candidate.output, candidate)
        answers.append(list(candidates.values()))
    return answers


def _attribute(
    editor: "NeuralEditor", pairs: Sequence[tuple[EditorInput, Hypothesis]]
) -> list[_Attribution]:
    """Attribute each output, given its editor input, by teacher forcing."""
    rows = [
        replace(edit, target=[BOS_ID, *hypothesis.tokens])
        for editor_input, hypothesis in pairs
        for edit in editor_input.edits
    ]
    batch = editor.batch(rows)
    log_probs = editor.network.origins(batch)  # (rows, T, 1+R)
    # clamped: a word that only the cache predicts must not outweigh all others
    token_log_probs = log_probs.logsumexp(2).clamp(min=MIN_LOG_PROB)
    log_likelihoods = (token_log_probs * batch.target.mask[:, 1:]).sum(1).tolist()
    cache_log_probs, gates = _attribute_to_cache(editor, pairs)
    attributions, start = [], 0
    for row, (editor_input, _) in enumerate(pairs):
        weights = editor_input.log_weights
        joint = [log_likelihoods[start + i] + weight for i, weight in enumerate(weights)]
        best = joint.index(max(joint))
        gate = gates[row, : log_probs.shape[1], None]
        edited = log_probs[start + best] + (-gate).log1p()
        cached = cache_log_probs[row, : len(gate), None]
        attributions.append(_Attribution(best, torch.cat([edited, cached], 1)))
        start += len(weights)
    return attributions


def _attribute_to_cache(
    editor: "NeuralEditor", pairs: Sequence[tuple[EditorInput, Hypothesis]]
) -> tuple[Tensor, Tensor]:
    """Return the log-probability of each token by the n-gram cache, and its gate: (rows, T)."""
    rows = [
        replace(editor_input.edits[0], target=[BOS_ID, *hypothesis.tokens])
        for editor_input, hypothesis in pairs
    ]
    target = editor.batch(rows).target.ids
    if editor.cache is None:
        closed = torch.zeros(target[:, 1:].shape, device=target.device)
        return closed.log(), closed
    next_tokens, state = editor.start_decoding([editor_input for editor_input, _ in pairs])
    probs, gates = [], []
    for t, (expected, cache) in enumerate(next_tokens.follow(state, target[:, :-1])):
        predicted = editor.cache(cache, expected.shape[1])
        gate = editor.cache.share(predicted, evidence_of(expected, predicted))
        probs.append(predicted.probs.gather(1, target[:, t + 1 : t + 2])[:, 0] * gate)
        gates.append(gate)
    return torch.stack(probs, 1).log(), torch.stack(gates, 1)


def _candidate(
    editor: "NeuralEditor",
    editor_input: EditorInput,
    hypothesis: Hypothesis,
    attribution: _Attribution,
) -> Candidate:
    ids = [token_id for token_id in hypothesis.tokens if token_id != EOS_ID]
    texts = spell(editor.encoding.words(ids, editor_input.oovs))
    names = _origins(editor.encoding)
    origins = attribution.log_probs[: len(texts)].argmax(1).tolist()
    candidate = Candidate(
        "".join(texts),
        hypothesis.score,
        _prototype(editor.encoding, editor_input, attribution, len(texts)),
        log_prob=hypothesis.log_prob,
        provenance=tuple(
            TracedToken(text, names[origin]) for text, origin in zip(texts, origins, strict=True)
        ),
    )
    if editor.confidence is None:
        return candidate
    confidence = editor.confidence.of([features_of_candidate(candidate)])[0]
    return replace(candidate, confidence=float(confidence))


def _origins(encoding: EditEncoder) -> list[Origin]:
    """Return the origin for each column of an attribution; the cache counts as a prototype."""
    copied: list[Origin] = [
        "input" if encoding.prototype_of(source_id) is None else "prototype"
        for source_id in range(encoding.source_ids)
    ]
    return ["generated", *copied, "prototype"]


def _prototype(
    encoding: EditEncoder, editor_input: EditorInput, attribution: _Attribution, length: int
) -> Prototype | None:
    """Return the prototype in the best group that most tokens were copied from.

    For an editor that reads no prototypes, return the nearest cached one, if any.
    """
    group = editor_input.groups[attribution.best]
    if not group:
        return next(iter(editor_input.cached), None)
    counts = [0.0] * len(group)  # expected numbers of copied tokens
    copied = attribution.log_probs[:length, 1:-1].exp().sum(0).tolist()
    for source_id, count in enumerate(copied):
        prototype = encoding.prototype_of(source_id)
        if prototype is not None and prototype < len(group):
            counts[prototype] += count
    return group[counts.index(max(counts))]
