"""Selected logits and their normaliser against separate operations."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from redraft.models.fused_cross_entropy import selected_logits

WIDTH, WORDS = 3, 7
quick = settings(deadline=None, max_examples=25)


def layer(seed: int) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(WIDTH, WORDS).double()


@quick
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
def test_values_equal_those_of_the_layer(rows: int, length: int, count: int, seed: int) -> None:
    write = layer(seed)
    states = 50 * torch.randn(rows, length, WIDTH, dtype=torch.float64)
    chosen = torch.randint(0, WORDS, (rows, length, count))
    scores, total = selected_logits(write, states, chosen)
    all_of_them = write(states)
    torch.testing.assert_close(scores, all_of_them.gather(2, chosen))
    torch.testing.assert_close(total, all_of_them.logsumexp(2, keepdim=True))


@quick
@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 99))
def test_the_gradients_are_those_of_single_operations(rows: int, length: int, seed: int) -> None:
    torch.manual_seed(seed)
    chosen = torch.randint(0, WORDS, (rows, length, 2))  # the same word twice among them
    weights = torch.randn(rows, length, 3, dtype=torch.float64)
    start = torch.randn(rows, length, WIDTH, dtype=torch.float64)

    def gradients(*, fused: bool) -> list[torch.Tensor]:
        write, states = layer(seed), start.clone().requires_grad_(True)
        if fused:
            scores, total = selected_logits(write, states, chosen)
        else:
            all_of_them = write(states)
            scores, total = all_of_them.gather(2, chosen), all_of_them.logsumexp(2, keepdim=True)
        loss = (torch.cat([scores - total, total], 2) * weights).sum()
        return list(torch.autograd.grad(loss, [states, write.weight, write.bias]))

    for found, expected in zip(gradients(fused=True), gradients(fused=False), strict=True):
        torch.testing.assert_close(found, expected)


def test_a_second_backward_pass_is_rejected() -> None:
    scores, _ = selected_logits(
        layer(0), torch.ones(1, 1, WIDTH).double(), torch.zeros(1, 1, 1).long()
    )
    torch.autograd.backward(scores.sum(), retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.backward(scores.sum())
