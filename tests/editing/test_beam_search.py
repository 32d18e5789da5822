"""Beam search and sampling against enumeration, on models that depend on their whole history."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from redraft.editing.beam_search import (
    CANDIDATES_PER_BEAM,
    Constraint,
    Hypothesis,
    SearchConfig,
    beam_search,
)
from redraft.errors import ConfigError

START, END, LINE, PAD = 0, 1, 2, 3
HISTORIES = 20_011
REPLICAS = 20_000

Tokens = tuple[int, ...]
Draw = tuple[Tokens, ...]  # the sequences of one beam, best first

seeds = st.integers(0, 2**31)
widths = st.integers(3, 5)
penalties = st.sampled_from([0.0, 0.6, 1.0, 2.0])
counts = st.integers(1, 4)  # of inputs
quick = settings(deadline=None, max_examples=40)


@dataclass
class TableModel:
    """Log-probabilities indexed by a digest of the input's row and all tokens."""

    table: Tensor  # (HISTORIES, W)
    shapes: list[tuple[int, int]] = field(default_factory=list)  # of the tokens of each step
    read: list[Tokens] = field(default_factory=list)  # every prefix, the index of its input first
    selections: int = 0

    @classmethod
    def random(cls, seed: int, width: int, *, holes: float = 0.0) -> "TableModel":
        """Return a random model; a share of the tokens is impossible, but never the end token."""
        generator = torch.Generator().manual_seed(seed)
        logits = 1.5 * torch.randn((HISTORIES, width), generator=generator)
        is_hole = torch.rand((HISTORIES, width), generator=generator) < holes
        is_hole[:, END] = False
        return cls(logits.masked_fill(is_hole, -math.inf).log_softmax(1))

    def step(self, state: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        assert len(state) == len(tokens)
        self.shapes.append((tokens.shape[0], tokens.shape[1]))
        state = torch.cat([state, tokens], 1)
        self.read += map(tuple, state.tolist())
        digest = torch.zeros(len(state), dtype=torch.long)
        for column in state.T:
            digest = (digest * 8191 + column + 17) % HISTORIES
        return self.table[digest], state

    def reorder(self, state: Tensor, rows: Tensor) -> Tensor:
        self.selections += 1
        return state[rows]

    def after(self, history: Sequence[int]) -> list[float]:
        """Return the log-probabilities of the token after one history."""
        nothing = torch.zeros((1, 0), dtype=torch.long)
        log_probs, _ = TableModel(self.table).step(nothing, torch.tensor([history]))
        return [float(log_prob) for log_prob in log_probs[0]]


@dataclass(frozen=True)
class Case:
    """A search over a table model."""

    next_tokens: TableModel
    config: SearchConfig
    eos_ids: Collection[int] = (END,)
    suppressed: Collection[int] = ()
    constraint: Constraint | None = None

    def run(
        self, *, inputs: Sequence[int] = (0,), generator: torch.Generator | None = None
    ) -> list[list[Hypothesis]]:
        return beam_search(
            self.next_tokens,
            torch.tensor(inputs)[:, None],
            self.config,
            bos=torch.full((len(inputs),), START),
            eos_ids=self.eos_ids,
            suppressed=self.suppressed,
            generator=generator,
            constraint=self.constraint,
        )

    def children(self, history: Tokens, tokens: Tokens) -> list[tuple[int, float]]:
        """Return the tokens that may follow a continuation, with their log-probabilities."""
        is_last = len(tokens) + 1 == self.config.max_length
        return [
            (token, log_prob)
            for token, log_prob in enumerate(self.next_tokens.after([*history, *tokens]))
            if log_prob > -math.inf and token not in self.suppressed
            if token in self.eos_ids or not is_last
            if self.constraint is None or self.constraint(history[0], [*tokens, token])
        ]

    def enumerate(self, history: Tokens = (0, START), tokens: Tokens = ()) -> dict[Tokens, float]:
        """Return the log-probability of every continuation that ends in time."""
        found: dict[Tokens, float] = {}
        for token, log_prob in self.children(history, tokens):
            longer = (*tokens, token)
            rest = {longer: 0.0} if token in self.eos_ids else self.enumerate(history, longer)
            found |= {ended: log_prob + more for ended, more in rest.items()}
        return found

    def probs(self, history: Tokens = (0, START), tokens: Tokens = ()) -> dict[Tokens, float]:
        """Return the probability of every continuation, renormalised over allowed tokens."""
        children = self.children(history, tokens)
        total = math.fsum(math.exp(log_prob) for _, log_prob in children)
        found: dict[Tokens, float] = {}
        for token, log_prob in children:
            longer = (*tokens, token)
            rest = {longer: 1.0} if token in self.eos_ids else self.probs(history, longer)
            found |= {end: math.exp(log_prob) / total * more for end, more in rest.items()}
        return found

    def score(self, tokens: Tokens, log_prob: float) -> float:
        return log_prob / math.pow(len(tokens), self.config.length_penalty)

    def search_slowly(self, history: Tokens) -> list[tuple[Tokens, float]]:
        """Search the beam of one input with plain loops."""
        beam: list[tuple[Tokens, float]] = [((), 0.0)]
        for _ in range(self.config.max_length):
            pool = []
            for tokens, log_prob in beam:
                if tokens and tokens[-1] in self.eos_ids:
                    pool.append((tokens, log_prob))
                    continue
                for token, more in self.children(history, tokens):
                    pool.append(((*tokens, token), log_prob + more))
            pool.sort(key=lambda entry: -self.score(*entry))
            beam = pool[: self.config.beam_size]
        return beam

    def sum(self, history: Tokens, tokens: Tokens) -> float:
        """Add up the log-probabilities of a continuation, token by token."""
        return math.fsum(
            self.next_tokens.after([*history, *tokens[:i]])[token] for i, token in enumerate(tokens)
        )


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sequences(hypotheses: Sequence[Hypothesis]) -> list[Tokens]:
    return [hypothesis.tokens for hypothesis in hypotheses]


def assert_best_first(case: Case, found: list[Hypothesis], expected: dict[Tokens, float]) -> None:
    """Check that the expected hypotheses are found, sorted by score, and no others."""
    assert len(found) == len(expected)
    for hypothesis in found:
        log_prob = expected[hypothesis.tokens]
        assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-5)
        assert hypothesis.score == pytest.approx(case.score(hypothesis.tokens, log_prob), abs=1e-5)
    assert all(better.score >= worse.score for better, worse in pairwise(found))


