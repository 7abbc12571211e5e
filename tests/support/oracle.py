"""The definitions of docs/numbers.md, spelled out on exact fractions: slow, and independent of `src`."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

Records = tuple[Fraction, ...]


def count(records: Records, lo: Fraction, hi: Fraction) -> Fraction:
    return Fraction(len(records))


def total(records: Records, lo: Fraction, hi: Fraction) -> Fraction:
    return sum(records, Fraction(0))


def mean(records: Records, lo: Fraction, hi: Fraction) -> Fraction:
    return sum(records, Fraction(0)) / len(records) if records else (lo + hi) / 2


def median(records: Records, lo: Fraction, hi: Fraction) -> Fraction:
    if not records:
        return (lo + hi) / 2
    ordered, half = sorted(records), len(records) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def quantile(q: float) -> Callable[[Records, Fraction, Fraction], Fraction]:
    def at_q(records: Records, lo: Fraction, hi: Fraction) -> Fraction:
        if not records:
            return (lo + hi) / 2
        ordered = sorted(records)
        position = (len(ordered) - 1) * Fraction(q)
        left = math.floor(position)
        right = min(left + 1, len(ordered) - 1)
        return ordered[left] + (position - left) * (ordered[right] - ordered[left])

    return at_q


def smallest(records: Records, lo: Fraction, hi: Fraction) -> Fraction:
    return min(records, default=hi)


def largest(records: Records, lo: Fraction, hi: Fraction) -> Fraction:
    return max(records, default=lo)


def variance(ddof: int) -> Callable[[Records, Fraction, Fraction], Fraction]:
    def of(records: Records, lo: Fraction, hi: Fraction) -> Fraction:
        if len(records) <= ddof:
            return Fraction(0)
        centre = mean(records, lo, hi)
        return sum(((x - centre) ** 2 for x in records), Fraction(0)) / (len(records) - ddof)

    return of


@dataclass(frozen=True)
class Definition:
    """A statistic; with ``root`` the answer is the square root of what ``exact`` says, and only it is rounded."""

    exact: Callable[[Records, Fraction, Fraction], Fraction]
    root: bool = False

    def value(self, records: Records, lo: Fraction, hi: Fraction) -> float:
        answer = self._answer(records, lo, hi)
        return math.sqrt(answer) if self.root else float(answer)

    def change(self, before: Records, after: Records, lo: Fraction, hi: Fraction) -> float:
        a, b = self._answer(before, lo, hi), self._answer(after, lo, hi)
        if self.root:
            roots = math.sqrt(a) + math.sqrt(b)  # zero for variances that are zero, or too small for a float
            return float(abs(a - b)) / roots if roots else 0.0
        return float(abs(a - b))

    def _answer(self, records: Records, lo: Fraction, hi: Fraction) -> Fraction:
        return _remembered(self.exact, tuple(sorted(records)), lo, hi)

    def leave_one_out(self, records: Records, lo: Fraction, hi: Fraction) -> list[float]:
        """The answer without each record, in the order of the records."""
        return [self.value(rest, lo, hi) for rest in without_one(records)]

    def influence(self, records: Records, lo: Fraction, hi: Fraction) -> list[float]:
        return [self.change(records, rest, lo, hi) for rest in without_one(records)]

    def world_range(self, records: Records, lo: Fraction, hi: Fraction) -> float:
        """W: the largest distance between two leave-one-out answers."""
        rests = without_one(records)
        if not rests:
            return 0.0
        answers = [(self._answer(rest, lo, hi), rest) for rest in rests]
        return self.change(min(answers)[1], max(answers)[1], lo, hi)

    def local_sensitivity(self, records: Records, lo: Fraction, hi: Fraction, grid: Iterable[Fraction] = ()) -> float:
        return max(self.change(records, other, lo, hi) for other in neighbours(records, lo, hi, grid))

    def global_sensitivity(self, grid: Sequence[Fraction], size: int) -> float:
        """Over all multisets of up to ``size`` records of a grid that holds both ends of the universe."""
        lo, hi = min(grid), max(grid)
        return max(self.change(records, (*records, x), lo, hi) for records in multisets(grid, size - 1) for x in grid)


QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
DEFINITIONS = {  # by label
    "count": Definition(count),
    "sum": Definition(total),
    "mean": Definition(mean),
    "median": Definition(median),
    **{f"quantile({q:g})": Definition(quantile(q)) for q in QUANTILES},
    "min": Definition(smallest),
    "max": Definition(largest),
    "var": Definition(variance(1)),
    "var(ddof=0)": Definition(variance(0)),
    "std": Definition(variance(1), root=True),
    "std(ddof=0)": Definition(variance(0), root=True),
}


@lru_cache(maxsize=200_000)
def _remembered(exact: Callable[..., Fraction], records: Records, lo: Fraction, hi: Fraction) -> Fraction:
    return exact(records, lo, hi)


def multisets(grid: Sequence[Fraction], size: int) -> Iterator[Records]:
    """All multisets of 0 to ``size`` records."""
    for n in range(size + 1):
        yield from itertools.combinations_with_replacement(grid, n)


def without_one(records: Records) -> list[Records]:
    return [records[:i] + records[i + 1 :] for i in range(len(records))]


def neighbours(records: Records, lo: Fraction, hi: Fraction, grid: Iterable[Fraction] = ()) -> Iterator[Records]:
    """Every set with one record fewer, and those with one more that could be farthest off.

    Added values: a grid, the ends, the records, the mean, and the mid-points between all of these. Each statistic
    here is, as a function of the value added, linear or quadratic between two of them.
    """
    yield from without_one(records)
    marks = sorted({lo, hi, *grid, *records, mean(records, lo, hi)})
    for added in {*marks, *((a + b) / 2 for a, b in itertools.pairwise(marks))}:
        yield (*records, added)


def fractions(values: Iterable[float]) -> Records:
    return tuple(Fraction(value) for value in values)


def laplace_posteriors(worlds: Sequence[float], scale: float, output: float, prior: Sequence[float]) -> list[float]:
    """Bayes' rule: the belief in each world after one noisy output."""
    distances = [abs(output - world) / scale for world in worlds]
    nearest = min(distances)  # a common factor of all densities
    joint = [p * math.exp(nearest - d) for p, d in zip(prior, distances, strict=True)]
    return [each / math.fsum(joint) for each in joint]
