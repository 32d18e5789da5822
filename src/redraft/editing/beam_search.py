"""Decoding over a step function: greedy, beam search and sampling. Knows no network, no text.

All of it runs on the device of `first` and in float64: a walk whose network lives elsewhere takes
its tokens from there, and brings its log-probabilities.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from redraft.errors import ConfigError

State = TypeVar("State")

Allows = Callable[[int, Sequence[int]], bool]
"""Whether the continuation of an input, given by its row, may begin with these tokens."""

CHILDREN = 20
"""How many next tokens of a hypothesis are tried where not all are allowed."""


class Walk(Protocol[State]):
    """What a search walks over: the distribution of the next token after any prefix."""

    def advance(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """Read on, tokens (R, T); log-probabilities of the next token (R, W), and the state."""

    def select(self, state: State, rows: Tensor) -> State:
        """The state of these rows, which may repeat some and drop others."""


@dataclass(frozen=True)
class SearchConfig:
    """How wide, how far, and how much a length counts: score = log_prob / length ** penalty.

    A hypothesis whose log-probability falls below the `floor` ends there, whatever its last token.
    """

    beam_size: int = 1  # 1 is greedy
    max_length: int = 150  # tokens of the continuation, the end among them
    length_penalty: float = 0.0
    floor: float = -math.inf

    def __post_init__(self) -> None:
        for name, value in (("beam_size", self.beam_size), ("max_length", self.max_length)):
            if value < 1:
                raise ConfigError(f"{name} is {value}; make it 1 or more")
        if not 0 <= self.length_penalty < math.inf:
            raise ConfigError(f"length_penalty is {self.length_penalty}; make it 0 (none) or more")


@dataclass(frozen=True)
class Hypothesis:
    """A continuation, the token that ended it included."""

    tokens: tuple[int, ...]
    log_prob: float  # given the prefix
    score: float


@dataclass(frozen=True)
class _Beams:
    """K hypotheses for each of B inputs, best first: S = B * K slots, the input's together."""

    tokens: Tensor  # (S, T) all that followed the first reading, noise after the end
    log_probs: Tensor  # (S,) of the continuation, as the walk has it
    chances: Tensor  # (S,) log-probability of being sampled: what is allowed shares all of it
    ranks: Tensor  # (S,) what they compete by: the score or, if sampled, the perturbed chance
    lengths: Tensor  # (S,) of the continuation
    finished: Tensor  # (S,) so is a slot without a hypothesis, which ranks -inf

    @classmethod
    def start(cls, batch: int, size: int, device: torch.device) -> "_Beams":
        """One empty hypothesis for each input."""
        zeros = torch.zeros(batch * size, dtype=torch.float64, device=device)
        finished = torch.arange(batch * size, device=device) % size > 0
        ranks, lengths = zeros.masked_fill(finished, -math.inf), zeros.long()
        return cls(lengths.new_zeros(batch * size, 0), zeros, zeros, ranks, lengths, finished)


@dataclass(frozen=True)
class _Rules:
    """What may follow, and what a length divides a log-probability by."""

    forced: Tensor  # (B, F) what the first reading left of the prefixes, then -1
    is_stop: Tensor  # (W,)
    is_barred: Tensor  # (W,)
    divisors: Tensor  # (max_length + 1,)
    floor: float
    allows: Allows | None

    def lengths(self, step: int) -> Tensor:
        """How long each input's continuation is after a step, 0 within its prefix: (B,)."""
        return (step + 1 - (self.forced >= 0).sum(1)).clamp(0, len(self.divisors) - 1)

    def restrict(self, log_probs: Tensor, inputs: Tensor, step: int) -> Tensor:
        """Log-probabilities (R, W): -inf for what may not follow, 0 for what is forced."""
        lengths = self.lengths(step)[inputs]
        is_last, is_forced = lengths == len(self.divisors) - 1, lengths == 0
        allowed = log_probs.masked_fill(self.is_barred, -math.inf)
        if is_last.any():
            allowed[is_last] = allowed[is_last].masked_fill(~self.is_stop, -math.inf)
        if is_forced.any():
            allowed[is_forced] = -math.inf
            allowed[is_forced, self.forced[inputs[is_forced], step]] = 0.0
        return allowed


