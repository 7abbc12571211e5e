"""Sample data: a synthetic stand-in for the survey of the SOEP paper. No row is a person's.

The Socio-Economic Panel is restricted and cannot be shipped. What a demonstration needs is its shape: three
variables with the published figures, missing codes among the values, heaped answers, one income that
outweighs all others. ``soep_like`` makes such a frame from a seed and from published aggregates alone.
"""

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.foreign import own_errors, shown
from pdrisk.datasets._multiset import Floats, Ints, Marginal, multiset
from pdrisk.errors import ColumnTypeError, ParameterError

#: The numbers that stand for a missing answer in ``hours``, ``distance`` and ``income``: -1 no answer, -2 does
#: not apply, -5 not in this version of the questionnaire, -8 question not asked this year.
MISSING_CODES = (-1, -2, -5, -8)

#: Levels of ``sex``.
SEXES = ("female", "male")

#: Levels of ``education``, in ascending order.
EDUCATION = ("low", "medium", "high")

#: Levels of ``employment``, in descending order of work.
EMPLOYMENT = ("full-time", "part-time", "marginal", "not employed")

# Inhabitants at the end of 2019 in thousands (Destatis): the shares in which households are drawn.
_INHABITANTS = {
    "Baden-Württemberg": 11_100,
    "Bavaria": 13_125,
    "Berlin": 3_669,
    "Brandenburg": 2_522,
    "Bremen": 681,
    "Hamburg": 1_847,
    "Hesse": 6_288,
    "Lower Saxony": 7_994,
    "Mecklenburg-Vorpommern": 1_608,
    "North Rhine-Westphalia": 17_947,
    "Rhineland-Palatinate": 4_094,
    "Saarland": 987,
    "Saxony": 4_072,
    "Saxony-Anhalt": 2_195,
    "Schleswig-Holstein": 2_904,
    "Thuringia": 2_133,
}

#: The sixteen federal states, the values of ``state``, in alphabetical order.
STATES = tuple(_INHABITANTS)

# Households of one to six persons: 15,000 households, 30,000 persons.
_HOUSEHOLDS = (6_160, 5_140, 1_880, 1_300, 400, 120)
_EMPLOYED = 17_500
_ON_LEAVE = 300  # employed, yet zero hours on a weekday
_NOT_EMPLOYED = EMPLOYMENT.index("not employed")

# Spearman correlation of income with sex (female = 1), education and hours.
_INCOME_CORRELATIONS = np.array([-0.35, 0.31, 0.43])


# Allmann et al. 2024, Table II: n, mean, median, std.
_HOURS = Marginal(25_238, 5.35, 7, 4.38)
_DISTANCE = Marginal(14_734, 15.07, 10, 19.90)
_INCOME = Marginal(16_594, 3_432, 2_500, 21_669)


class _Persons(NamedTuple):
    """The persons, one entry for each; the last three fields are positions in the public tuples of levels."""

    household: Ints
    female: NDArray[np.bool_]
    age: Ints
    state: Ints
    education: Ints
    employment: Ints


