"""In which of x, x' and y' a token stands as well.

A word of y' that x' has and x lacks is one to replace, and one of x that x' lacks may be what takes
its place: what changed in the input tells what to change in the output. Attention can learn to
see this where it has seen the words; told, it sees it with words that nobody knew.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from redraft.data.vocabulary import END_NUMBER
from redraft.models.memory import Sources

SIDES = 3
"""x, x' and y'."""

_SPREAD = 0.1
"""How far the vectors are apart before all training: little beside those of the words."""


class Alignment(nn.Module):
    """A vector for each way in which a token can stand, or not, in x, in an x' and in a y'."""

    def __init__(self, fields: int, copyable: Sequence[bool], width: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(2**SIDES, width)
        nn.init.normal_(self.vectors.weight, std=_SPREAD)
        # of a prototype only the output is copied from
        sides = [0 if role < fields else 1 + of_output for role, of_output in enumerate(copyable)]
        self.sides: Tensor
        self.register_buffer("sides", torch.tensor(sides), persistent=False)

    def forward(self, ids: Tensor, sources: Sources) -> Tensor:
        """Of each token (B, T) the vector of where it stands in the sources: (B, T, width)."""
        is_same = (ids[:, :, None] == sources.ids[:, None]) & (sources.ids != END_NUMBER)[:, None]
        sides = self.sides[sources.roles].masked_fill(~sources.mask, SIDES)
        ways = torch.zeros_like(ids)
        for side in range(SIDES):
            ways += 2**side * (is_same & (sides == side)[:, None]).any(2)
        vectors: Tensor = self.vectors(ways)
        return vectors
