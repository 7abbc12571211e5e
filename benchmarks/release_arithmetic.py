"""Coverage and widths of arithmetic with releases, simulated with seeded noise: the figures of docs/numbers.md.

    python benchmarks/release_arithmetic.py

Every row repeats one computation of noisy answers many times and says how often its 95 % interval, before it is cut to
the range of possible results, holds the exact number, and how wide it is compared with the exact quantile of the noise.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pdrisk._answer.arithmetic import exact_expressions as expressions
from pdrisk._answer.arithmetic.exact_expressions import computed
from pdrisk._answer.arithmetic.forms import Linear, Ratio, form_of
from pdrisk._answer.arithmetic.measured import Measurements, new_draw
from pdrisk._mechanisms.laws.law import Law

TIMES = 20_000
COARSE = (0.1, 0.5, 1.0, 2.0, 3.0)  # noise of counts has few values beyond 1
PLACES = 2**30
rng = np.random.default_rng(31)


def noise(scale: float, size: tuple[int, ...]) -> np.ndarray:
    """Discrete Laplace noise of this scale."""
    return np.subtract(*rng.geometric(-np.expm1(-1 / scale), size=(2, *size)))


def counts(exact: int, eps: float, times: int = TIMES) -> Linear:
    """A count by the geometric mechanism, drawn many times."""
    law = Law(1, Fraction(1), 1 / Fraction(eps), (1.0,), whole=True)
    return form_of(Measurements.of(law, exact + noise(1 / eps, (1, times)), new_draw()))


def means(n: int, share: float, eps: float, times: int = TIMES) -> Ratio:
    """A mean of n values between 0 and 1 by two_sums, drawn many times."""
    law = Law(2, Fraction(1, PLACES), 1 / Fraction(eps), (1.0, 0.0), (1.0, 1.0))
    sums = np.array([[n * share], [n * (1 - share)]])
    drawn = np.rint((sums + rng.laplace(scale=1 / eps, size=(2, times))) * PLACES).astype(np.int64)
    return form_of(Measurements.of(law, drawn, new_draw()))


def total(forms: list[Linear]) -> Linear:
    """The sum of some counts."""
    found = forms[0]
    for each in forms[1:]:
        found = computed("+", found, each)
    return found


def covered(expression: expressions.Expression, exact: float) -> tuple[float, float]:
    """How often the uncut interval holds the exact number, and its median half-width."""
    low, high = expressions._interval(expression, 0.95)
    return float(np.mean((low <= exact) & (exact <= high))), float(np.median(high - low) / 2)


def row(name: str, expression: expressions.Expression, exact: float) -> None:
    share, half = covered(expression, exact)
    print(f"  {name:44} coverage {share:.3f}  half-width {half:.4g}")


def main() -> None:
    print("sums of counts")
    for eps in COARSE:
        for many in (2, 10, 50):
            row(f"eps {eps}, {many} counts", total([counts(20, eps) for _ in range(many)]), 20 * many)
    print("weighted sum 3 a - 2 b, and a / 3 + b")
    for eps in COARSE:
        a, b = counts(50, eps), counts(80, eps)
        row(
            f"eps {eps}, 3 a - 2 b",
            computed(
                "-",
                computed("*", a, expressions.constants(3, TIMES)),
                computed("*", b, expressions.constants(2, TIMES)),
            ),
            -10,
        )
        row(f"eps {eps}, a / 3 + b", computed("+", computed("/", a, expressions.constants(3, TIMES)), b), 50 / 3 + 80)
    print("shares of one cell in the sum of all")
    for eps in COARSE:
        for cells, each in ((4, 100), (10, 30), (100, 10), (1000, 5)):
            times = TIMES if cells < 100 else 200_000 // cells
            one = counts(each, eps, times)
            law = Law(1, Fraction(1), 1 / Fraction(eps), (1.0,), whole=True)
            drawn = each + noise(1 / eps, (1, times * (cells - 1)))
            rest = form_of(Measurements.of(law, drawn, new_draw()))
            into = np.repeat(np.arange(times), cells - 1)
            others = rest.gathered(into, np.arange(len(into)), np.ones(len(into)), times)
            row(f"eps {eps}, {cells} cells of {each}", computed("/", one, computed("+", one, others)), 1 / cells)
    print("ratios of two counts")
    for eps in COARSE:
        for a, b in ((0, 3), (1, 3), (3, 3), (5, 20), (30, 40), (100, 400), (0, 50), (50, 5)):
            row(f"eps {eps}, {a} / {b}", computed("/", counts(a, eps), counts(b, eps)), a / b)
    print("differences and quotients of means")
    for eps in (0.1, 0.5, 2.0):
        for n, m in ((10, 30), (60, 40), (200, 100), (1000, 3000)):
            for p, q in ((0.1, 0.5), (0.4, 0.6), (0.9, 0.8)):
                one, other = means(n, p, eps), means(m, q, eps)
                row(f"eps {eps}, n {n} and {m}, {p} - {q}", computed("-", one, other), p - q)
                row(f"eps {eps}, n {n} and {m}, {p} / {q}", computed("/", one, other), p / q)
                row(f"eps {eps}, n {n} and {m}, {p} * {q}", expressions.Multiplied("*", one, other), p * q)


if __name__ == "__main__":
    main()
