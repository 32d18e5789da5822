"""Matching: how many of the last words stand, in order, just before a place of a source."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from redraft.data.sequences import Sequences
from redraft.models.matching import Matching
from redraft.models.memory import Sources

START, END = 2, 3
TOKENS = st.lists(st.integers(4, 6), min_size=1, max_size=6)


def agreement(written: list[int], source: list[int], place: int) -> int:
    """How many of the last words agree, counted one by one."""
    before = [START, *source[:place]]
    said = [START, *written]
    count = 0
    while count < min(len(before), len(said)) and before[-1 - count] == said[-1 - count]:
        count += 1
    return count


@given(TOKENS, TOKENS, TOKENS, st.integers(1, 4))
def test_a_place_scores_one_weight_for_each_word_that_agrees_before_it(
    written: list[int], first: list[int], second: list[int], longest: int
) -> None:
    matching = Matching(2, longest, agreement=2.0)
    sequences = [Sequences.pad([[*each, END]]) for each in (first, second)]
    sources = Sources.join(sequences, [True, True])
    tokens = torch.tensor([[START, *written]])
    history = torch.cat([matching.begin(1, tokens.device), tokens], 1)
    with torch.no_grad():
        found = matching(history, sources)[0].tolist()
    for at in range(len(written) + 1):
        expected = [
            2 * min(longest, agreement(written[:at], source, place))
            for source in (first, second)
            for place in range(len(source) + 1)
        ]
        assert found[at] == expected


def test_every_source_has_its_own_weights() -> None:
    matching = Matching(2, 1)
    with torch.no_grad():
        matching.weights[1] = 5.0
    sources = Sources.join([Sequences.pad([[4, END]]), Sequences.pad([[4, END]])], [True, True])
    history = torch.cat([matching.begin(1, torch.device("cpu")), torch.tensor([[4]])], 1)
    assert matching(history, sources)[0, 0].tolist() == [0, 1, 0, 5]


@given(TOKENS, TOKENS, TOKENS)
def test_sources_without_gaps_score_alike(
    written: list[int], first: list[int], second: list[int]
) -> None:
    matching = Matching(2, 3)
    rows = [first, [*second, 9]], [second, [9]]  # of two rows, each with two sources
    sequences = [Sequences.pad([[*each, END] for each in role]) for role in zip(*rows, strict=True)]
    sources = Sources.join(sequences, [True, True])
    tokens = torch.tensor([[START, *written]] * 2)
    history = torch.cat([matching.begin(2, tokens.device), tokens], 1)
    packed = sources.packed(1)
    assert packed.ids.shape[1] <= sources.ids.shape[1]
    with torch.no_grad():
        scores, others = matching(history, sources), matching(history, packed)
    for row in range(2):
        for gapless in packed.mask[row].nonzero()[:, 0]:
            same = (sources.roles[row] == packed.roles[row, gapless]) & (
                sources.places[row] == packed.places[row, gapless]
            )
            column = int((same & sources.mask[row]).nonzero())
            assert packed.ids[row, gapless] == sources.ids[row, column]
            assert packed.copyable[row, gapless] == sources.copyable[row, column]
            assert torch.equal(others[row, :, gapless], scores[row, :, column])