@torch.no_grad()
def beam_search(
    walk: Walk[State],
    state: State,
    config: SearchConfig,
    *,
    first: Tensor,  # (B,) the token read before the prefix
    stops: Collection[int],  # the tokens that end a hypothesis
    barred: Collection[int] = (),  # the tokens that are never produced
    prefixes: Sequence[Sequence[int]] | None = None,
    generator: torch.Generator | None = None,
    allows: Allows | None = None,
) -> list[list[Hypothesis]]:
    """Each input's continuations that end in time, best first; samples if given a generator.

    What is not allowed is left out as it is met: an input may end with fewer, or with none.
    """
    if len(first) == 0:
        return []
    prefixes, device = [()] * len(first) if prefixes is None else prefixes, first.device
    shared, longest = min(map(len, prefixes)), max(map(len, prefixes))
    padded = [[*prefix, *[-1] * (longest - len(prefix))] for prefix in prefixes]
    read, forced = torch.tensor(padded, dtype=torch.long, device=device).tensor_split([shared], 1)
    log_probs, state = walk.advance(state, torch.cat([first[:, None], read], 1))
    lengths = torch.arange(config.max_length + 1, dtype=torch.float64, device=device)
    divisors = lengths.clamp(min=1) ** config.length_penalty
    vocabulary, sets = torch.arange(log_probs.shape[1], device=device), ([*stops], [*barred])
    is_stop, is_barred = (torch.isin(vocabulary, vocabulary.new_tensor(each)) for each in sets)
    rules = _Rules(forced, is_stop, is_barred, divisors, config.floor, allows)
    beams = _Beams.start(len(first), config.beam_size, device)
    for step in range(longest - shared + config.max_length):
        beams, parents = _extend(beams, log_probs, rules, step=step, generator=generator)
        if len(parents) == 0:
            break
        if not torch.equal(parents, torch.arange(len(log_probs), device=device)):
            state = walk.select(state, parents)
        log_probs, state = walk.advance(state, beams.tokens[~beams.finished, -1:])
    return _hypotheses(beams, rules)


def _extend(
    beams: _Beams, log_probs: Tensor, rules: _Rules, *, step: int, generator: torch.Generator | None
) -> tuple[_Beams, Tensor]:
    """The beams a token longer, and the rows (R',) that the unfinished ones come from."""
    batch, size = len(rules.forced), len(beams.ranks) // len(rules.forced)
    inputs = torch.arange(batch, device=log_probs.device).repeat_interleave(size)  # (S,)
    live, lengths = ~beams.finished, rules.lengths(step)[inputs]
    allowed = rules.restrict(log_probs, inputs[live], step)  # (R, W)
    keys = allowed if generator is None else _add_noise(allowed, generator=generator)
    # no use for more than K, unless some are not allowed
    wanted = size if rules.allows is None else max(size, CHILDREN)
    keys, tokens = _best(keys, min(wanted, keys.shape[1]))  # (R, C)
    if keys.isnan().any():
        raise ValueError("the walk gave a log-probability that is not a number")
    gains = allowed.gather(1, tokens).double()
    totals = chances = beams.log_probs[live, None] + gains
    if generator is None:
        ranks = totals / rules.divisors[lengths[live], None]
    else:
        parents = beams.chances[live, None] - _total(allowed)
        chances, ranks = parents + gains, _truncate(parents + keys, beams.ranks[live, None])

    # column 0 is what a slot holds, if that is finished; the others are its children
    pool = ranks.new_full((batch * size, 1 + ranks.shape[1]), -math.inf)
    pool[~live, 0], pool[live, 1:] = beams.ranks[~live], ranks
    if rules.allows is not None:
        _leave_out(pool, beams, tokens, rules, allows=rules.allows)
    ranks, chosen = (best.flatten() for best in _best(pool.view(batch, -1), size))  # (S,)
    slots, columns = inputs * size + chosen // pool.shape[1], chosen % pool.shape[1]
    is_child = columns > 0
    picked = (live.cumsum(0) - 1)[slots], columns - 1  # any child where none is chosen
    added = tokens[picked]  # (S,)
    log_probs = torch.where(is_child, totals[picked], beams.log_probs[slots])
    is_ended = (rules.is_stop[added] | (log_probs < rules.floor)) & (lengths > 0)
    finished = ~is_child | ranks.isneginf() | is_ended
    extended = _Beams(
        torch.cat([beams.tokens[slots], added[:, None]], 1),
        log_probs,
        torch.where(is_child, chances[picked], beams.chances[slots]),
        ranks,
        torch.where(is_child, lengths, beams.lengths[slots]),
        finished,
    )
    return extended, picked[0][~finished]