def without_replacement(probs: dict[Tokens, float]) -> dict[Draw, float]:
    """Return the probability of each ordered pair, drawn without replacement."""
    return {
        (one, other): probs[one] * probs[other] / (1 - probs[one])
        for one, other in permutations(probs, 2)
    }


def assert_frequencies(draws: Sequence[Draw], probs: dict[Draw, float]) -> None:
    """Test frequencies by chi-square, with rare outcomes pooled."""
    counts, total = Counter(draws), len(draws)
    assert set(counts) <= set(probs)
    common = [key for key, prob in probs.items() if prob * total >= 8]
    observed = [counts[key] for key in common]
    expected = [probs[key] * total for key in common]
    rare = total - sum(expected)
    if rare > 1e-6 * total:
        observed, expected = [*observed, total - sum(observed)], [*expected, rare]
    assert len(expected) > 5
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-3


# Beam search


@quick
@given(seeds, widths, st.integers(1, 4), penalties, st.sampled_from([0.0, 0.3]))
def test_a_beam_with_room_for_all_finds_what_enumeration_finds(
    seed: int, width: int, max_length: int, penalty: float, holes: float
) -> None:
    max_length = min(max_length, 3 if width > 3 else 4)
    config = SearchConfig(width**max_length, max_length, penalty)
    case = Case(TableModel.random(seed, width, holes=holes), config)
    (found,) = case.run()
    assert_best_first(case, found, case.enumerate())


@quick
@given(seeds, st.integers(1, 4), penalties, st.sampled_from([0.0, 0.4, 0.8]), counts)
def test_a_narrow_beam_finds_what_a_plain_loop_over_hypotheses_finds(
    seed: int, beam_size: int, penalty: float, holes: float, inputs: int
) -> None:
    config = SearchConfig(beam_size, 4, penalty)
    case = Case(
        TableModel.random(seed, 5, holes=holes), config, eos_ids=(END, LINE), suppressed=(PAD,)
    )
    for number, found in enumerate(case.run(inputs=range(inputs))):
        expected = case.search_slowly((number, START))
        assert sequences(found) == [tokens for tokens, _ in expected]
        assert [hypothesis.log_prob for hypothesis in found] == pytest.approx(
            [log_prob for _, log_prob in expected], abs=1e-5
        )


