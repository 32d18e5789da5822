"""Beam search and sampling against enumeration, on walks that depend on their whole history."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from redraft.editing.beam_search import CHILDREN, Allows, Hypothesis, SearchConfig, beam_search
from redraft.errors import ConfigError

START, END, LINE, PAD = 0, 1, 2, 3
HISTORIES = 20_011
REPLICAS = 20_000

Tokens = tuple[int, ...]
Draw = tuple[Tokens, ...]  # what one beam holds, best first

seeds = st.integers(0, 2**31)
widths = st.integers(3, 5)
penalties = st.sampled_from([0.0, 0.6, 1.0, 2.0])
prefixes_of_inputs = st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=4)
quick = settings(deadline=None, max_examples=40)


@dataclass
class TableWalk:
    """Log-probabilities looked up by a digest of all that was read, the input's number first."""

    table: Tensor  # (HISTORIES, W)
    shapes: list[tuple[int, int]] = field(default_factory=list)  # of the tokens at each reading
    read: list[Tokens] = field(default_factory=list)  # every history that was ever reached
    selections: int = 0

    @classmethod
    def random(cls, seed: int, width: int, *, holes: float = 0.0) -> "TableWalk":
        """A walk on which a share of the tokens is impossible, but never the end."""
        generator = torch.Generator().manual_seed(seed)
        logits = 1.5 * torch.randn((HISTORIES, width), generator=generator)
        is_hole = torch.rand((HISTORIES, width), generator=generator) < holes
        is_hole[:, END] = False
        return cls(logits.masked_fill(is_hole, -math.inf).log_softmax(1))

    def advance(self, state: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        assert len(state) == len(tokens)
        self.shapes.append((tokens.shape[0], tokens.shape[1]))
        state = torch.cat([state, tokens], 1)
        self.read += map(tuple, state.tolist())
        digest = torch.zeros(len(state), dtype=torch.long)
        for column in state.T:
            digest = (digest * 8191 + column + 17) % HISTORIES
        return self.table[digest], state

    def select(self, state: Tensor, rows: Tensor) -> Tensor:
        self.selections += 1
        return state[rows]

    def after(self, history: Sequence[int]) -> list[float]:
        """The log-probabilities of the next token, one history at a time."""
        nothing = torch.zeros((1, 0), dtype=torch.long)
        log_probs, _ = TableWalk(self.table).advance(nothing, torch.tensor([history]))
        return [float(log_prob) for log_prob in log_probs[0]]


@dataclass(frozen=True)
class Case:
    """A search: the walk, what is allowed, and the inputs by number."""

    walk: TableWalk
    config: SearchConfig
    stops: Collection[int] = (END,)
    barred: Collection[int] = ()
    allows: Allows | None = None

    def run(
        self,
        prefixes: Sequence[Sequence[int]] | None = None,
        *,
        inputs: Sequence[int] = (0,),
        generator: torch.Generator | None = None,
    ) -> list[list[Hypothesis]]:
        return beam_search(
            self.walk,
            torch.tensor(inputs)[:, None],
            self.config,
            first=torch.full((len(inputs),), START),
            stops=self.stops,
            barred=self.barred,
            prefixes=prefixes,
            generator=generator,
            allows=self.allows,
        )

    def children(self, history: Tokens, tokens: Tokens) -> list[tuple[int, float]]:
        """The tokens that may follow a continuation, with their log-probabilities."""
        is_last = len(tokens) + 1 == self.config.max_length
        return [
            (token, log_prob)
            for token, log_prob in enumerate(self.walk.after([*history, *tokens]))
            if log_prob > -math.inf and token not in self.barred
            if token in self.stops or not is_last
            if self.allows is None or self.allows(history[0], [*tokens, token])
        ]

    def enumerate(self, history: Tokens = (0, START), tokens: Tokens = ()) -> dict[Tokens, float]:
        """Every continuation that ends in time, with its log-probability."""
        found: dict[Tokens, float] = {}
        for token, log_prob in self.children(history, tokens):
            longer = (*tokens, token)
            rest = {longer: 0.0} if token in self.stops else self.enumerate(history, longer)
            found |= {ended: log_prob + more for ended, more in rest.items()}
        return found

    def chances(self, history: Tokens = (0, START), tokens: Tokens = ()) -> dict[Tokens, float]:
        """Every continuation, with its probability if each token is drawn from what is allowed."""
        children = self.children(history, tokens)
        total = math.fsum(math.exp(log_prob) for _, log_prob in children)
        found: dict[Tokens, float] = {}
        for token, log_prob in children:
            longer = (*tokens, token)
            rest = {longer: 1.0} if token in self.stops else self.chances(history, longer)
            found |= {end: math.exp(log_prob) / total * more for end, more in rest.items()}
        return found

    def score(self, tokens: Tokens, log_prob: float) -> float:
        return log_prob / math.pow(len(tokens), self.config.length_penalty)

    def search_slowly(self, history: Tokens) -> list[tuple[Tokens, float]]:
        """Beam search of one input, one hypothesis after the other."""
        beam: list[tuple[Tokens, float]] = [((), 0.0)]
        for _ in range(self.config.max_length):
            pool = []
            for tokens, log_prob in beam:
                if tokens and tokens[-1] in self.stops:
                    pool.append((tokens, log_prob))
                    continue
                for token, more in self.children(history, tokens):
                    pool.append(((*tokens, token), log_prob + more))
            pool.sort(key=lambda entry: -self.score(*entry))
            beam = pool[: self.config.beam_size]
        return beam

    def sum(self, history: Tokens, tokens: Tokens) -> float:
        """The log-probability of a continuation, token by token."""
        return math.fsum(
            self.walk.after([*history, *tokens[:at]])[token] for at, token in enumerate(tokens)
        )


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sequences(hypotheses: Sequence[Hypothesis]) -> list[Tokens]:
    return [hypothesis.tokens for hypothesis in hypotheses]


def assert_best_first(case: Case, found: list[Hypothesis], expected: dict[Tokens, float]) -> None:
    """All that is expected and nothing else, in the order of the scores."""
    assert len(found) == len(expected)
    for hypothesis in found:
        log_prob = expected[hypothesis.tokens]
        assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-5)
        assert hypothesis.score == pytest.approx(case.score(hypothesis.tokens, log_prob), abs=1e-5)
    assert all(better.score >= worse.score for better, worse in pairwise(found))


