"""The von Mises-Fisher distribution on the unit sphere: samples, normaliser and KL.

Knows tensors and numbers. Must not know encoders, text, files or a global random state.

The density of a unit vector v around the unit direction mu is C_d(kappa) exp(kappa mu.v).
The dimension d is that of the surrounding space: d = 2 is the circle, d = 3 the sphere.
"""

import math

import torch
from torch import Tensor

__all__ = ["bound", "kl", "kl_factor", "log_normaliser", "mean_resultant_length", "sample"]

# The length of a direction may be off by this much: half precision passes, a bug does not.
UNIT_TOLERANCE = 1e-2


def sample(direction: Tensor, concentration: float, *, generator: torch.Generator) -> Tensor:
    """One unit vector per row of `direction` (B, d), differentiable with respect to it."""
    if direction.dim() != 2 or not direction.is_floating_point():
        raise ValueError(
            "direction must be floating point of shape (B, d), "
            f"got {direction.dtype} of shape {tuple(direction.shape)}"
        )
    _check(direction.shape[1], concentration)
    # The noise depends on the shape of `direction` alone, hence the reparametrised gradient.
    noise = torch.randn(
        direction.shape, generator=generator, dtype=direction.dtype, device=direction.device
    )
    gap = _sample_gap(noise, concentration, generator=generator)
    return _reflect_first_axis_to(direction, _around_first_axis(noise, gap))


def log_normaliser(dimension: int, concentration: float) -> float:
    """log C_d(kappa), the logarithm of the factor that makes the density integrate to one."""
    _, log_terms = _bessel_series(dimension, concentration)
    # (2 pi)^(d/2) I_(d/2-1)(kappa) kappa^(1-d/2), with the powers of kappa and of 2 cancelled
    log_integral = math.log(2) + dimension / 2 * math.log(math.pi)
    return -log_integral - float(torch.logsumexp(log_terms, dim=0))


def mean_resultant_length(dimension: int, concentration: float) -> float:
    """A_d(kappa) = I_(d/2)(kappa) / I_(d/2-1)(kappa), the length of the mean of the samples."""
    factor = kl_factor(dimension, concentration)
    return 2 * factor / concentration if concentration > 0 else 0.0


def kl_factor(dimension: int, concentration: float) -> float:
    """C_kappa = kappa A_d(kappa) / 2, the KL per squared distance between two directions."""
    index, log_terms = _bessel_series(dimension, concentration)
    # A_d is the derivative of the log of the series, and kappa d/dkappa multiplies the term
    # kappa^(2n) by 2n: so kappa A_d / 2 is the mean of n, with no ratio of tiny numbers.
    return float(torch.softmax(log_terms, dim=0) @ index)


def kl(direction: Tensor, other_direction: Tensor, *, concentration: float) -> Tensor:
    """KL(vMF(direction) || vMF(other_direction)) of each pair of rows, for one concentration."""
    if direction.shape[-1:] != other_direction.shape[-1:]:
        raise ValueError(
            "directions must have the same dimension, "
            f"got shapes {tuple(direction.shape)} and {tuple(other_direction.shape)}"
        )
    # Equal kappa: the KL depends only on the angle (the paper's Prop. 2). The difference is
    # squared, as 1 - mu1.mu2 would lose the distance of near neighbours to rounding.
    squared_distance = (direction - other_direction).square().sum(dim=-1)
    return kl_factor(direction.shape[-1], concentration) * squared_distance


def bound(log_likelihood: Tensor, dimension: int, *, concentration: float) -> Tensor:
    """The lower bound L_reconstruct - 4 C_kappa that holds whatever the retriever retrieves."""
    # Opposite directions are at squared distance 4; the paper's 2 assumes a right angle at most.
    return log_likelihood - 4 * kl_factor(dimension, concentration)


def _check(dimension: int, concentration: float) -> None:
    """Nothing, or a ValueError that names the argument at fault."""
    if not dimension >= 2:
        raise ValueError(f"dimension must be at least 2, got {dimension}")
    if not 0 <= concentration < math.inf:
        raise ValueError(f"concentration must be finite and at least 0, got {concentration}")


def _bessel_series(dimension: int, concentration: float) -> tuple[Tensor, Tensor]:
    """Indices n and logs of the terms (kappa/2)^(2n) / (n! Gamma(n + d/2)), where they matter."""
    # They sum to (kappa/2)^(1-d/2) I_(d/2-1)(kappa). All are positive, so nothing cancels, and
    # only the logarithms are large, so nothing overflows: one method for every d and kappa.
    _check(dimension, concentration)
    order = dimension / 2 - 1
    # The terms peak where n (n + order) = (kappa/2)^2, with a standard deviation below sqrt(n).
    peak = (math.hypot(order, concentration) - order) / 2
    reach = 10 * math.sqrt(peak) + 40
    index = torch.arange(max(0, int(peak - reach)), int(peak + reach), dtype=torch.float64)
    half = torch.tensor(concentration / 2, dtype=torch.float64)
    # xlogy: 0 log 0 = 0, so that kappa = 0 keeps the term n = 0 and is the uniform distribution
    log_powers = torch.xlogy(2 * index, half)
    return index, log_powers - torch.lgamma(index + 1) - torch.lgamma(index + dimension / 2)


def _sample_gap(like: Tensor, concentration: float, *, generator: torch.Generator) -> Tensor:
    """Draws of 1 - w, w = mu.v, for the rows of `like`: Wood's (1994) rejection, in float64."""
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
    """1 - x and 1 + x, x a coordinate of a uniform unit vector, from two uniform numbers."""
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
    """Unit vectors with first coordinate 1 - gap and the rest along `noise`, written into it."""
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
    """`points` (B, d), which it overwrites, reflected so that the first axis is `direction`."""
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
