"""Somebody else's auditor of every mechanism: `CanaryScoreAuditor` of jax-privacy, by Google DeepMind.

It is given a score of each of many answers about two neighbours, chooses a threshold by one half of them, and by the
other half bounds the privacy loss from below (Clopper & Pearson 1934). It must not find more than eps. And it must find
more where answers are drawn at twice the eps that they claim: what it cannot judge is not counted as passed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pdrisk
from correlated import repeated, summarised
from pdrisk._answer.answers.answer import Answer
from pdrisk._core.lattice import PLACES
from pdrisk._core.pairs import CorrAmong
from pdrisk._core.replaced import MeanOfSize
from pdrisk._core.statistics import Mean
from pdrisk._core.surveys.second_moments import SecondMoments
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._mechanisms import MECHANISMS, calibrated, discrete_laplace
from pdrisk._mechanisms.contract import draws
from pdrisk.attack._worlds import draws_of, summary_of

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

EPS = 2.0  # at which events are frequent enough to be counted, and rare enough to tell
DELTA = 1e-3
ERROR = 1e-6  # how often one of all these tests fails though everything is right
MANY, CALLS = (12_000, 60_000), (1200, 4000)  # draws by default and with --runslow; the latter if each is a call
BINS = 12  # of each number of an answer, by which a score is learned
LO, HI, WEIGHT = 0.0, 10.0, 4.0
BOTH = {"x": (LO, HI), "y": (LO, HI)}
WEIGHTED = {"bounds": {"x": (LO, HI), "w": (0.0, WEIGHT)}, "weights": "w"}
ONE = {"bounds": (LO, HI)}

SPREAD = [1.0, 2.0, 6.0, 9.0]
ALONE, MORE, ABOVE = ([], [HI]), (SPREAD, [*SPREAD, HI]), ([LO] * 20, [LO] * 20 + [HI])
CHANGED = ([*SPREAD, LO], [*SPREAD, HI])


@pytest.fixture(scope="module")
def auditing() -> Any:
    return pytest.importorskip("jax_privacy.auditing", reason='the auditor is not installed: pip install ".[auditor]"')


def copies(records, draws):
    """Every group is a copy of a world; y falls as x rises, and what is high has the largest weight."""
    x = np.tile(np.asarray(records, dtype=float), draws)
    groups = np.repeat(np.arange(draws), len(records))
    return pd.DataFrame({"g": groups, "x": x, "y": HI - x, "w": np.where(x > 5, WEIGHT, 1.0)})


def grouped(method, *named, **options):
    """Answers of the accessor, about all copies at once."""

    def ask(records, draws, eps):
        frame = copies(records, draws)
        return getattr(frame.dprisk, method)(*named, eps=eps, by="g", keys=range(draws), **options)

    return ask


def drawn(name, statistic, bounds):
    """All numbers that a mechanism draws, of which users see less."""

    def ask(records, draws, eps):
        mechanism = calibrated(name, statistic, Universe(*bounds), Fraction(eps))
        table = pd.DataFrame(draws_of(mechanism, summary_of(mechanism, [records]), draws).reshape(-1, draws).T)
        table.attrs = {"mechanism": mechanism.name}
        return table

    return ask


def correlated(worlds):
    """How much farther draws are from the one world than from the other: the best test of noise of the largest norm."""

    def ask(records, draws, eps):
        mechanism = calibrated(
            "k_norm_products", CorrAmong(0, 1, 3), Rectangle(LO, HI, Universe(LO, HI)), Fraction(eps)
        )
        found = [summarised(copies(each, 1)[["x", "y", "w"]] / HI * PLACES) for each in (records, *worlds)]
        drawn = mechanism.draw(repeated(found[0], draws))
        far = [np.abs(drawn - mechanism.exact(each)).max(axis=0) for each in found[1:]]
        table = pd.DataFrame({"farther": far[0] - far[1]})
        table.attrs = {"mechanism": mechanism.name}
        return table

    return ask


def private_keys(records, draws, eps):
    """How many people there seem to be in each group; -99 where it is not shown, since too few share it."""
    table = copies(records, draws).dprisk.count(eps=eps, by="g", keys="private", delta=DELTA)
    return table[["value"]].reindex(range(draws), fill_value=-99)


def of_people(records, draws, eps):
    """Means of people of two rows each, one of whom is there or not."""
    frame = copies(np.repeat(records, 2), draws)
    frame["pid"] = np.arange(len(frame)) // 2
    return frame.dprisk.mean("x", eps=eps, by="g", keys=range(draws), person="pid", rows=2, groups=1, **ONE)


def joined(records, draws, eps):
    """Everybody has two rows in one table and two in another, and so four in both joined."""
    a = copies(np.repeat(records, 2), draws).assign(pid=lambda frame: np.arange(len(frame)) // 2)
    words = "SELECT g, SUM(x) AS total FROM a JOIN b USING (pid) GROUP BY g ORDER BY g"
    of_people = {"person": "pid", "rows": {"a": 2, "b": 2}, "groups": 1, "keys": {"g": range(draws)}}
    return pdrisk.sql(words, eps=eps, tables={"a": a, "b": a[["pid"]]}, **of_people, **ONE)[["total"]]


def margins(records, draws, eps):
    """Two cells and their margin, which are adjusted to each other."""
    frame = copies(records, draws).assign(high=lambda own: own["x"] > 5)
    keys = {"g": range(draws), "high": [False, True]}
    value = frame.dprisk.count(eps=eps, by=["g", "high"], keys=keys, margins=[["g"]])["value"]
    return pd.DataFrame({key: value.xs(key, level="high").loc[range(draws)] for key in (False, True, pdrisk.ALL)})


def ratios(records, draws, eps):
    """Quotients of two answers about the same people."""
    frame = copies(records, 1)
    found = [frame.dprisk.sum("x", eps=eps / 2, **ONE) / frame.dprisk.count(eps=eps / 2) for _ in range(draws)]
    return pd.DataFrame({"value": [each.value for each in found]})


def sampler(records, draws, eps):
    """Discrete Laplace noise itself, on numbers of people."""
    return pd.DataFrame(discrete_laplace(np.full(draws, len(records)), 1, Fraction(eps)))


@dataclass(frozen=True)
class Question:
    """How it is asked, neighbours it tells apart, the mechanism that must answer, and how many draws there are."""

    ask: Callable[..., pd.DataFrame]
    worlds: tuple[list[float], list[float]]
    mechanism: str | None = None
    draws: tuple[int, int] = MANY
    delta: float = 0.0
    found_at: int = 2  # so many times eps: more where so few draws tell less than the proof bounds


def above(*records):
    """A record more at the upper bound."""
    return list(records), [*records, HI]


QUARTILES = [("quantile", {"q": q}) for q in (0.25, 0.5, 0.75)]
QUESTIONS = {
    "count": Question(grouped("count"), MORE, "geometric"),
    "whole sum": Question(grouped("sum", "x", step=1, **ONE), ALONE, "geometric"),
    "mean": Question(grouped("mean", "x", **ONE), ALONE, "two_sums"),
    "variance": Question(grouped("var", "x", **ONE), ABOVE, "bernstein"),
    "covariance": Question(grouped("cov", "x", "y", bounds=BOTH), ABOVE, "bernstein_products"),
    "correlations of several columns": Question(correlated(MORE), MORE, "k_norm_products"),
    "maximum": Question(grouped("max", "x", **ONE), above(*[LO] * 8, *[5.0] * 4, HI), "exponential"),
    "median": Question(grouped("median", "x", **ONE), MORE, "exponential"),
    "median, interval": Question(grouped("median", "x", interval=True, **ONE), MORE, "exponential_interval"),
    "quartiles": Question(grouped("agg", {"x": QUARTILES}, **ONE), MORE, "approximate_quantiles", found_at=4),
    "clipped mean": Question(
        drawn("clipped_sums", Mean(), (LO, HI)), above(*[5.0] * 20), "clipped_sums", CALLS, found_at=5
    ),
    "mean of so many": Question(drawn("one_sum", MeanOfSize(5), (LO, HI)), CHANGED, "one_sum"),
    "mean of many": Question(
        grouped("mean", "x", mechanism="two_stage", n_at_least=1000, **ONE), above(*[LO] * 30), "two_stage"
    ),
    "mean, Laplace": Question(grouped("mean", "x", mechanism="laplace", **ONE), ALONE, "laplace"),
    "median, Laplace": Question(grouped("median", "x", mechanism="laplace", **ONE), ALONE, "laplace"),
    "weighted mean": Question(grouped("mean", "x", **WEIGHTED), ALONE, "weighted_two_sums"),
    "weighted variance": Question(grouped("var", "x", ddof=0, **WEIGHTED), ABOVE, "weighted_bernstein"),
    # Of numbers that are not round, which are as likely as their neighbours before anything is read.
    "weighted median": Question(grouped("median", "x", **WEIGHTED), above(*[2.3457] * 16), "weighted_exponential"),
    "weighted median, interval": Question(
        grouped("median", "x", interval=True, **WEIGHTED), above(*[0.1234] * 8, *[5.4321] * 16),
        "weighted_exponential_interval",
    ),
    "sampling error": Question(drawn("noisy_moments", SecondMoments(), (-HI, HI)), ALONE, "noisy_moments"),
    "noise": Question(sampler, MORE),
    "private keys": Question(private_keys, above(*[HI] * 3), delta=DELTA),
    "people with several rows": Question(of_people, ALONE),
    "joined tables": Question(joined, ALONE),
    "margins": Question(margins, MORE),
    "quotients": Question(ratios, ALONE, draws=(0, 1500), found_at=3),
}  # fmt: skip


def answers(question, world, draws, eps):
    """Numbers that users see, a row for each answer."""
    table = question.ask(question.worlds[world], draws, eps)
    if question.mechanism is not None:
        own = table.attrs.get("mechanism") or Answer.from_attrs(table.attrs).lines[0].mechanism
        assert own == question.mechanism
    shown = [name for name in table.columns if name not in ("eps", "worst_case", "release")]
    return np.nan_to_num(table[shown].to_numpy(dtype=float).reshape(draws, -1), nan=-99.0)


def scores(first, second):
    """Scores that may be higher in the second world: learned from the first third of draws; and each number alone."""
    third = len(first) // 3
    cuts = [np.unique(np.quantile(own, np.linspace(0, 1, BINS + 1)[1:-1])) for own in first[:third].T]
    cells = []
    for found in (first, second):
        cell = np.zeros(len(found), dtype=np.int64)
        for own, ends in zip(found.T, cuts, strict=True):  # between two ends, or at one of them
            cell = cell * (2 * len(ends) + 1) + np.searchsorted(ends, own) + np.searchsorted(ends, own, "right")
        cells.append(cell)
    _, place = np.unique(np.concatenate(cells), return_inverse=True)
    before, after = np.split(place, 2)
    times = [np.bincount(each[:third], minlength=place.max() + 1) for each in (before, after)]
    learned = np.log((times[1] + 1) / (times[0] + 1))
    yield learned[before[third:]], learned[after[third:]]
    for own, other in zip(first[third:].T, second[third:].T, strict=True):
        if np.ptp(own) > 0:
            yield own, other
            yield -own, -other


def lower_bound(auditing, question, draws, eps):
    """The largest of the auditor's lower bounds of the privacy loss, with a small error of all these tests."""
    tried = list(scores(*(answers(question, world, draws, eps) for world in (0, 1))))
    return max(
        auditing.CanaryScoreAuditor(after, before).epsilon_clopper_pearson(
            ERROR / len(EACH) / len(tried), question.delta, one_sided=False,
            threshold_strategy=auditing.Split(seed=0),
        )
        for before, after in tried
    )  # fmt: skip