def without_replacement(chances: dict[Tokens, float]) -> dict[Draw, float]:
    """The probability of each pair, one drawn after the other."""
    return {
        (one, other): chances[one] * chances[other] / (1 - chances[one])
        for one, other in permutations(chances, 2)
    }


def assert_frequencies(draws: Sequence[Draw], chances: dict[Draw, float]) -> None:
    """A chi-square test, what is rarely expected taken together."""
    counts, total = Counter(draws), len(draws)
    assert set(counts) <= set(chances)
    common = [key for key, chance in chances.items() if chance * total >= 8]
    observed = [counts[key] for key in common]
    expected = [chances[key] * total for key in common]
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
    case = Case(TableWalk.random(seed, width, holes=holes), config)
    (found,) = case.run()
    assert_best_first(case, found, case.enumerate())


@quick
@given(seeds, st.integers(1, 4), penalties, st.sampled_from([0.0, 0.4]), prefixes_of_inputs)
@example(0, 4, 0.0, 0.4, [[0], []])  # one input has less than K to offer, and ends first
def test_a_narrow_beam_finds_what_a_plain_loop_over_hypotheses_finds(
    seed: int, beam_size: int, penalty: float, holes: float, prefixes: list[list[int]]
) -> None:
    config = SearchConfig(beam_size, 4, penalty)
    case = Case(TableWalk.random(seed, 5, holes=holes), config, stops=(END, LINE), barred=(PAD,))
    inputs = range(len(prefixes))
    for number, found in enumerate(case.run(prefixes, inputs=inputs)):
        expected = case.search_slowly((number, START, *prefixes[number]))
        assert sequences(found) == [tokens for tokens, _ in expected]
        assert [hypothesis.log_prob for hypothesis in found] == pytest.approx(
            [log_prob for _, log_prob in expected], abs=1e-5
        )


@quick
@given(seeds, st.integers(1, 5), st.sampled_from([0.0, 1.0]))
def test_of_equals_the_earlier_beam_and_then_the_lower_token_is_kept(
    seed: int, beam_size: int, penalty: float
) -> None:
    numbers = torch.randint(1, 3, (HISTORIES, 7), generator=seeded(seed))
    case = Case(TableWalk(-numbers.float()), SearchConfig(beam_size, 4, penalty))
    (found,) = case.run()
    assert sequences(found) == [tokens for tokens, _ in case.search_slowly((0, START))]


