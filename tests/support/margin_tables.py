"""Tables with margins for tests: people in cells, noisy margins, and dense matrices that share no code with pdrisk."""

import itertools

import numpy as np

EVERY = {k: [axes for size in range(k + 1) for axes in itertools.combinations(range(k), size)] for k in range(5)}


def summed(table, axes, k):
    """Margin of a table with k axes, the last ones, whose other axes have length 1."""
    return table.sum(axis=tuple(axis - k for axis in range(k) if axis not in axes), keepdims=True)


def matrix(sizes, axes):
    """Matrix that makes the flat margin of a flat table."""
    k, cells = len(sizes), int(np.prod(sizes))
    return summed(np.eye(cells).reshape(cells, *sizes), axes, k).reshape(cells, -1).T


def component(sizes, axes):
    """Projection of flat tables on the component of these axes: a Kronecker product."""
    found = np.eye(1)
    for axis, size in enumerate(sizes):
        mean = np.full((size, size), 1 / size)
        found = np.kron(found, np.eye(size) - mean if axis in axes else mean)
    return found


def laplace(random, scale, shape):
    """Discrete Laplace noise: the difference of two geometric variables."""
    chance = -np.expm1(-1 / scale)
    return (random.geometric(chance, shape) - random.geometric(chance, shape)).astype(np.float64)


def variance(scale):
    """Variance of such noise, summed over all values that it takes."""
    k = np.arange(1, int(60 * scale + 60))
    weights = np.exp(-k / scale)
    return float((2 * weights * k**2).sum() / (1 + 2 * weights.sum()))


def people(random, sizes, n, sparse=False):
    """A table of n people: unequal margins, cells that depend on each other, and with ``sparse`` many empty ones."""
    chances = random.gamma(0.15 if sparse else 0.7, 1, sizes) + 1e-12
    for axis, size in enumerate(sizes):
        chances *= random.dirichlet(np.ones(size)).reshape([-1 if each == axis else 1 for each in range(len(sizes))])
    return random.multinomial(n, chances.ravel() / chances.sum()).reshape(sizes).astype(np.float64)


def nearest(form, goal, fixed, values):
    """The smallest ``(t - goal)' form (t - goal)`` over t >= 0 with ``fixed @ t = values``.

    By all sets of empty cells.
    """
    cells, best, least = len(goal), None, np.inf
    for empty in itertools.product((False, True), repeat=cells):
        held = np.vstack([fixed, np.eye(cells)[list(empty)]])
        kkt = np.block([[form, held.T], [held, np.zeros((len(held), len(held)))]])
        right = np.concatenate([form @ goal, values, np.zeros(sum(empty))])
        found = np.linalg.lstsq(kkt, right, rcond=None)[0][:cells]
        if (found < -1e-9).any() or not np.allclose(held @ found, right[cells:], atol=1e-7):
            continue
        distance = (found - goal) @ form @ (found - goal)
        if distance < least:
            best, least = found, distance
    return best
