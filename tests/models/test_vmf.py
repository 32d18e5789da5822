"""The von Mises-Fisher mathematics, against closed forms, SciPy, mpmath and Monte Carlo."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats
from torch import Tensor

from redraft.models import vmf

DIMENSIONS = [2, 3, 16, 256]
CONCENTRATIONS = [0.0, 1.0, 50.0, 500.0, 1e4]
MANY_CONCENTRATIONS = [0.0, 1e-9, 1e-3, 0.1, 1.0, 7.0, 50.0, 100.0, 500.0, 1e4, 1e5]

dimensions = st.integers(2, 1024)
concentrations = st.one_of(st.just(0.0), st.floats(-9, 5).map(lambda exponent: 10.0**exponent))
seeds = st.integers(0, 2**32 - 1)
deterministic = settings(max_examples=50, deadline=None, derandomize=True)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def embeddings(rows: int, dimension: int, *, seed: int, dtype: torch.dtype) -> Tensor:
    """Random unit vectors (rows, dimension)."""
    noise = torch.randn((rows, dimension), generator=seeded(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(noise, dim=1).to(dtype)


def draw(direction: Tensor, concentration: float, *, rows: int, seed: int) -> Tensor:
    """Samples (rows, d) around one direction (d,)."""
    repeated = direction.expand(rows, -1)
    return vmf.sample(repeated, concentration, generator=seeded(seed))


def mean_length(dimension: int, concentration: float) -> float:
    """A_d(kappa), the length of the mean of the samples."""
    factor = vmf.kl_factor(dimension, concentration)
    return 2 * factor / concentration if concentration else factor


def assert_mean(values: Tensor, expected: float) -> None:
    """Fail if the mean of `values` is more than five standard errors from `expected`."""
    error = values.std().item() / math.sqrt(len(values))
    assert abs(values.mean().item() - expected) <= 5 * error + 1e-15 * abs(expected)


# Samples


@deterministic
@given(dimension=dimensions, concentration=concentrations, seed=seeds)
def test_samples_lie_on_the_unit_sphere(dimension: int, concentration: float, seed: int) -> None:
    direction = embeddings(32, dimension, seed=seed, dtype=torch.float32)
    samples = vmf.sample(direction, concentration, generator=seeded(seed))
    assert samples.shape == direction.shape
    assert samples.dtype == torch.float32
    torch.testing.assert_close(samples.norm(dim=1), torch.ones(32), atol=1e-5, rtol=0)


@pytest.mark.parametrize("dimension", [2, 3, 4, 5, 7, 16, 63, 256, 511, 1024])
def test_samples_are_unit_vectors_at_the_ends_of_every_axis(dimension: int) -> None:
    axes = torch.eye(dimension)[[0, 1, -1]]
    direction = torch.cat([axes, -axes]).repeat(20, 1).requires_grad_()
    for concentration in MANY_CONCENTRATIONS:
        samples = vmf.sample(direction, concentration, generator=seeded(0))
        samples.square()[:, 0].sum().backward()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(samples.norm(dim=1), torch.ones(120), atol=1e-5, rtol=0)
    assert direction.grad is not None
    assert direction.grad.isfinite().all()


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_mean_of_samples_has_the_closed_form_length(dimension: int, concentration: float) -> None:
    direction = embeddings(1, dimension, seed=1, dtype=torch.float64)[0]
    samples = draw(direction, concentration, rows=20_000, seed=2)
    assert_mean(samples @ direction, mean_length(dimension, concentration))


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_monte_carlo_kl_matches_the_closed_form(dimension: int, concentration: float) -> None:
    one, other = embeddings(2, dimension, seed=3, dtype=torch.float64)
    samples = draw(one, concentration, rows=20_000, seed=4)
    # Equal kappa: the normalisers cancel in the difference of log-densities.
    log_ratio = concentration * (samples @ (one - other))
    squared_distance = (one - other).square().sum().item()
    assert_mean(log_ratio, vmf.kl_factor(dimension, concentration) * squared_distance)


@pytest.mark.parametrize(
    ("dimension", "concentration"),
    [
        *[(2, 0.0), (2, 1.0), (2, 1e5), (3, 0.0), (3, 50.0), (16, 1.0), (16, 1e4)],
        *[(256, 0.0), (256, 50.0), (256, 500.0), (1024, 500.0), (1024, 1e5)],
    ],
)
def test_angle_to_the_direction_has_the_exact_density(dimension: int, concentration: float) -> None:
    direction = embeddings(1, dimension, seed=5, dtype=torch.float64)[0]
    samples = draw(direction, concentration, rows=5_000, seed=6)
    along = samples @ direction
    across = (samples - along[:, None] * direction).norm(dim=1)
    angles = torch.atan2(across, along).numpy()

    # p(angle) is proportional to exp(kappa cos(angle)) sin(angle)^(d-2).
    grid = np.linspace(0, min(math.pi, 2 * angles.max()), 20_001)
    log_density = concentration * (np.cos(grid) - 1) + special.xlogy(dimension - 2, np.sin(grid))
    density = np.exp(log_density - log_density.max())
    cumulative = integrate.cumulative_trapezoid(density, grid, initial=0)
    test = stats.kstest(angles, lambda angle: np.interp(angle, grid, cumulative / cumulative[-1]))
    assert test.pvalue > 1e-3


@pytest.mark.parametrize("concentration", [0.0, 50.0, 1e4])
@pytest.mark.parametrize("dimension", [2, 3, 16, 64])
def test_part_across_the_direction_is_isotropic(dimension: int, concentration: float) -> None:
    rows, tangent_dimension = 10_000, dimension - 1
    direction = embeddings(1, dimension, seed=7, dtype=torch.float64)[0]
    samples = draw(direction, concentration, rows=rows, seed=8)
    basis = torch.linalg.svd(direction[None])[2][1:]  # (d-1, d), orthogonal to the direction
    tangents = torch.nn.functional.normalize(samples @ basis.T, dim=1)

    # Rayleigh's test of the mean, then Bingham's of the covariance
    rayleigh = rows * tangent_dimension * tangents.mean(dim=0).square().sum().item()
    assert stats.chi2.sf(rayleigh, tangent_dimension) > 1e-3
    if tangent_dimension > 1:
        covariance = tangents.T @ tangents / rows
        excess = covariance.square().sum().item() - 1 / tangent_dimension
        bingham = rows * tangent_dimension * (tangent_dimension + 2) / 2 * excess
        degrees = (tangent_dimension - 1) * (tangent_dimension + 2) / 2
        assert stats.chi2.sf(bingham, degrees) > 1e-3


@deterministic
@given(dimension=st.integers(2, 64), concentration=concentrations, seed=seeds)
def test_samples_around_two_directions_are_rotations_of_each_other(
    dimension: int, concentration: float, seed: int
) -> None:
    one, other = embeddings(2, dimension, seed=seed, dtype=torch.float64)
    around_one = draw(one, concentration, rows=20, seed=seed)
    around_other = draw(other, concentration, rows=20, seed=seed)
    # An isometry that takes one direction to the other keeps all inner products, and only it does.
    torch.testing.assert_close(around_one @ one, around_other @ other)
    torch.testing.assert_close(around_one @ around_one.T, around_other @ around_other.T)


def test_every_row_is_sampled_around_its_own_direction() -> None:
    direction = embeddings(500, 16, seed=9, dtype=torch.float32)
    samples = vmf.sample(direction, 1e5, generator=seeded(10))
    assert (samples * direction).sum(dim=1).min() > 0.999
    assert len(samples.unique(dim=0)) == 500  # type: ignore[no-untyped-call]


def test_same_seed_gives_same_samples_and_global_state_is_left_alone() -> None:
    direction = embeddings(100, 16, seed=11, dtype=torch.float32)
    state = torch.get_rng_state()
    first = vmf.sample(direction, 50.0, generator=seeded(12))
    second = vmf.sample(direction, 50.0, generator=seeded(12))
    another = vmf.sample(direction, 50.0, generator=seeded(13))
    assert torch.equal(first, second)
    assert not torch.equal(first, another)
    assert torch.equal(torch.get_rng_state(), state)


def test_an_empty_batch_gives_no_samples() -> None:
    assert vmf.sample(torch.empty(0, 8), 5.0, generator=seeded(0)).shape == (0, 8)


def test_noise_that_is_exactly_zero_still_gives_unit_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    direction = embeddings(100, 2, seed=14, dtype=torch.float32)
    monkeypatch.setattr(torch, "randn", lambda shape, **_: torch.zeros(shape))
    samples = vmf.sample(direction, 1.0, generator=seeded(15))
    torch.testing.assert_close(samples.norm(dim=1), torch.ones(100))


# Gradients


@pytest.mark.parametrize("concentration", [0.0, 1.0, 500.0])
@pytest.mark.parametrize("dimension", [2, 3, 8])
def test_gradient_to_the_direction_is_exact(dimension: int, concentration: float) -> None:
    def sample_around(points: Tensor) -> Tensor:
        direction = torch.nn.functional.normalize(points, dim=1)
        return vmf.sample(direction, concentration, generator=seeded(16))

    axis = torch.eye(dimension, dtype=torch.float64)[:1]
    points = embeddings(2, dimension, seed=17, dtype=torch.float64)
    points = torch.cat([2 * points, axis, -axis]).requires_grad_()
    assert torch.autograd.gradcheck(sample_around, (points,))


@pytest.mark.parametrize("concentration", [1.0, 50.0, 1e4])
@pytest.mark.parametrize("dimension", [2, 3, 16])
def test_gradient_of_an_expectation_is_unbiased(dimension: int, concentration: float) -> None:
    direction, target = embeddings(2, dimension, seed=18, dtype=torch.float64)
    points = direction.repeat(20_000, 1).requires_grad_()
    repeated = torch.nn.functional.normalize(points, dim=1)
    samples = vmf.sample(repeated, concentration, generator=seeded(19))
    (gradients,) = torch.autograd.grad((samples @ target).sum(), points)

    # E[target.v] = A_d(kappa) target.mu, whose gradient on the sphere is tangent to it.
    tangent = target - (target @ direction) * direction
    expected = mean_length(dimension, concentration) * tangent.square().sum()
    assert_mean(gradients @ tangent, expected.item())


# Factor of the KL, and the bound


@pytest.mark.parametrize("dimension", [2, 3, 4, 16, 255, 256, 1023, 1024])
def test_the_mean_length_agrees_with_mpmath(dimension: int) -> None:
    for concentration in MANY_CONCENTRATIONS[1:]:
        with mpmath.workdps(30):
            order = mpmath.mpf(dimension) / 2 - 1
            above, below = (mpmath.besseli(order + i, concentration) for i in (1, 0))
            ratio = above / below
        length = mean_length(dimension, concentration)
        assert length == pytest.approx(float(ratio), rel=1e-10)
        # What is left to 1 is what tells large concentrations apart.
        assert 1 - length == pytest.approx(float(1 - ratio), rel=1e-6)


@pytest.mark.parametrize("dimension", [2, 3, 16, 256, 1024])
def test_the_mean_length_agrees_with_scipy_where_it_is_stable(dimension: int) -> None:
    compared = 0
    for concentration in MANY_CONCENTRATIONS[1:]:
        order = dimension / 2 - 1
        above, below = special.ive([order + 1, order], concentration)
        if above < 1e-290:
            continue
        assert mean_length(dimension, concentration) == pytest.approx(above / below, rel=1e-10)
        compared += 1
    assert compared >= 3


def test_the_mean_length_is_below_one_on_the_whole_grid() -> None:
    for dimension in range(2, 1025):
        assert vmf.kl_factor(dimension, 0) == 0  # the uniform distribution
        lengths = [mean_length(dimension, kappa) for kappa in (1e-3, 1.0, 50.0, 500.0, 1e5)]
        assert lengths == sorted(lengths), "a higher concentration keeps samples closer"
        assert 0 < lengths[0] < lengths[-1] < 1


@deterministic
@given(dimension=dimensions, concentration=st.floats(1e-3, 1e5))
def test_mean_length_obeys_the_recurrence_of_bessel_functions(
    dimension: int, concentration: float
) -> None:
    here, two_up = (mean_length(dimension + more, concentration) for more in (0, 2))
    assert 1 / here == pytest.approx(dimension / concentration + two_up, rel=1e-9)


def test_kl_factor_on_the_sphere_is_the_textbook_formula() -> None:
    # d = 3: A_3(kappa) = coth(kappa) - 1/kappa
    assert vmf.kl_factor(3, 5.0) == pytest.approx((5 / math.tanh(5) - 1) / 2, rel=1e-13)


@deterministic
@given(dimension=dimensions, concentration=concentrations)
def test_the_bound_subtracts_the_kl_of_opposite_directions(
    dimension: int, concentration: float
) -> None:
    log_likelihood = torch.tensor(-3.0, dtype=torch.float64)
    bound = vmf.bound(log_likelihood, dimension, concentration=concentration)
    assert bound.item() == pytest.approx(-3 - 2**2 * vmf.kl_factor(dimension, concentration))


# Mistakes


def test_directions_that_are_no_unit_vectors_are_named() -> None:
    direction = embeddings(3, 4, seed=21, dtype=torch.float32)
    for length in [2.0, 0.0, math.nan]:
        spoilt = direction * torch.tensor([[1.0], [length], [1.0]])
        with pytest.raises(ValueError, match=f"rows of length 1, got a row of length {length:g}"):
            vmf.sample(spoilt, 5.0, generator=seeded(0))