def test_of_many_equals_in_a_large_vocabulary_the_lowest_tokens_are_kept() -> None:
    walk = TableWalk(torch.full((1, 1), -math.log(10_000)).expand(HISTORIES, 10_000))
    (found,) = Case(walk, SearchConfig(4, 2), stops=(9_999,)).run()
    assert sequences(found) == [(0, 9_999), (1, 9_999), (2, 9_999), (3, 9_999)]


@quick
@given(seeds, widths)
def test_a_beam_of_one_takes_the_likeliest_token_at_every_step(seed: int, width: int) -> None:
    case = Case(TableWalk.random(seed, width), SearchConfig(max_length=6))
    ((found,),) = case.run()
    tokens: Tokens = ()
    while END not in tokens and len(tokens) < 5:
        log_probs = case.walk.after([0, START, *tokens])
        tokens = (*tokens, log_probs.index(max(log_probs)))
    assert found.tokens == (tokens if END in tokens else (*tokens, END))


@quick
@given(seeds, st.integers(1, 4), st.floats(-8.0, -0.5))
def test_a_hypothesis_ends_where_it_falls_below_the_floor(
    seed: int, beam_size: int, floor: float
) -> None:
    case = Case(TableWalk.random(seed, 4), SearchConfig(beam_size, 6, floor=floor))
    (found,) = case.run()
    assert found
    for hypothesis in found:
        before = case.sum((0, START), hypothesis.tokens[:-1])
        assert before >= floor - 1e-5
        assert END not in hypothesis.tokens[:-1]
        assert hypothesis.tokens[-1] == END or hypothesis.log_prob < floor


@quick
@given(seeds, st.integers(1, 5), penalties, prefixes_of_inputs, st.booleans())
def test_the_log_probability_is_the_walks_own_sum_after_the_prefix(
    seed: int, beam_size: int, penalty: float, prefixes: list[list[int]], is_sampled: bool
) -> None:
    case = Case(TableWalk.random(seed, 4), SearchConfig(beam_size, 5, penalty), barred=(PAD,))
    generator = seeded(seed) if is_sampled else None
    searched = case.run(prefixes, inputs=range(len(prefixes)), generator=generator)
    for number, (prefix, found) in enumerate(zip(prefixes, searched, strict=True)):
        for hypothesis in found:
            log_prob = case.sum((number, START, *prefix), hypothesis.tokens)
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-5)
            score = log_prob / len(hypothesis.tokens) ** penalty
            assert hypothesis.score == pytest.approx(score, abs=1e-5)


@quick
@given(seeds, st.integers(1, 4), penalties, prefixes_of_inputs)
def test_an_input_in_a_batch_gets_what_it_gets_alone(
    seed: int, beam_size: int, penalty: float, prefixes: list[list[int]]
) -> None:
    config = SearchConfig(beam_size, 4, penalty)
    case = Case(TableWalk.random(seed, 5, holes=0.2), config, stops=(END, LINE))
    together = case.run(prefixes, inputs=range(len(prefixes)))
    alone = [case.run([prefix], inputs=[number])[0] for number, prefix in enumerate(prefixes)]
    assert together == alone


@quick
@given(seeds, st.integers(1, 3), prefixes_of_inputs, st.booleans())
def test_only_ended_hypotheses_come_out_without_barred_tokens_and_in_time(
    seed: int, beam_size: int, prefixes: list[list[int]], is_sampled: bool
) -> None:
    stops, barred = {END, LINE}, {START, PAD}
    case = Case(TableWalk.random(seed, 6), SearchConfig(beam_size, 3), stops, barred)
    generator = seeded(seed) if is_sampled else None
    for found in case.run(prefixes, inputs=range(len(prefixes)), generator=generator):
        assert len(found) == beam_size == len(set(sequences(found)))
        for *before, last in sequences(found):
            assert last in stops
            assert not (stops | barred) & set(before)
            assert len(before) < 3


def test_where_nothing_can_end_nothing_is_found() -> None:
    walk = TableWalk.random(1, 4)
    walk.table[:, END] = -math.inf
    assert Case(walk, SearchConfig(3, 4)).run() == [[]]
    assert Case(walk, SearchConfig(3, 4)).run(generator=seeded(1)) == [[]]
    assert Case(TableWalk.random(1, 4), SearchConfig(3, 4), barred=(END,)).run() == [[]]