EACH = [  # question and draws
    pytest.param(question, question.draws[slow], id=name + ", many draws" * slow, marks=[pytest.mark.slow] * slow)
    for slow in (False, True)
    for name, question in QUESTIONS.items()
    if question.draws[slow]
]


def test_every_mechanism_is_audited():
    assert {question.mechanism for question in QUESTIONS.values()} >= set(MECHANISMS)


@pytest.mark.whole
@pytest.mark.parametrize(("question", "draws"), EACH)
def test_no_more_than_eps(auditing, question, draws):
    assert lower_bound(auditing, question, draws, EPS) <= EPS


@pytest.mark.whole
@pytest.mark.parametrize(("question", "draws"), EACH)
def test_finds_too_little_noise(auditing, question, draws):
    """Who claims eps and draws for twice as much is found out: neighbours and draws tell enough."""
    assert lower_bound(auditing, question, draws, question.found_at * EPS) > EPS


@pytest.mark.parametrize("name", ["count", "mean", "mean, Laplace"])
def test_finds_a_broken_sampler(auditing, name, monkeypatch):
    """Noise for 1.5 eps, put into pdrisk itself: answers say eps all the same."""
    monkeypatch.setattr(
        draws, "discrete_laplace", lambda exact, change, eps: discrete_laplace(exact, change, eps * 3 / 2)
    )
    assert lower_bound(auditing, QUESTIONS[name], 30_000, EPS) > EPS
