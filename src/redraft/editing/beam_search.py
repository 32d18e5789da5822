"""Greedy decoding, beam search and sampling from a next-token model. Knows no network, no text.

Scores are float64 on the device of `bos`. A next-token model whose network is on another device
moves the tokens there and the log-probabilities back.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from redraft.editing.cancellation import check_cancelled
from redraft.errors import ConfigError

State = TypeVar("State")

Constraint = Callable[[int, Sequence[int]], bool]
"""Returns True if the output of an input, given by its row, may begin with these tokens."""

CANDIDATES_PER_BEAM = 20
"""The next tokens per hypothesis that are tried if there is a constraint."""


class NextTokenModel(Protocol[State]):
    """The distribution of the next token after any prefix."""

    def step(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """Append tokens (R, T); return next-token log-probabilities (R, W) and the new state."""

    def reorder(self, state: State, rows: Tensor) -> State:
        """Select the rows of a state; `rows` may repeat or drop some."""


@dataclass(frozen=True)
class SearchConfig:
    """Settings of the search; the score of a hypothesis is log_prob / length ** length_penalty.

    A hypothesis ends at the token with which its log-probability falls below `min_log_prob`.
    """

    beam_size: int = 1  # 1 is greedy
    max_length: int = 150  # tokens, the end token included
    length_penalty: float = 0.0
    min_log_prob: float = -math.inf

    def __post_init__(self) -> None:
        for name, value in (("beam_size", self.beam_size), ("max_length", self.max_length)):
            if value < 1:
                raise ConfigError(f"{name} is {value}; make it 1 or more")
        if not 0 <= self.length_penalty < math.inf:
            raise ConfigError(f"length_penalty is {self.length_penalty}; make it 0 (none) or more")


@dataclass(frozen=True)
class Hypothesis:
    """A decoded sequence, its end token included."""

    tokens: tuple[int, ...]
    log_prob: float
    score: float


@dataclass(frozen=True)
class _Beams:
    """K hypotheses per input, best first, in S = B * K slots grouped by input."""

    tokens: Tensor  # (S, T), arbitrary after the end token
    log_probs: Tensor  # (S,)
    probs: Tensor  # (S,) log-probability of being sampled: renormalised over the allowed tokens
    ranks: Tensor  # (S,) the sort key: the score or, for samples, the perturbed log-probability
    lengths: Tensor  # (S,)
    finished: Tensor  # (S,) also True for empty slots, which rank -inf

    @classmethod
    def start(cls, batch: int, size: int, device: torch.device) -> "_Beams":
        """Return one empty hypothesis per input."""
        zeros = torch.zeros(batch * size, dtype=torch.float64, device=device)
        finished = torch.arange(batch * size, device=device) % size > 0
        ranks, lengths = zeros.masked_fill(finished, -math.inf), zeros.long()
        return cls(lengths.new_zeros(batch * size, 0), zeros, zeros, ranks, lengths, finished)


@dataclass(frozen=True)
class _Rules:
    """The number of hypotheses, the tokens that may follow, and the length normalisation."""

    beam_size: int
    is_eos: Tensor  # (W,)
    is_suppressed: Tensor  # (W,)
    divisors: Tensor  # (max_length + 1,)
    min_log_prob: float
    constraint: Constraint | None

    def restrict(self, log_probs: Tensor, length: int) -> Tensor:
        """Set the log-probabilities (R, W) of tokens that are forbidden at a length to -inf."""
        is_last = length == len(self.divisors) - 1
        is_forbidden = self.is_suppressed | ~self.is_eos if is_last else self.is_suppressed
        return log_probs.masked_fill(is_forbidden, -math.inf)


@torch.no_grad()
def beam_search(
    next_tokens: NextTokenModel[State],
    state: State,
    config: SearchConfig,
    *,
    bos: Tensor,  # (B,) the first token of each input, which is read and not returned
    eos_ids: Collection[int],  # the end tokens
    suppressed: Collection[int] = (),  # tokens that are never generated
    generator: torch.Generator | None = None,
    constraint: Constraint | None = None,
) -> list[list[Hypothesis]]:
    """Decode from a next-token model; sample without replacement if given a `generator`.

    Hypotheses that violate the `constraint` are pruned at every step.

    Returns at most `beam_size` finished hypotheses per input, best first; a constraint may leave
    fewer, or none.
    """
    if len(bos) == 0:
        return []
    device = bos.device
    log_probs, state = next_tokens.step(state, bos[:, None])
    lengths = torch.arange(config.max_length + 1, dtype=torch.float64, device=device)
    divisors = lengths.clamp(min=1) ** config.length_penalty
    vocabulary, sets = torch.arange(log_probs.shape[1], device=device), ([*eos_ids], [*suppressed])
    is_eos, is_suppressed = (torch.isin(vocabulary, vocabulary.new_tensor(ids)) for ids in sets)
    size, least = config.beam_size, config.min_log_prob
    rules = _Rules(size, is_eos, is_suppressed, divisors, least, constraint)
    beams = _Beams.start(len(bos), size, device)
    for length in range(1, config.max_length + 1):
        check_cancelled()
        beams, parents = _extend(beams, log_probs, rules, length=length, generator=generator)
        if len(parents) == 0:
            break
        if not torch.equal(parents, torch.arange(len(log_probs), device=device)):
            state = next_tokens.reorder(state, parents)
        log_probs, state = next_tokens.step(state, beams.tokens[~beams.finished, -1:])
    return _hypotheses(beams, rules)


def _extend(
    beams: _Beams,
    log_probs: Tensor,
    rules: _Rules,
    *,
    length: int,
    generator: torch.Generator | None,
) -> tuple[_Beams, Tensor]:
    """Extend the beams to `length`; also return the parent rows (R',) of the unfinished ones."""
    size, live = rules.beam_size, ~beams.finished
    allowed = rules.restrict(log_probs, length)  # (R, W)
    keys = allowed if generator is None else _add_noise(allowed, generator=generator)
    # K tokens are enough, unless the constraint rejects some
    count = size if rules.constraint is None else max(size, CANDIDATES_PER_BEAM)
    keys, tokens = _best(keys, min(count, keys.shape[1]))  # (R, C)
    if keys.isnan().any():
        raise ValueError("the next-token model returned a log-probability that is not a number")
    gains = allowed.gather(1, tokens).double()
    totals = probs = beams.log_probs[live, None] + gains
    if generator is None:
        ranks = totals / rules.divisors[length]
    else:
        parents = beams.probs[live, None] - _total(allowed)
        probs, ranks = parents + gains, _truncate(parents + keys, beams.ranks[live, None])

    # column 0 is the hypothesis of a slot if it is finished, the others are its extensions
    pool = ranks.new_full((len(live), 1 + ranks.shape[1]), -math.inf)
    pool[~live, 0], pool[live, 1:] = beams.ranks[~live], ranks
    if rules.constraint is not None:
        _prune(pool, beams, tokens, rules, constraint=rules.constraint)
    width = pool.shape[1]
    ranks, chosen = (best.flatten() for best in _best(pool.view(-1, size * width), size))  # (S,)
    first = torch.arange(len(live), device=live.device) // size * size  # slot of each input: (S,)
    slots, columns = first + chosen // width, chosen % width
    is_child = columns > 0
    picked = (live.cumsum(0) - 1)[slots], columns - 1  # an arbitrary extension where none is chosen
    added = tokens[picked]  # (S,)
    log_probs = torch.where(is_child, totals[picked], beams.log_probs[slots])
    is_ended = rules.is_eos[added] | (log_probs < rules.min_log_prob)
    finished = ~is_child | ranks.isneginf() | is_ended
    extended = _Beams(
        torch.cat([beams.tokens[slots], added[:, None]], 1),
        log_probs,
        torch.where(is_child, probs[picked], beams.probs[slots]),
        ranks,
        torch.where(is_child, length, beams.lengths[slots]),
        finished,
    )
    return extended, picked[0][~finished]


def _prune(
    pool: Tensor, beams: _Beams, tokens: Tensor, rules: _Rules, *, constraint: Constraint
) -> None:
    """Set the ranks (S, 1 + C) of extensions that violate the constraint to -inf, in place.

    Checks the extensions of each input from the best one until K satisfy the constraint.
    """
    size, rows = rules.beam_size, (~beams.finished).cumsum(0) - 1
    for b in range(len(pool) // size):
        ranked = pool[b * size : (b + 1) * size].flatten().sort(descending=True, stable=True)
        valid = 0
        for rank, index in zip(ranked.values.tolist(), ranked.indices.tolist(), strict=True):
            if valid == size or rank == -math.inf:
                break
            slot, column = b * size + index // pool.shape[1], index % pool.shape[1]
            if column:  # a finished hypothesis was checked before
                token = int(tokens[rows[slot], column - 1])
                if not constraint(b, [*beams.tokens[slot].tolist(), token]):
                    pool[slot, column] = -math.inf
                    continue
            valid += 1


def _best(values: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the `size` highest values of each row and their columns; ties go to the left."""
    best, columns = values.topk(min(size + 1, values.shape[1]))
    least, columns = best[:, size - 1 : size], columns[:, :size]
    if ((best[:, size:] == least) & ~least.isneginf()).any():
        # a tie across the cut, where the order of topk is undefined
        above, level = values > least, values == least
        is_best = above | (level & (level.cumsum(1) <= size - above.sum(1, keepdim=True)))
        columns = is_best.nonzero()[:, 1].view(len(values), size)
    columns = columns.sort(1).values
    best, order = values.gather(1, columns).sort(dim=1, descending=True, stable=True)
    return best, columns.gather(1, order)


def _total(log_probs: Tensor) -> Tensor:
    """Return the total log-probability of the allowed tokens (R, 1), finite even without any."""
    total = log_probs.double().logsumexp(1, keepdim=True)
    return total.clamp(min=torch.finfo(total.dtype).min)


def _add_noise(log_probs: Tensor, *, generator: torch.Generator) -> Tensor:
    """Add Gumbel noise to log-probabilities (R, W)."""
    noise = torch.empty_like(log_probs, dtype=torch.float64).exponential_(generator=generator)
    return log_probs - noise.log_()


def _truncate(noisy: Tensor, highest: Tensor) -> Tensor:
    """Condition Gumbels (R, C), best first, on their maximum being `highest` (R, 1)."""
    # Kool, van Hoof & Welling 2019, appendix B.3; the order is preserved, so C of W are enough
    below = noisy - noisy[:, :1].clamp(min=torch.finfo(noisy.dtype).min)
    near, far = (-below.expm1()).log(), (-below.exp()).log1p()  # log(1 - exp(below))
    shift = highest - noisy + torch.where(below > -math.log(2), near, far)
    return highest - shift.clamp(min=0) - (-shift.abs()).exp().log1p()


def _hypotheses(beams: _Beams, rules: _Rules) -> list[list[Hypothesis]]:
    """Return the hypotheses of each input."""
    scores = beams.log_probs / rules.divisors[beams.lengths]
    fields = (beams.tokens, beams.lengths, beams.log_probs, scores, beams.ranks)
    slots = zip(*(field.tolist() for field in fields), strict=True)
    hypotheses: list[list[Hypothesis]] = [[] for _ in range(len(scores) // rules.beam_size)]
    for slot, (tokens, length, log_prob, score, rank) in enumerate(slots):
        if rank > -math.inf:
            hypothesis = Hypothesis(tuple(tokens[:length]), log_prob, score)
            hypotheses[slot // rules.beam_size].append(hypothesis)
    return hypotheses
