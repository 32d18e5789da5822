"""The editor's distribution, with every architecture and every way of copying."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redraft.errors import ConfigError
from redraft.models.batch import EditBatch, Sequences
from redraft.models.config import ARCHITECTURE_NAMES, COPYING_NAMES, EditNetworkConfig
from redraft.models.copying import NEVER
from redraft.models.edit_network import (
    ARCHITECTURES,
    COPYINGS,
    OUTPUT_SLOTS,
    EditNetwork,
    EditSizes,
    EditState,
    copyable_sources,
)

UNKNOWN, START, END = 1, 2, 3
WRITTEN, KNOWN, WIDTH = 9, 12, 16  # numbers: written < 9 ≤ only read < 12 ≤ words of one example
SLOTS = 5
SIZES = EditSizes(KNOWN, WRITTEN, fields=2, copyable=(True, True, False, True))
PLAIN = EditSizes(KNOWN, WRITTEN, fields=2, copyable=(True, True))
TINY = EditNetworkConfig(
    word_width=6,
    width=8,
    decoder_layers=2,
    dropout=0.3,
    word_dropout=0.2,
)

Row = tuple[tuple[list[int], ...], list[int]]  # two fields of x, one of x', y'; and the target
ROWS: Sequence[Row] = (
    (([4, 9, 12, END], [13, END], [5, 14, END], [4, 12, 15, 5, END]), [START, 4, 12, 15, 6, END]),
    (([5, END], [END], [END], [END]), [START, 5, 7, END]),
    (([13, 13, END], [10, 4, END], [8, END], [13, 8, 13, END]), [START, 13, 8, 10, END]),
)

every = pytest.mark.parametrize(
    ("architecture", "copying"), list(itertools.product(ARCHITECTURES, COPYINGS))
)
that_copies = pytest.mark.parametrize(
    ("architecture", "copying"), list(itertools.product(ARCHITECTURES, ["pointer", "positional"]))
)
quick = settings(deadline=None, max_examples=8)


@cache
def network(
    architecture: str,
    copying: str,
    sizes: EditSizes = SIZES,
) -> EditNetwork:
    """Return a network with larger weights than a fresh one, so that mistakes show."""
    torch.manual_seed(0)
    config = replace(
        TINY,
        architecture=architecture,
        copying=copying,
    )
    model = EditNetwork(sizes, config)
    with torch.no_grad():
        for parameter in (*model.write.parameters(), *model.copying.parameters()):
            parameter.mul_(3)
    return model


sequences = st.lists(st.integers(4, WIDTH - 1), max_size=SLOTS).map(lambda row: [*row, END])


@st.composite
def rows_of(draw: st.DrawFn, copying: str) -> Row:
    """An edit example whose target can be produced."""
    sources = draw(st.tuples(*[sequences] * len(SIZES.copyable)))
    allowed = copyable_sources(SIZES, copying)
    copied = [
        token for each, may in zip(sources, allowed, strict=True) if may for token in each[:-1]
    ]
    producible = st.sampled_from([UNKNOWN, *range(4, WRITTEN), *copied])
    return sources, [START, *draw(st.lists(producible, max_size=6)), END]


def several(copying: str) -> st.SearchStrategy[list[Row]]:
    return st.lists(rows_of(copying), min_size=1, max_size=4)


def test_every_named_part_can_be_built() -> None:
    assert list(ARCHITECTURES) == ARCHITECTURE_NAMES
    assert list(COPYINGS) == COPYING_NAMES


def batch_of(rows: Sequence[Row], *, wider: int = 0) -> EditBatch:
    columns = zip(*(sources for sources, _ in rows), strict=True)
    sources = [widen(Sequences.pad(column), wider) for column in columns]
    return EditBatch(sources, widen(Sequences.pad([row[1] for row in rows]), wider), WIDTH)


def widen(padded: Sequences, by: int) -> Sequences:
    padding = padded.ids.new_zeros(len(padded.ids), by)
    return Sequences(torch.cat([padded.ids, padding], 1), padded.lengths)


def plain(rows: Sequence[Row]) -> list[Row]:
    """Return the examples without the sequences of the prototype."""
    return [(sources[:2], target) for sources, target in rows]


@torch.no_grad()
def score(model: EditNetwork, rows: Sequence[Row], *, wider: int = 0) -> Tensor:
    return model.log_likelihoods(batch_of(rows, wider=wider)).sum(1)


@torch.no_grad()
def read(model: EditNetwork, rows: Sequence[Row]) -> tuple[torch.Tensor, EditState]:
    """What is read before each token of the targets, and the state after it."""
    batch = batch_of(rows)
    start = model.encode(batch, generator=None)
    return model.read(start, batch.target.ids[:, :-1])


@torch.no_grad()
def expect(model: EditNetwork, rows: Sequence[Row]) -> Tensor:
    """Log-probabilities of every token of the targets."""
    return model.next_tokens(*read(model, rows))


def close(found: Tensor, expected: Tensor, within: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, atol=within, rtol=within)


@every
@quick
@given(data=st.data())
def test_distributions_add_up_to_one(architecture: str, copying: str, data: st.DataObject) -> None:
    expected = expect(network(architecture, copying), data.draw(several(copying)))
    assert expected.shape[2] == WIDTH
    close(expected.exp().sum(2), torch.ones(expected.shape[:2]))


@every
@quick
@given(data=st.data())
def test_the_likelihood_is_the_sum_of_the_steps_along_the_target(
    architecture: str, copying: str, data: st.DataObject
) -> None:
    model, rows = network(architecture, copying), data.draw(several(copying))
    totals = []
    for row in rows:
        state = model.encode(batch_of([row]), generator=None)
        total = 0.0
        for token, following in itertools.pairwise(row[1]):
            with torch.no_grad():
                states, state = model.read(state, torch.tensor([[token]]))
                total += float(model.next_tokens(states, state)[0, 0, following])
        totals.append(total)
    close(score(model, rows), torch.tensor(totals), within=1e-4)


@every
@quick
@given(data=st.data(), wider=st.integers(1, 4))
def test_neither_padding_nor_the_rows_beside_it_change_a_likelihood(
    architecture: str, copying: str, data: st.DataObject, wider: int
) -> None:
    model, rows = network(architecture, copying), data.draw(several(copying))
    together = score(model, rows)
    close(torch.cat([score(model, [row]) for row in rows]), together)
    close(score(model, rows[::-1]).flip(0), together)
    close(score(model, rows, wider=wider), together)


@every
def test_padding_of_a_target_counts_nothing(architecture: str, copying: str) -> None:
    batch = batch_of(ROWS, wider=2)
    found = network(architecture, copying).log_likelihoods(batch).detach()
    mask = batch.target.mask[:, 1:]
    assert (found[~mask] == 0).all()
    assert (found[mask] < 0).all()


@that_copies
@quick
@given(data=st.data())
def test_the_probability_of_a_word_sums_generation_and_all_its_positions(
    architecture: str, copying: str, data: st.DataObject
) -> None:
    model, rows = network(architecture, copying), data.draw(several(copying))
    states, after = read(model, rows)
    found = model.next_tokens(states, after).exp()
    with torch.no_grad():
        written, copied = (each.exp() for each in model.scores(states, after))
    for row, (sources, _) in enumerate(rows):
        expected = torch.zeros(found.shape[1:])
        expected[:, :WRITTEN] = written[row]
        held = after.sources
        for source_id, sequence in enumerate(sources):
            for place, token in enumerate(sequence[:-1]):
                if SIZES.copyable[source_id]:
                    is_there = (held.source_ids[row] == source_id) & (held.positions[row] == place)
                    (column,) = (is_there & held.mask[row]).nonzero()
                    rng = copied[row, :, int(column)]
                    assert (rng > 0).all()
                    expected[:, token] += rng
        close(found[row], expected)


@that_copies
def test_unknown_words_of_the_input_and_of_the_prototypes_output_can_be_produced(
    architecture: str, copying: str
) -> None:
    probs = expect(network(architecture, copying), ROWS[:1])[0].exp()
    of_input, of_output, of_prototypes_input = [12, 13], [15], [14]
    assert (probs[:, of_input + of_output] > 0).all()
    assert (probs[:, of_prototypes_input] == 0).all()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_copying_only_the_output_vocabulary_has_probability(architecture: str) -> None:
    probs = expect(network(architecture, "none"), ROWS).exp()
    assert (probs[:, :, :WRITTEN] > 0).all()
    assert not probs[:, :, WRITTEN:].any()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_copying_from_the_prototype_produces_unknown_words_of_its_output_alone(
    architecture: str,
) -> None:
    probs = expect(network(architecture, "prototype"), ROWS[:1])[0].exp()
    of_input, of_output, of_prototypes_input = [12, 13], [12, 15], [14]
    assert (probs[:, of_output] > 0).all()
    assert not probs[:, [13, *of_prototypes_input]].any()
    plain_network = network(architecture, "prototype", PLAIN)
    assert not expect(plain_network, plain(ROWS[:1]))[0].exp()[:, of_input].any()


@every
@quick
@given(data=st.data())
def test_the_likeliest_token_is_the_first_of_the_distribution(
    architecture: str, copying: str, data: st.DataObject
) -> None:
    model = network(architecture, copying)
    rows = data.draw(several(copying))
    expected = expect(model, rows).exp()
    chosen = model.likeliest(*read(model, rows))
    of_chosen = expected.gather(2, chosen[:, :, None])[:, :, 0]
    close(of_chosen, expected.amax(2))


def last_word(sources: Sequence[list[int]], word: int) -> Row:
    """An edit example whose target ends in a word, which no later token reads."""
    return tuple(sources), [START, 4, word]


@every
def test_a_word_that_can_be_neither_written_nor_copied_counts_as_the_unknown_token(
    architecture: str, copying: str
) -> None:
    model, sources = network(architecture, copying), ROWS[0][0]
    unknown = score(model, [last_word(sources, UNKNOWN)])
    lost = [10, 11, 14]  # 14 stands in x', from which nothing is copied
    lost += {"none": [9, 12, 13, 15], "prototype": [9, 13]}.get(copying, [])
    for word in lost:
        close(score(model, [last_word(sources, word)]), unknown)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_word_past_the_last_copy_token_counts_as_the_unknown_token(architecture: str) -> None:
    model = network(architecture, "positional")
    sources = ([4, END], [END], [END], [5] * OUTPUT_SLOTS + [12, END])
    probs = expect(model, [last_word(sources, 12)]).exp()
    assert (probs[:, :, 12] == 0).all()
    found, unknown = (score(model, [last_word(sources, word)]) for word in (12, UNKNOWN))
    close(found, unknown)


@every
@quick
@given(data=st.data())
def test_the_origins_of_a_token_add_up_to_its_likelihood(
    architecture: str, copying: str, data: st.DataObject
) -> None:
    model, batch = network(architecture, copying), batch_of(data.draw(several(copying)))
    with torch.no_grad():
        origins, whole = model.origins(batch), model.log_likelihoods(batch)
    assert origins.shape[2] == 1 + len(SIZES.copyable)
    mask = batch.target.mask[:, 1:]
    close(origins.logsumexp(2)[mask], whole[mask])
    is_copied = origins[:, :, 1:].amax(2) > NEVER / 2
    for row, place in mask.nonzero().tolist():
        token = batch.target.ids[row, place + 1]
        stands = any((each.ids[row] == token).any() and may for each, may in readable(batch, model))
        assert is_copied[row, place] == (stands and token != END)


def readable(batch: EditBatch, model: EditNetwork) -> list[tuple[Sequences, bool]]:
    return list(zip(batch.sources, model.copyable, strict=True))


@that_copies
def test_origins_say_from_where_a_token_came(architecture: str, copying: str) -> None:
    row = ROWS[0][0], [START, 4, 12, 15, 6, 13, 9]
    found = network(architecture, copying).origins(batch_of([row]))[0] > NEVER / 2
    written, field, other, neither, output = found.T.tolist()
    assert written == [True, False, False, True, False, False]
    assert field == [True, True, False, False, False, True]
    assert other == [False, False, False, False, True, False]
    assert not any(neither)
    assert output == [True, True, True, False, False, False]


@every
@pytest.mark.parametrize("sizes", [SIZES, PLAIN])
def test_gradients_are_finite_and_reach_every_parameter(
    architecture: str, copying: str, sizes: EditSizes
) -> None:
    model = EditNetwork(sizes, replace(TINY, architecture=architecture, copying=copying))
    rows = ROWS if sizes is SIZES else plain(ROWS)
    loss = -model.log_likelihoods(
        batch_of([*rows, (rows[0][0], [START, 11, 14, 6, END])]),
        generator=torch.Generator().manual_seed(0),
    ).sum()
    assert loss.isfinite()
    torch.autograd.backward(loss)
    gradients = {name: each.grad for name, each in model.named_parameters()}
    assert [name for name, gradient in gradients.items() if gradient is None] == []
    found = {name: gradient for name, gradient in gradients.items() if gradient is not None}
    assert [name for name, gradient in found.items() if not gradient.isfinite().all()] == []
    # without copying no token has a slot
    is_copying = any(copyable_sources(sizes, copying))
    unlearned = set() if is_copying else {"slots.weight"}
    assert {name for name, gradient in found.items() if not gradient.any()} == unlearned


def noisy(model: EditNetwork, seed: int | None) -> Tensor:
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return model.log_likelihoods(batch_of(ROWS), generator=generator).detach()


@every
def test_the_seed_decides_the_noise_and_without_one_there_is_none(
    architecture: str, copying: str
) -> None:
    model = network(architecture, copying)
    assert torch.equal(noisy(model, 1), noisy(model, 1))
    assert not torch.equal(noisy(model, 1), noisy(model, 2))
    assert not torch.equal(noisy(model, 1), noisy(model, None))
    assert torch.equal(noisy(model, None), noisy(model, None))


@every
@quick
@given(
    before=st.lists(st.integers(0, 2), min_size=1, max_size=4),
    data=st.data(),
)
def test_reordered_rows_continue_as_they_would_alone(
    architecture: str, copying: str, before: list[int], data: st.DataObject
) -> None:
    """Reorder twice: first repeat and drop rows, then permute them."""
    model = network(architecture, copying)
    again = data.draw(st.permutations(range(len(before))))
    tokens = torch.tensor([[START, 4, 12], [START, 5, 6], [START, 13, 8]])
    later = torch.tensor([[7, 12]] * len(before))
    with torch.no_grad():
        _, state = model.read(model.encode(batch_of(ROWS), generator=None), tokens)
        chosen = model.reorder(model.reorder(state, torch.tensor(before)), torch.tensor(again))
        found = model.next_tokens(*model.read(chosen, later))
        for at, row in enumerate(before[each] for each in again):
            start = model.encode(batch_of([ROWS[row]]), generator=None)
            whole = torch.cat([tokens[row], later[0]])[None]
            alone = model.next_tokens(*model.read(start, whole))[0, 3:]
            close(found[at].exp(), alone.exp())


def test_rows_that_share_a_memory_leave_it_where_it_is() -> None:
    model = network("transformer", "pointer")
    _, state = read(model, ROWS)
    twice = model.reorder(state, torch.tensor([0, 0, 1]))
    assert twice.prepared is state.prepared
    assert len(model.reorder(twice, torch.tensor([0, 1, 0])).prepared) == 1


@that_copies
def test_thirty_steps_learn_to_copy_oovs(architecture: str, copying: str) -> None:
    torch.manual_seed(0)
    config = replace(TINY, architecture=architecture, copying=copying, width=16, decoder_layers=1)
    model = EditNetwork(SIZES, replace(config, dropout=0.0, word_dropout=0.0))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
    # y is y' with its second word replaced by that of x
    rows: list[Row] = [
        (([new, END], [END], [old, END], [4, old, 5, END]), [START, 4, new, 5, END])
        for new, old in itertools.permutations(range(KNOWN, WIDTH), 2)
    ]
    seen, unseen = rows[::2], rows[1::2]
    for _ in range(30):
        optimiser.zero_grad()
        torch.autograd.backward(-model.log_likelihoods(batch_of(seen)).sum(1).mean())
        optimiser.step()
    assert (score(model, unseen) > -0.2).all()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"architecture": "rnn"}, "architecture is 'rnn'; choose one of: transformer, lstm"),
        (
            {"copying": "all"},
            "copying is 'all'; choose one of: pointer, positional, prototype, none",
        ),
    ],
)
def test_unknown_names_are_rejected(names: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EditNetworkConfig(**names)  # type: ignore[arg-type]
    assert str(caught.value) == message