@quick
@given(seeds, st.integers(1, 5), st.sampled_from([0.0, 1.0]))
def test_ties_go_to_the_earlier_beam_and_then_to_the_lower_token(
    seed: int, beam_size: int, penalty: float
) -> None:
    numbers = torch.randint(1, 3, (HISTORIES, 7), generator=seeded(seed))
    case = Case(TableModel(-numbers.float()), SearchConfig(beam_size, 4, penalty))
    (found,) = case.run()
    assert sequences(found) == [tokens for tokens, _ in case.search_slowly((0, START))]


def test_ties_in_a_large_vocabulary_go_to_the_lowest_tokens() -> None:
    next_tokens = TableModel(torch.full((1, 1), -math.log(10_000)).expand(HISTORIES, 10_000))
    (found,) = Case(next_tokens, SearchConfig(4, 2), eos_ids=(9_999,)).run()
    assert sequences(found) == [(0, 9_999), (1, 9_999), (2, 9_999), (3, 9_999)]


@quick
@given(seeds, widths)
def test_a_beam_of_one_takes_the_most_probable_token_at_every_step(seed: int, width: int) -> None:
    case = Case(TableModel.random(seed, width), SearchConfig(max_length=6))
    ((found,),) = case.run()
    tokens: Tokens = ()
    while END not in tokens and len(tokens) < 5:
        log_probs = case.next_tokens.after([0, START, *tokens])
        tokens = (*tokens, log_probs.index(max(log_probs)))
    assert found.tokens == (tokens if END in tokens else (*tokens, END))


@quick
@given(seeds, st.integers(1, 4), st.floats(-8.0, -0.5))
def test_a_hypothesis_ends_where_it_falls_below_the_floor(
    seed: int, beam_size: int, floor: float
) -> None:
    case = Case(TableModel.random(seed, 4), SearchConfig(beam_size, 6, min_log_prob=floor))
    (found,) = case.run()
    assert found
    for hypothesis in found:
        before = case.sum((0, START), hypothesis.tokens[:-1])
        assert before >= floor - 1e-5
        assert END not in hypothesis.tokens[:-1]
        assert hypothesis.tokens[-1] == END or hypothesis.log_prob < floor


@quick
@given(seeds, st.integers(1, 5), penalties, counts, st.booleans())
def test_the_log_probability_is_the_sum_over_tokens(
    seed: int, beam_size: int, penalty: float, inputs: int, is_sampled: bool
) -> None:
    case = Case(TableModel.random(seed, 4), SearchConfig(beam_size, 5, penalty), suppressed=(PAD,))
    generator = seeded(seed) if is_sampled else None
    for number, found in enumerate(case.run(inputs=range(inputs), generator=generator)):
        for hypothesis in found:
            log_prob = case.sum((number, START), hypothesis.tokens)
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-5)
            score = log_prob / len(hypothesis.tokens) ** penalty
            assert hypothesis.score == pytest.approx(score, abs=1e-5)


@quick
@given(seeds, st.integers(1, 4), penalties, counts)
def test_an_input_in_a_batch_gets_what_it_gets_alone(
    seed: int, beam_size: int, penalty: float, inputs: int
) -> None:
    config = SearchConfig(beam_size, 4, penalty)
    case = Case(TableModel.random(seed, 5, holes=0.2), config, eos_ids=(END, LINE))
    together = case.run(inputs=range(inputs))
    alone = [case.run(inputs=[number])[0] for number in range(inputs)]
    assert together == alone


