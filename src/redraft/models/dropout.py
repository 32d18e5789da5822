"""Dropout whose randomness is an argument."""

import torch
from torch import Tensor


def dropout(values: Tensor, rate: float, *, generator: torch.Generator | None) -> Tensor:
    """Values with a share of them zeroed, the rest scaled up; unchanged without a generator."""
    if generator is None or rate == 0:
        return values
    kept = torch.rand(values.shape, generator=generator, device=values.device) >= rate
    return values * kept / (1 - rate)


def drop_tokens(
    ids: Tensor, rate: float, *, unknown: int, generator: torch.Generator | None
) -> Tensor:
    """Token numbers with a share of the real ones replaced by the unknown token's."""
    if generator is None or rate == 0:
        return ids
    dropped = torch.rand(ids.shape, generator=generator, device=ids.device) < rate
    return torch.where(dropped & (ids != 0), unknown, ids)
