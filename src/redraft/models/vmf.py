"""The von Mises-Fisher distribution on the unit sphere: samples, and the factor of its KL.

Knows tensors and numbers. Must not know encoders, text, files or a global random state.

The density of a unit vector v around the unit direction mu is C_d(kappa) exp(kappa mu.v).
The dimension d is that of the surrounding space: d = 2 is the circle, d = 3 the sphere. The caller
checks that d >= 2 and that kappa is finite and not negative, as `AutoencoderConfig` does.
"""

import math

import torch
from torch import Tensor

__all__ = ["bound", "kl_factor", "sample"]

# The length of a direction may be off by this much: half precision passes, a bug does not.
UNIT_TOLERANCE = 1e-2


def sample(direction: Tensor, concentration: float, *, generator: torch.Generator) -> Tensor:
    """Draw one unit vector per row of `direction` (B, d), differentiable with respect to it."""
    # The noise depends on the shape of `direction` alone, hence the reparametrised gradient.
    noise = torch.randn(
        direction.shape, generator=generator, dtype=direction.dtype, device=direction.device
    )
    gap = _sample_gap(noise, concentration, generator=generator)
    return _reflect_first_axis_to(direction, _around_first_axis(noise, gap))


def kl_factor(dimension: int, concentration: float) -> float:
    """Return C_kappa, the KL per squared distance between two directions of equal kappa.

    It is kappa A_d(kappa) / 2, where A_d(kappa) = I_(d/2)(kappa) / I_(d/2-1)(kappa) is the length
    of the mean of the samples: the KL depends only on the angle (the paper's Prop. 2).
    """
    # The terms (kappa/2)^(2n) / (n! Gamma(n + d/2)) sum to (kappa/2)^(1-d/2) I_(d/2-1)(kappa). All
    # are positive, so nothing cancels, and only the logarithms are large, so nothing overflows: one
    # method for every d and kappa.
    order = dimension / 2 - 1
    # The terms peak where n (n + order) = (kappa/2)^2, with a standard deviation below sqrt(n).
    peak = (math.hypot(order, concentration) - order) / 2
    reach = 10 * math.sqrt(peak) + 40
    index = torch.arange(max(0, int(peak - reach)), int(peak + reach), dtype=torch.float64)
    half = torch.tensor(concentration / 2, dtype=torch.float64)
    # xlogy: 0 log 0 = 0, so that kappa = 0 keeps the term n = 0 and is the uniform distribution
    log_powers = torch.xlogy(2 * index, half)
    log_terms = log_powers - torch.lgamma(index + 1) - torch.lgamma(index + dimension / 2)
    # A_d is the derivative of the log of the series, and kappa d/dkappa multiplies the term
    # kappa^(2n) by 2n: so kappa A_d / 2 is the mean of n, with no ratio of tiny numbers.
    return float(torch.softmax(log_terms, dim=0) @ index)


def bound(log_likelihood: Tensor, dimension: int, *, concentration: float) -> Tensor:
    """Return the lower bound L_reconstruct - 4 C_kappa for any retriever."""
    # Opposite directions are at squared distance 4; the paper's 2 assumes a right angle at most.
    return log_likelihood - 4 * kl_factor(dimension, concentration)


def _sample_gap(like: Tensor, concentration: float, *, generator: torch.Generator) -> Tensor:
    """Draw 1 - w, w = mu.v, per row of `like`, by Wood's (1994) rejection in float64."""
    rows, dimension = like.shape
    # Wood's b and 1 - x0, written without the differences that cancel for a large kappa
    b = (dimension - 1) / (2 * concentration + math.hypot(2 * concentration, dimension - 1))
    mode = 2 * b / (1 + b)
    gap = torch.empty(rows, dtype=torch.float64, device=like.device)
    remaining = torch.arange(rows, device=like.device)
    while len(remaining):
        uniform = torch.rand(
            (3, len(remaining)), generator=generator, dtype=torch.float64, device=like.device
        )
        below, above = _uniform_coordinate(uniform[0], uniform[1], dimension=dimension)
        proposal = 2 * b * below / (above + b * below)
        # kappa w + (d-1) log(1 - x0 w) less its maximum, which is at w = x0
        tilt = (mode + (1 - mode) * proposal) / (mode * (2 - mode))
        log_acceptance = concentration * (mode - proposal) + (dimension - 1) * tilt.log()
        accepted = uniform[2].log() <= log_acceptance
        gap[remaining[accepted]] = proposal[accepted]
        remaining = remaining[~accepted]
    return gap


def _uniform_coordinate(first: Tensor, second: Tensor, *, dimension: int) -> tuple[Tensor, Tensor]:
    """Return 1 - x and 1 + x, x a coordinate of a uniform unit vector, from two uniform numbers."""
    # (1 - x)/2 is Wood's symmetric Beta. Two coordinates of a uniform unit vector have a uniform
    # angle, and a radius r with 1 - r^2 = U^(2/(d-2)) (Ulrich, 1984).
    # On the circle (d = 2) the division by zero gives log 0, as it should: r = 1.
    log_rest = 2 * first.log() / (dimension - 2)
    radius = (-log_rest.expm1()).sqrt()
    inside = log_rest.exp() / (1 + radius)  # 1 - r
    half_angle = math.pi * second
    below = inside + 2 * radius * half_angle.sin().square()
    above = inside + 2 * radius * half_angle.cos().square()
    return below, above


def _around_first_axis(noise: Tensor, gap: Tensor) -> Tensor:
    """Write unit vectors with first coordinate 1 - gap and the rest along `noise` into it."""
    noise[:, 0] = 0
    length = torch.linalg.vector_norm(noise, dim=1)  # (B,)
    # float32 normals are exactly 0 once in 2^24 draws, and on the circle there is only one.
    is_zero = length == 0
    noise[:, 1] += is_zero
    length += is_zero
    # 1 - w^2 = (1 - w)(1 + w) keeps its digits for w near 1
    tangent_length = (gap * (2 - gap)).sqrt().to(noise.dtype)
    noise *= (tangent_length / length)[:, None]
    noise[:, 0] = 1 - gap
    return noise


def _reflect_first_axis_to(direction: Tensor, points: Tensor) -> Tensor:
    """Reflect `points` (B, d), which it overwrites, so that the first axis is `direction`."""
    # Detached: the gradient through the length points off the sphere, which no direction leaves.
    length = torch.linalg.vector_norm(direction.detach(), dim=1)  # (B,)
    is_unit = (length - 1).abs() <= UNIT_TOLERANCE
    if not is_unit.all():
        worst = length[~is_unit][0].item()
        raise ValueError(f"direction must have rows of length 1, got a row of length {worst:.6g}")
    # Householder: v = p - 2u (u.p)/(u.u) with u = mu + sign e1 takes -sign e1 to mu. This sign
    # makes u.u >= 2 for every mu, also for +e1 and -e1, and so bounds the gradient.
    sign = torch.where(direction[:, 0] < 0, -1.0, 1.0).to(direction.dtype)
    points[:, 0] *= -sign
    product = torch.linalg.vecdot(direction, points) + sign * points[:, 0]
    scale = 2 * product / (length.square() + 1 + 2 * sign * direction[:, 0])
    reflected = torch.addcmul(points, scale[:, None], direction, value=-1)  # (B, d)
    reflected[:, 0] -= scale * sign
    return reflected