@quick
@given(seeds, st.integers(1, 3), counts, st.booleans())
def test_only_ended_hypotheses_come_out_without_suppressed_tokens_and_in_time(
    seed: int, beam_size: int, inputs: int, is_sampled: bool
) -> None:
    stops, suppressed = {END, LINE}, {START, PAD}
    case = Case(TableModel.random(seed, 6), SearchConfig(beam_size, 3), stops, suppressed)
    generator = seeded(seed) if is_sampled else None
    for found in case.run(inputs=range(inputs), generator=generator):
        assert len(found) == beam_size == len(set(sequences(found)))
        for *before, last in sequences(found):
            assert last in stops
            assert not (stops | suppressed) & set(before)
            assert len(before) < 3


def test_where_nothing_can_end_nothing_is_found() -> None:
    next_tokens = TableModel.random(1, 4)
    next_tokens.table[:, END] = -math.inf
    assert Case(next_tokens, SearchConfig(3, 4)).run() == [[]]
    assert Case(next_tokens, SearchConfig(3, 4)).run(generator=seeded(1)) == [[]]
    assert Case(TableModel.random(1, 4), SearchConfig(3, 4), suppressed=(END,)).run() == [[]]


def test_without_inputs_nothing_is_read() -> None:
    case = Case(TableModel.random(1, 4), SearchConfig())
    assert case.run(inputs=()) == []
    assert case.next_tokens.shapes == []


# Calls of the model


@quick
@given(seeds, st.integers(1, 4), counts, st.booleans())
def test_every_position_is_read_once_and_nothing_after_an_end(
    seed: int, beam_size: int, inputs: int, is_sampled: bool
) -> None:
    case = Case(TableModel.random(seed, 5), SearchConfig(beam_size, 4), eos_ids=(END, LINE))
    generator = seeded(seed) if is_sampled else None
    case.run(inputs=range(inputs), generator=generator)
    first, *later = case.next_tokens.shapes
    assert first == (inputs, 1)
    assert all(width == 1 and 0 < rows <= beam_size * inputs for rows, width in later)
    assert len(case.next_tokens.read) == len(set(case.next_tokens.read))
    for _, _, *tokens in case.next_tokens.read:
        assert not {END, LINE} & set(tokens)
        assert len(tokens) < 4  # the end token is not fed back


def test_finished_inputs_are_not_computed_any_more() -> None:
    next_tokens = TableModel.random(3, 5)
    lengths = [
        len(found.tokens) for (found,) in Case(next_tokens, SearchConfig()).run(inputs=range(9))
    ]
    assert len(set(lengths)) > 2
    rows = [rows for rows, _ in next_tokens.shapes]
    assert rows == [sum(length > step for length in lengths) for step in range(max(lengths))]
    assert next_tokens.selections == len(set(lengths)) - 1  # the state is not reordered in between


# Sampling


def draw(case: Case, *, seed: int) -> list[Draw]:
    """Sample often for the same input."""
    searched = case.run(inputs=[0] * REPLICAS, generator=seeded(seed))
    return [tuple(sequences(found)) for found in searched]


@pytest.mark.parametrize("suppressed", [(), (PAD,)])
def test_a_beam_of_one_samples_each_token_by_its_probability(suppressed: Tokens) -> None:
    case = Case(TableModel.random(4, 4), SearchConfig(max_length=3), suppressed=suppressed)
    probs = case.probs()
    assert math.fsum(probs.values()) == pytest.approx(1)
    found = draw(case, seed=5)
    assert_frequencies(found, {(tokens,): prob for tokens, prob in probs.items()})


@pytest.mark.parametrize("suppressed", [(), (PAD,)])
def test_a_beam_of_two_samples_without_replacement(suppressed: Tokens) -> None:
    next_tokens = TableModel.random(5, 5)
    next_tokens.table[:, PAD] += 2  # suppressed and truncated hypotheses are probable
    next_tokens.table.copy_(next_tokens.table.log_softmax(1))
    case = Case(next_tokens, SearchConfig(2, 3), eos_ids=(END, LINE), suppressed=suppressed)
    probs = case.probs()
    pairs = without_replacement(probs)
    found = draw(case, seed=6)
    assert_frequencies(found, pairs)
    for tokens in probs:
        inclusion = math.fsum(prob for pair, prob in pairs.items() if tokens in pair)
        share = sum(tokens in pair for pair in found) / REPLICAS
        assert abs(share - inclusion) < 5 * math.sqrt(inclusion / REPLICAS)