def _leave_out(
    pool: Tensor, beams: _Beams, tokens: Tensor, rules: _Rules, *, allows: Allows
) -> None:
    """Give what is not allowed no rank (S, 1 + C), as far down as K of an input are allowed."""
    batch, size = len(rules.forced), len(beams.ranks) // len(rules.forced)
    rows, starts = (~beams.finished).cumsum(0) - 1, (rules.forced >= 0).sum(1).tolist()
    for own in range(batch):
        ranked = pool[own * size : (own + 1) * size].flatten().sort(descending=True, stable=True)
        found = 0
        for rank, at in zip(ranked.values.tolist(), ranked.indices.tolist(), strict=True):
            if found == size or rank == -math.inf:
                break
            slot, column = own * size + at // pool.shape[1], at % pool.shape[1]
            # what is finished or forced is not asked about
            if column and beams.tokens.shape[1] >= starts[own]:
                written = beams.tokens[slot, starts[own] :].tolist()
                child = int(tokens[rows[slot], column - 1])
                if not allows(own, [*written, child]):
                    pool[slot, column] = -math.inf
                    continue
            found += 1


def _best(values: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The highest values of each row and their columns, in order; of equals the leftmost."""
    found, columns = values.topk(min(size + 1, values.shape[1]))
    least, columns = found[:, size - 1 : size], columns[:, :size]
    if ((found[:, size:] == least) & ~least.isneginf()).any():
        # equals on both sides of the cut, about which topk promises nothing
        above, level = values > least, values == least
        kept = above | (level & (level.cumsum(1) <= size - above.sum(1, keepdim=True)))
        columns = kept.nonzero()[:, 1].view(len(values), size)
    columns = columns.sort(1).values
    found, order = values.gather(1, columns).sort(dim=1, descending=True, stable=True)
    return found, columns.gather(1, order)


def _total(log_probs: Tensor) -> Tensor:
    """The log-probability of all that is allowed (R, 1), a finite number even if nothing is."""
    total = log_probs.double().logsumexp(1, keepdim=True)
    return total.clamp(min=torch.finfo(total.dtype).min)


def _add_noise(log_probs: Tensor, *, generator: torch.Generator) -> Tensor:
    """Log-probabilities with Gumbel noise: (R, W)."""
    noise = torch.empty_like(log_probs, dtype=torch.float64).exponential_(generator=generator)
    return log_probs - noise.log_()


def _truncate(noisy: Tensor, highest: Tensor) -> Tensor:
    """Gumbels (R, C), best first, as they would be if the first were the highest (R, 1)."""
    # Kool, van Hoof & Welling 2019, appendix B.3; it keeps the order, so C of W are enough
    below = noisy - noisy[:, :1].clamp(min=torch.finfo(noisy.dtype).min)
    near, far = (-below.expm1()).log(), (-below.exp()).log1p()  # log(1 - exp(below))
    shift = highest - noisy + torch.where(below > -math.log(2), near, far)
    return highest - shift.clamp(min=0) - (-shift.abs()).exp().log1p()


def _hypotheses(beams: _Beams, rules: _Rules) -> list[list[Hypothesis]]:
    """The hypotheses of each input, without what was forced."""
    size, starts = len(beams.ranks) // len(rules.forced), (rules.forced >= 0).sum(1).tolist()
    scores = beams.log_probs / rules.divisors[beams.lengths]
    fields = (beams.tokens, beams.lengths, beams.log_probs, scores)
    rows = list(zip(*(field.tolist() for field in fields), strict=True))
    found: list[list[Hypothesis]] = [[] for _ in starts]
    for slot in (~beams.ranks.isneginf()).nonzero()[:, 0].tolist():
        (tokens, length, *numbers), start = rows[slot], starts[slot // size]
        found[slot // size].append(Hypothesis(tuple(tokens[start : start + length]), *numbers))
    return found