@own_errors
def soep_like(*, seed: int = 2019, missing: Literal["codes", "nan"] = "codes") -> pd.DataFrame:
    """Synthetic survey of 30,000 persons, shaped like the SOEP. No row is a person's.

    Parameters
    ----------
    seed : int, default 2019
        Seed of the synthetic persons; >= 0. The same seed gives the same frame, another seed other persons
        with the same published figures.
    missing : {"codes", "nan"}, default "codes"
        How a missing answer is written in ``hours``, ``distance`` and ``income``: as one of `MISSING_CODES`, as in
        the raw file, or as NaN. The same persons' answers are missing in both.

    Returns
    -------
    DataFrame
        One row for each person, 15,000 households of one to six persons, and the columns

        =============== ========================================================================
        person_id       1 to 30,000, unique
        household_id    1 to 15,000; the rows of a household are adjacent and share the state
        sex             "female", "male"
        age             years, 17 to about 100
        state           one of `STATES`
        education       one of `EDUCATION`
        employment      one of `EMPLOYMENT`
        hours           work hours per weekday, in half hours; 0 is an answer, not a code
        distance        kilometres to the workplace
        income          gross monthly income, euros
        =============== ========================================================================

        ``distance`` and ``income`` do not apply (-2) to whoever is not employed. With codes they are int64 and
        ``hours`` is float64; with NaN all three are float64.

    Raises
    ------
    ColumnTypeError
        If the seed is no integer.
    ParameterError
        If the seed is negative or `missing` is neither word.

    See Also
    --------
    MISSING_CODES : Meaning of each code. The codes are negative numbers, and nothing drops them unless declared.
    soep_like_schema : Schema that declares them, with bounds and groups.

    Notes
    -----
    For every seed the answers match Table II of the paper: n, least and largest value and median exactly,
    mean and standard deviation within 0.01 %. Kilometres and incomes are heaped on round numbers; some 36 % of
    the hours are 0; one income, 2,700,000, is most of the variance of all incomes. The Spearman correlation of
    income with sex (female = 1), education and hours is -.35, .31 and .43.

    Everything else (ages, households, who commutes how far) is invented to be roughly plausible. Do not
    draw conclusions about Germany from it. The frame is drawn from published aggregates only, so it discloses
    nothing about a respondent beyond them.

    References
    ----------
    Allmann et al. 2024, Table II.

    Examples
    --------
    >>> survey = soep_like()
    >>> survey.shape
    (30000, 10)
    >>> answers = survey.loc[survey["distance"] >= 0, "distance"]
    >>> len(answers), int(answers.min()), int(answers.max())
    (14734, 1, 675)
    """
    if not isinstance(seed, int | np.integer):
        raise ColumnTypeError(f"seed must be an integer, not {type(seed).__name__}: pass seed=2019, say.")
    if seed < 0:
        raise ParameterError(f"seed must be 0 or more, not {shown(seed)}.")
    if not isinstance(missing, str) or missing not in ("codes", "nan"):
        raise ParameterError(f"missing must be 'codes' or 'nan', not {shown(missing)}.")
    rng = np.random.default_rng(seed)
    persons = _persons(rng)
    hours, standing = _hours(persons, rng)
    income = _income(persons, hours, standing, rng)
    distance = _distance(persons, standing, rng)
    frame = pd.DataFrame(
        {
            "person_id": np.arange(1, len(persons.age) + 1),
            "household_id": persons.household + 1,
            "sex": np.where(persons.female, "female", "male"),
            "age": persons.age,
            "state": np.array(STATES)[persons.state],
            "education": np.array(EDUCATION)[persons.education],
            "employment": np.array(EMPLOYMENT)[persons.employment],
            "hours": hours,
            "distance": distance.astype(np.int64),
            "income": income.astype(np.int64),
        }
    )
    if missing == "nan":
        answers = ["hours", "distance", "income"]
        frame[answers] = frame[answers].astype(float).mask(frame[answers].isin(MISSING_CODES))
    return frame


