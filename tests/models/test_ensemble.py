"""Several networks as one distribution, against the mean that defines it."""

import torch

from redraft.models.ensemble import Ensemble
from tests.models.test_edit_network import ROWS, batch_of, close, network

BATCH = batch_of(ROWS)
MEMBERS = [network("transformer", "pointer"), network("lstm", "pointer")]
TOKENS = BATCH.target.ids[:, :-1]


@torch.no_grad()
def test_the_next_token_is_as_likely_as_its_members_think_in_the_mean() -> None:
    ensemble = Ensemble(MEMBERS)
    read, state = ensemble.read(ensemble.encode(BATCH, generator=None), TOKENS)
    expected = []
    for member in MEMBERS:
        own, after = member.read(member.encode(BATCH, generator=None), TOKENS)
        expected.append(member.next_tokens(own, after).exp())
    mean = torch.stack(expected).mean(0)
    close(ensemble.next_tokens(read, state).exp(), mean)
    close(ensemble.next_tokens(read.last(), state)[:, 0].exp(), mean[:, -1])
    assert torch.equal(ensemble.likeliest(read, state), mean.argmax(2))


@torch.no_grad()
def test_reading_on_from_some_rows_is_reading_these_rows() -> None:
    ensemble, rows = Ensemble(MEMBERS), torch.tensor([2, 0, 0])
    _, state = ensemble.read(ensemble.encode(BATCH, generator=None), TOKENS[:, :2])
    read, after = ensemble.read(ensemble.select(state, rows), TOKENS[rows, 2:])
    whole = ensemble.read(ensemble.encode(BATCH, generator=None), TOKENS)
    close(ensemble.next_tokens(read, after).exp(), ensemble.next_tokens(*whole)[rows, 2:].exp())


@torch.no_grad()
def test_likelihoods_and_origins_are_means_and_padding_counts_nothing() -> None:
    ensemble = Ensemble(MEMBERS)
    real = BATCH.target.mask[:, 1:]
    likely = torch.stack([each.log_likelihoods(BATCH).exp() for each in MEMBERS]).mean(0)
    close(ensemble.log_likelihoods(BATCH).exp()[real], likely[real])
    assert (ensemble.log_likelihoods(BATCH)[~real].abs() < 1e-6).all()
    origins = torch.stack([each.origins(BATCH).exp() for each in MEMBERS]).mean(0)
    close(ensemble.origins(BATCH).exp(), origins)


def test_it_has_the_weights_of_all_and_is_as_large_as_they_are() -> None:
    ensemble = Ensemble(MEMBERS)
    assert ensemble.size == 2
    assert ensemble.device == MEMBERS[0].device
    assert len(ensemble.state_dict()) == sum(len(each.state_dict()) for each in MEMBERS)