def test_without_inputs_nothing_is_read() -> None:
    case = Case(TableWalk.random(1, 4), SearchConfig())
    assert case.run(inputs=()) == []
    assert case.walk.shapes == []


# What is read


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_prefix_may_hold_stops_and_barred_or_impossible_tokens(beam_size: int) -> None:
    walk = TableWalk.random(2, 5)
    walk.table[:, 4] = -math.inf
    case = Case(walk, SearchConfig(beam_size, 3), barred=(PAD,))
    prefixes = [[END, PAD, 4], [PAD], [END, 4]]
    for number, found in enumerate(case.run(prefixes, inputs=[0, 1, 2])):
        expected = case.search_slowly((number, START, *prefixes[number]))
        assert sequences(found) == [tokens for tokens, _ in expected]


@quick
@given(seeds, st.integers(1, 4), prefixes_of_inputs, st.booleans())
def test_every_position_is_read_once_and_nothing_after_an_end(
    seed: int, beam_size: int, prefixes: list[list[int]], is_sampled: bool
) -> None:
    case = Case(TableWalk.random(seed, 5), SearchConfig(beam_size, 4), stops=(END, LINE))
    generator = seeded(seed) if is_sampled else None
    case.run(prefixes, inputs=range(len(prefixes)), generator=generator)
    (rows, width), *later = case.walk.shapes
    assert (rows, width) == (len(prefixes), 1 + min(map(len, prefixes)))
    assert all(width == 1 and 0 < rows <= beam_size * len(prefixes) for rows, width in later)
    assert len(case.walk.read) == len(set(case.walk.read))
    for number, _, *tokens in case.walk.read:
        prefix = prefixes[number]
        assert tokens[: len(prefix)] == prefix[: len(tokens)]
        assert not {END, LINE} & set(tokens[len(prefix) :])
        assert len(tokens) - len(prefix) < 4  # what ends it is not read


def test_inputs_that_have_ended_are_computed_no_more() -> None:
    walk = TableWalk.random(3, 5)
    lengths = [len(found.tokens) for (found,) in Case(walk, SearchConfig()).run(inputs=range(9))]
    assert len(set(lengths)) > 2
    rows = [rows for rows, _ in walk.shapes]
    assert rows == [sum(length > step for length in lengths) for step in range(max(lengths))]
    assert walk.selections == len(set(lengths)) - 1  # and the state is not copied in between


# Sampling


def draw(case: Case, prefixes: Sequence[Tokens], *, seed: int) -> list[Draw]:
    """What is sampled after each prefix, for one and the same input."""
    searched = case.run(prefixes, inputs=[0] * len(prefixes), generator=seeded(seed))
    return [tuple(sequences(found)) for found in searched]


@pytest.mark.parametrize("barred", [(), (PAD,)])
@pytest.mark.parametrize("prefix", [(), (2, 2)])
def test_a_beam_of_one_samples_each_token_by_its_probability(
    barred: Tokens, prefix: Tokens
) -> None:
    case = Case(TableWalk.random(4, 4), SearchConfig(max_length=3), barred=barred)
    chances = case.chances((0, START, *prefix))
    assert math.fsum(chances.values()) == pytest.approx(1)
    found = draw(case, [prefix] * REPLICAS, seed=5)
    assert_frequencies(found, {(tokens,): chance for tokens, chance in chances.items()})


@pytest.mark.parametrize("barred", [(), (PAD,)])
def test_a_beam_of_two_samples_without_replacement(barred: Tokens) -> None:
    walk = TableWalk.random(5, 5)
    walk.table[:, PAD] += 2  # what is barred and what comes too late was likely
    walk.table.copy_(walk.table.log_softmax(1))
    case = Case(walk, SearchConfig(2, 3), stops=(END, LINE), barred=barred)
    chances = case.chances()
    pairs = without_replacement(chances)
    found = draw(case, [()] * REPLICAS, seed=6)
    assert_frequencies(found, pairs)
    for tokens in chances:
        inclusion = math.fsum(chance for pair, chance in pairs.items() if tokens in pair)
        share = sum(tokens in pair for pair in found) / REPLICAS
        assert abs(share - inclusion) < 5 * math.sqrt(inclusion / REPLICAS)