def _persons(rng: np.random.Generator) -> _Persons:
    """Households of a person, a couple, or a couple with grown children; their schooling and work."""
    size = rng.permutation(np.repeat(np.arange(1, 7), _HOUSEHOLDS))
    household = np.repeat(np.arange(len(size)), size)
    place = np.arange(len(household)) - np.repeat(np.cumsum(size) - size, size)
    n = len(household)

    alone, couple = 20 + 78 * rng.beta(1.3, 1.7, len(size)), 22 + 68 * rng.beta(1.8, 1.9, len(size))
    parent = 40 + 28 * rng.beta(2, 2.5, len(size))
    first = np.select([size == 1, size == 2], [alone, couple], parent)
    partner = np.clip(first + rng.normal(0, 4, len(size)), np.where(size > 2, 36, 19), 100)
    # Children are 17 or older, as all respondents, and at least 18 years younger than both adults.
    room = np.maximum(np.minimum(first, partner) - 35, 1)[household]
    child = 17 + room * rng.beta(1, 2, n)
    age = np.select([place == 0, place == 1], [first[household], partner[household]], child).astype(np.int64)

    first_female = rng.random(len(size)) < np.where(size == 1, 0.54, 0.5)
    female = np.where(place == 0, first_female[household], rng.random(n) < 0.5)
    mixed = (place == 1) & (rng.random(n) < 0.98)
    female = np.where(mixed, ~first_female[household], female)

    inhabitants = np.array(list(_INHABITANTS.values()), dtype=float)
    state = rng.choice(len(STATES), size=len(size), p=inhabitants / inhabitants.sum())[household]

    schooling = 0.6 * rng.standard_normal(len(size))[household] + 0.8 * rng.standard_normal(n)
    schooling -= np.clip((age - 55) / 60, 0, 0.6)
    ceiling = np.select([age < 19, age < 23], [0, 1], 2)
    education = np.minimum(np.digitize(schooling, [-0.95, 0.5]), ceiling)

    # The largest 17,500 of log odds plus logistic noise: about these odds for each person, and an exact count.
    chance = np.interp(age, [17, 20, 25, 30, 56, 62, 66, 70, 80], [0.3, 0.6, 0.8, 0.88, 0.86, 0.62, 0.2, 0.08, 0.005])
    wish = np.log(chance / (1 - chance)) - 0.5 * female + 0.4 * (education - 1) + rng.logistic(size=n)
    employed = np.argsort(-wish, kind="stable")[:_EMPLOYED]
    marginal = np.where(female, 0.13, 0.05) + 0.4 * ((age < 20) | (age > 65))
    part_time = np.where(female, 0.38, 0.07)
    draw = rng.random(n)
    kind = np.select([draw < marginal, draw < marginal + part_time], [2, 1], 0)
    employment = np.full(n, _NOT_EMPLOYED)
    employment[employed] = kind[employed]
    return _Persons(household, female, age, state, education, employment)


