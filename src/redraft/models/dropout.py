"""Dropout with an explicit random generator."""

import torch
from torch import Tensor

from redraft.text.vocabulary import PAD_ID, UNK_ID


def dropout(values: Tensor, rate: float, *, generator: torch.Generator | None) -> Tensor:
    """Apply dropout to `values`; without a generator, as in evaluation, return them unchanged."""
    if generator is None or rate == 0:
        return values
    mask = torch.rand(values.shape, generator=generator, device=values.device) >= rate
    return values * mask / (1 - rate)


def drop_tokens(ids: Tensor, rate: float, *, generator: torch.Generator | None) -> Tensor:
    """Word dropout: replace a share of the ids, padding excepted, by the unknown token."""
    if generator is None or rate == 0:
        return ids
    dropped = torch.rand(ids.shape, generator=generator, device=ids.device) < rate
    return torch.where(dropped & (ids != PAD_ID), UNK_ID, ids)