def test_prefixes_of_different_lengths_do_not_bias_a_sample() -> None:
    case = Case(TableWalk.random(7, 4), SearchConfig(2, 2))
    prefixes = [(2,), (2, 0, 2)]
    found = draw(case, prefixes * (REPLICAS // 2), seed=8)
    for number, prefix in enumerate(prefixes):
        pairs = without_replacement(case.chances((0, START, *prefix)))
        assert_frequencies(found[number::2], pairs)


@quick
@given(seeds, st.integers(1, 30), st.sampled_from([0.0, 0.5]))
def test_a_sample_has_no_sequence_twice_and_all_if_there_is_room(
    seed: int, beam_size: int, holes: float
) -> None:
    case = Case(TableWalk.random(seed, 3, holes=holes), SearchConfig(beam_size, 4))
    (found,) = case.run(generator=seeded(seed))
    possible = case.enumerate()
    assert len(found) == min(beam_size, len(possible))
    assert len(set(sequences(found))) == len(found)
    assert set(sequences(found)) <= set(possible)


def test_the_same_generator_draws_the_same_sample() -> None:
    case = Case(TableWalk.random(9, 5), SearchConfig(4, 6, 1.0))
    one, same, other = (case.run(inputs=range(5), generator=seeded(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_a_sample_stays_exact_where_probabilities_are_tiny() -> None:
    walk = TableWalk.random(10, 4)
    walk.table.copy_((walk.table * 60).log_softmax(1))
    (found,) = Case(walk, SearchConfig(40, 3)).run(generator=seeded(1))
    assert set(sequences(found)) == set(Case(walk, SearchConfig(1, 3)).enumerate())
    assert all(math.isfinite(hypothesis.log_prob) for hypothesis in found)


# Mistakes


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


def test_a_walk_that_has_diverged_is_an_error() -> None:
    walk = TableWalk(torch.full((HISTORIES, 4), math.nan))
    with pytest.raises(ValueError, match="not a number"):
        Case(walk, SearchConfig()).run()


# Where not everything is allowed


def by_digest(share: int) -> Allows:
    """Allows the rest of what it is asked about, by the input and all tokens."""
    return lambda row, tokens: (row + sum(3**at * t for at, t in enumerate(tokens))) % share > 0


@quick
@given(seeds, widths, st.integers(1, 4), penalties, st.integers(2, 5), st.booleans())
def test_only_what_is_allowed_is_found_and_all_of_it(
    seed: int, width: int, max_length: int, penalty: float, share: int, is_sampled: bool
) -> None:
    config = SearchConfig(400, max_length, penalty)
    case = Case(TableWalk.random(seed, width), config, allows=by_digest(share))
    generator = seeded(seed) if is_sampled else None
    found = case.run(inputs=[0, 1], generator=generator)
    for number, hypotheses in enumerate(found):
        expected = case.enumerate((number, START))
        assert {each.tokens for each in hypotheses} == set(expected)
        if not is_sampled:
            assert_best_first(case, hypotheses, expected)


@quick
@given(seeds, widths, st.integers(1, 4), st.integers(2, 5))
def test_a_narrow_beam_drops_what_is_not_allowed_before_it_fills(
    seed: int, width: int, size: int, share: int
) -> None:
    config = SearchConfig(size, 5)
    case = Case(TableWalk.random(seed, width), config, allows=by_digest(share))
    (found,) = case.run()
    assert sequences(found) == [tokens for tokens, _ in case.search_slowly((0, START))]


def test_a_prefix_that_is_forced_is_not_asked_about() -> None:
    asked: list[Sequence[int]] = []

    def allows(_: int, tokens: Sequence[int]) -> bool:
        asked.append(tokens)
        return True

    case = Case(TableWalk.random(3, 5), SearchConfig(2, 3), allows=allows)
    found = case.run([[4, 2], [4, 2, 2, 4]], inputs=[0, 1])
    free = Case(case.walk, case.config).run([[4, 2], [4, 2, 2, 4]], inputs=[0, 1])
    assert found == free
    assert {tokens[-1] for tokens in asked} > {END}
    assert max(map(len, asked)) <= 3


def test_a_token_is_found_however_many_likelier_ones_are_not_allowed() -> None:
    width = CHILDREN
    table = torch.linspace(0, -1, width).log_softmax(0).expand(HISTORIES, width).clone()
    case = Case(
        TableWalk(table),
        SearchConfig(1, 2),
        allows=lambda _, tokens: tokens in ([width - 1], [width - 1, END]),
    )
    assert sequences(case.run()[0]) == [(width - 1, END)]
