"""Attribution: the prototype that an output was edited from, and the origin of each token."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
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


def explain(
    editor: "NeuralEditor", results: Sequence[tuple[EditorInput, Sequence[Hypothesis]]]
) -> list[list[Candidate]]:
    """Turn the hypotheses of each input into candidates with distinct outputs and provenance."""
    pairs = [
        (editor_input, hypothesis)
        for editor_input, hypotheses in results
        for hypothesis in hypotheses
    ]
    candidates = _candidates(editor, pairs) if pairs else iter(())
    answers = []
    for _, hypotheses in results:
        distinct: dict[str, Candidate] = {}
        for candidate in islice(candidates, len(hypotheses)):
            distinct.setdefault(candidate.output, candidate)
        answers.append(list(distinct.values()))
    return answers


def _candidates(
    editor: "NeuralEditor", pairs: Sequence[tuple[EditorInput, Hypothesis]]
) -> Iterator[Candidate]:
    """Yield the candidate of each hypothesis; teacher forcing gives the origins of its tokens."""
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
    start = 0
    for row, (editor_input, hypothesis) in enumerate(pairs):
        weights = editor_input.log_weights
        joint = [log_likelihoods[start + i] + weight for i, weight in enumerate(weights)]
        best = joint.index(max(joint))
        gate = gates[row, : log_probs.shape[1], None]
        edited = log_probs[start + best] + (-gate).log1p()
        origins = torch.cat([edited, cache_log_probs[row, : len(gate), None]], 1)
        group = editor_input.groups[best] or editor_input.cached[:1]
        yield _candidate(editor, hypothesis, editor_input.oovs, group, origins)
        start += len(weights)


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
    hypothesis: Hypothesis,
    oovs: Sequence[str],
    group: Sequence[Prototype],
    origins: Tensor,  # (T, O) log-probabilities: generated, copied from each source, n-gram cache
) -> Candidate:
    """Return the candidate of a hypothesis, edited from one of `group`.

    An editor that reads no prototypes has a group of the nearest cached one, if any.
    """
    ids = [token_id for token_id in hypothesis.tokens if token_id != EOS_ID]
    texts, names = spell(editor.encoding.words(ids, oovs)), _origins(editor.encoding)
    origins = origins[: len(texts)]
    likeliest = zip(texts, origins.argmax(1).tolist(), strict=True)
    candidate = Candidate(
        "".join(texts),
        hypothesis.score,
        _prototype(editor.encoding, group, origins),
        log_prob=hypothesis.log_prob,
        provenance=tuple(TracedToken(text, names[origin]) for text, origin in likeliest),
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
    encoding: EditEncoder, group: Sequence[Prototype], origins: Tensor
) -> Prototype | None:
    """Return the prototype of `group` that most tokens were copied from."""
    if not group:
        return None
    counts = [0.0] * len(group)  # expected numbers of copied tokens
    for source_id, count in enumerate(origins[:, 1:-1].exp().sum(0).tolist()):
        prototype = encoding.prototype_of(source_id)
        if prototype is not None and prototype < len(group):
            counts[prototype] += count
    return group[counts.index(max(counts))]