def _hours(persons: _Persons, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Hours with their codes, and a latent standing in work hours that the employed keep if they do not answer."""
    zeros = int(_HOURS.n * 0.36) + int(rng.integers(-60, 61))
    positive = _HOURS.n - zeros
    grid = np.arange(0.5, 18.5, 0.5)
    # Workers' share at each full hour up to 18, per mille; a half hour gets a third of its neighbours' mean.
    full = np.array([0, 6, 14, 24, 46, 50, 58, 85, 400, 150, 110, 26, 22, 5, 4, 3, 2, 0.5, 0.3])
    shares = np.interp(grid, np.arange(19), full) * np.where(grid % 1 == 0, 1, 1 / 3)
    pinned = np.append(np.zeros(zeros), 18)
    values = multiset(grid, shares, pinned, _HOURS, 0.05, rng)[zeros:]

    working = persons.employment != _NOT_EMPLOYED
    kind = np.array([2.6, 1.2, 0, 0])[persons.employment]
    standing = kind - 0.2 * persons.female + 0.15 * (persons.education - 1) + 0.6 * rng.standard_normal(len(kind))
    employed, idle = rng.permutation(np.flatnonzero(working)), rng.permutation(np.flatnonzero(~working))
    hours = _codes((0.1, 0.4, 0.2, 0.3), len(kind), rng)
    hours[working] = _codes((0.5, 0, 0.25, 0.25), _EMPLOYED, rng)
    answered = employed[:positive]
    hours[answered[np.argsort(standing[answered], kind="stable")]] = values
    hours[employed[positive : positive + _ON_LEAVE]] = 0
    hours[idle[: zeros - _ON_LEAVE]] = 0
    return hours, standing


def _income(persons: _Persons, hours: Floats, standing: Floats, rng: np.random.Generator) -> Floats:
    """Incomes with their codes, dealt out by a score of sex, education, hours, age and luck."""
    edges, steps = [0, 5_000, 10_000, 20_000, 60_000, 200_000, 350_000], [50, 100, 500, 2_500, 10_000, 25_000]
    heaps = np.concatenate([np.arange(*edge, step) for edge, step in zip(pairwise(edges), steps, strict=True)])
    odd = np.unique(np.exp(rng.normal(np.log(2_300), 0.65, 620)).astype(np.int64) + 1)
    odd = odd[(odd % 50 != 0) & (odd < 9_000)]
    grid = np.sort(np.concatenate([heaps, odd])).astype(float)
    pull = np.select([grid % 1_000 == 0, grid % 500 == 0, grid % 100 == 0, grid % 50 == 0], [9, 7, 3, 0.6], 0.14)
    body = np.exp(-0.5 * (np.log(np.maximum(grid, 50) / 2_450) / 0.72) ** 2) / np.maximum(grid, 150) ** 0.6
    # Beyond 20,000 euros a power law whose second moment is most of what the largest income leaves of the variance.
    scale = float((pull * body).sum()) / _INCOME.n
    tail = np.where(grid >= 20_000, 10 * scale * (np.maximum(grid, 1) / 20_000) ** -1.2, 0)
    values = multiset(grid, pull * body + tail, np.array([0, 2_700_000]), _INCOME, 0.045, rng)

    working = persons.employment != _NOT_EMPLOYED
    paid = np.sort(rng.permutation(np.flatnonzero(working))[: _INCOME.n])
    drivers = np.stack([persons.female[paid], persons.education[paid], standing[paid]])
    ranks = np.stack([_ranks(driver) for driver in drivers])
    ranks = (ranks - ranks.mean(axis=1, keepdims=True)) / ranks.std(axis=1, keepdims=True)
    career = np.interp(persons.age[paid], [17, 22, 30, 45, 65], [-2.5, -1.2, -0.1, 0.4, 0.5])
    luck = rng.standard_normal(len(paid)) + career
    luck -= 1.2 * (persons.employment[paid] == EMPLOYMENT.index("marginal"))
    luck = (luck - luck.mean()) / luck.std()
    income = np.full(len(working), -2.0)
    income[working] = _codes((0.8, 0, 0.1, 0.1), _EMPLOYED, rng)
    answered = hours[paid] >= 0
    aim = _INCOME_CORRELATIONS
    # Ranks, ties and the unanswered hours each shift the correlations a little: aim off by as much and deal again.
    for _ in range(3):
        weights = np.linalg.solve(np.corrcoef(ranks), aim)
        score = weights @ ranks + np.sqrt(max(1 - float(aim @ weights), 0.1)) * luck
        income[paid[np.argsort(score, kind="stable")]] = values
        dealt = income[paid]
        reached = [_spearman(driver, dealt) for driver in drivers[:2]]
        reached.append(_spearman(hours[paid][answered], dealt[answered]))
        aim = aim + _INCOME_CORRELATIONS - reached
    return income


def _distance(persons: _Persons, standing: Floats, rng: np.random.Generator) -> Floats:
    """Kilometres with their codes; longer work days go with slightly longer commutes."""
    grid = np.concatenate([np.arange(1, 121), np.arange(125, 300, 5), np.arange(300, 700, 25)]).astype(float)
    pull = np.select([grid % 50 == 0, grid % 10 == 0, grid % 5 == 0], [6, 5, 2.5], 1)
    body = np.exp(-0.5 * np.log(grid / 9) ** 2) / grid
    tail = np.where(grid > 60, 1e-3 * (grid / 100) ** -1.5, 0)  # to 675 km, beyond any log-normal
    values = multiset(grid, pull * (body + tail), np.array([1, 675]), _DISTANCE, 0.11, rng)

    working = persons.employment != _NOT_EMPLOYED
    commuting = rng.permutation(np.flatnonzero(working))[: _DISTANCE.n]
    # Also among the employed, -2: they work at home or at changing places.
    distance = np.full(len(working), -2.0)
    distance[working] = _codes((0.25, 0.55, 0.1, 0.1), _EMPLOYED, rng)
    score = 0.15 * standing[commuting] + rng.standard_normal(len(commuting))
    distance[commuting[np.argsort(score, kind="stable")]] = values
    return distance


def _codes(shares: tuple[float, float, float, float], n: int, rng: np.random.Generator) -> Floats:
    return rng.choice(np.array(MISSING_CODES, dtype=float), size=n, p=shares)


def _ranks(values: NDArray[np.generic]) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def _spearman(x: NDArray[np.generic], y: NDArray[np.generic]) -> float:
    return float(np.corrcoef(_ranks(x), _ranks(y))[0, 1])