@quick
@given(seeds, st.integers(1, 30), st.sampled_from([0.0, 0.5]))
def test_samples_are_distinct_and_exhaustive_if_the_beam_has_room(
    seed: int, beam_size: int, holes: float
) -> None:
    case = Case(TableModel.random(seed, 3, holes=holes), SearchConfig(beam_size, 4))
    (found,) = case.run(generator=seeded(seed))
    possible = case.enumerate()
    assert len(found) == min(beam_size, len(possible))
    assert len(set(sequences(found))) == len(found)
    assert set(sequences(found)) <= set(possible)


def test_the_same_generator_draws_the_same_sample() -> None:
    case = Case(TableModel.random(9, 5), SearchConfig(4, 6, 1.0))
    one, same, other = (case.run(inputs=range(5), generator=seeded(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_a_sample_stays_exact_where_probabilities_are_tiny() -> None:
    next_tokens = TableModel.random(10, 4)
    next_tokens.table.copy_((next_tokens.table * 60).log_softmax(1))
    (found,) = Case(next_tokens, SearchConfig(40, 3)).run(generator=seeded(1))
    assert set(sequences(found)) == set(Case(next_tokens, SearchConfig(1, 3)).enumerate())
    assert all(math.isfinite(hypothesis.log_prob) for hypothesis in found)


# Errors


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SearchConfig(beam_size=0), "beam_size is 0; make it 1 or more"),
        (lambda: SearchConfig(max_length=-2), "max_length is -2; make it 1 or more"),
        (
            lambda: SearchConfig(length_penalty=-0.5),
            r"length_penalty is -0.5; make it 0 \(none\) or more",
        ),
        (
            lambda: SearchConfig(length_penalty=math.nan),
            r"length_penalty is nan; make it 0 \(none\) or more",
        ),
        (
            lambda: SearchConfig(length_penalty=math.inf),
            r"length_penalty is inf; make it 0 \(none\) or more",
        ),
    ],
)
def test_a_config_out_of_range_says_what_to_do(
    build: Callable[[], SearchConfig], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        build()


def test_a_model_that_returns_nan_is_an_error() -> None:
    next_tokens = TableModel(torch.full((HISTORIES, 4), math.nan))
    with pytest.raises(ValueError, match="not a number"):
        Case(next_tokens, SearchConfig()).run()


# Constraints


def by_digest(share: int) -> Constraint:
    """Return a constraint that accepts a share of sequences, by a digest of input and tokens."""
    return lambda row, tokens: (row + sum(3**i * t for i, t in enumerate(tokens))) % share > 0


@quick
@given(seeds, widths, st.integers(1, 4), penalties, st.integers(2, 5), st.booleans())
def test_exactly_the_hypotheses_that_satisfy_the_constraint_are_found(
    seed: int, width: int, max_length: int, penalty: float, share: int, is_sampled: bool
) -> None:
    config = SearchConfig(400, max_length, penalty)
    case = Case(TableModel.random(seed, width), config, constraint=by_digest(share))
    generator = seeded(seed) if is_sampled else None
    found = case.run(inputs=[0, 1], generator=generator)
    for number, hypotheses in enumerate(found):
        expected = case.enumerate((number, START))
        assert set(sequences(hypotheses)) == set(expected)
        if not is_sampled:
            assert_best_first(case, hypotheses, expected)


@quick
@given(seeds, widths, st.integers(1, 4), st.integers(2, 5))
def test_a_narrow_beam_drops_rejected_hypotheses_before_it_fills(
    seed: int, width: int, size: int, share: int
) -> None:
    config = SearchConfig(size, 5)
    case = Case(TableModel.random(seed, width), config, constraint=by_digest(share))
    (found,) = case.run()
    assert sequences(found) == [tokens for tokens, _ in case.search_slowly((0, START))]


def test_a_token_is_found_however_many_likelier_ones_are_rejected() -> None:
    width = CANDIDATES_PER_BEAM
    table = torch.linspace(0, -1, width).log_softmax(0).expand(HISTORIES, width).clone()
    case = Case(
        TableModel(table),
        SearchConfig(1, 2),
        constraint=lambda _, tokens: tokens in ([width - 1], [width - 1, END]),
    )
    assert sequences(case.run()[0]) == [(width - 1, END)]
