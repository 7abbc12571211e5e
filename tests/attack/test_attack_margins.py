"""Attacks on tables that add up: least squares and rounding are post-processing, and tell nothing more."""

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import attack
from pdrisk._audit.replay import recorded, replayed

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

KEYS = {"region": [0, 1, 2], "sex": [0, 1]}
BY, EPS, DRAWS = ["region", "sex"], 1.0, 150
FEW = pd.DataFrame({"region": [0, 0, 1, 2], "sex": [0, 1, 1, 0]})
ALLOT = {("region", "sex"): 0.5, ("region",): 0.25, (): 0.25}


def tables(frame, whole):
    return frame.dprisk.count(eps=EPS, by=BY, keys=KEYS, margins=True, allot=ALLOT, whole=whole)["value"].to_numpy()


@pytest.fixture
def drawn(monkeypatch):
    """The raw numbers of each call, cells and margins one behind the other."""
    seen, own = [], pdrisk._answer.releasing.drawn_margins

    def watched(*given):
        seen.append(own(*given))
        return seen[-1]

    monkeypatch.setattr("pdrisk._answer.releasing.drawn_margins", watched)
    return seen


def log_odds(numbers, with_person, without):
    """Log-odds of raw numbers: discrete Laplace noise at the eps of each table."""
    rates = EPS * np.repeat([0.5, 0.25, 0.25], [6, 3, 1])
    return ((np.abs(numbers - without) - np.abs(numbers - with_person)) * rates).sum(axis=-1)


def raw(frame):
    cells = frame.groupby(BY).size().reindex(pd.MultiIndex.from_product(KEYS.values()), fill_value=0).to_numpy()
    return np.concatenate([cells, cells.reshape(3, 2).sum(axis=1), [cells.sum()]])


class TestInformedAttacker:
    """Whoever knows everybody else compares both worlds: best by the raw numbers, and never better by the tables."""

    @pytest.mark.slow
    def test_success(self, drawn):
        worlds = FEW, FEW.iloc[1:]
        shown = {whole: [[tables(frame, whole) for _ in range(DRAWS)] for frame in worlds] for whole in (True, False)}
        numbers = np.array(drawn, dtype=float).reshape(2, 2, DRAWS, -1)  # whole, world
        claim = float(pdrisk.risk.posterior(EPS))
        odds = log_odds(numbers, raw(worlds[0]), raw(worlds[1]))
        right = ((odds[:, 0] > 0).mean(axis=1) + (odds[:, 1] <= 0).mean(axis=1)) / 2
        success = dict(zip((True, False), right, strict=True))
        answer = pdrisk._answer.answers.answer.Answer.from_attrs(
            FEW.dprisk.count(eps=EPS, by=BY, keys=KEYS, margins=True, allot=ALLOT).attrs
        )
        slack = 4 * 0.5 / np.sqrt(2 * DRAWS)
        for whole, best in success.items():
            assert best <= answer.lines[0].success + slack <= claim + slack
            # The attacker learns which tables come from which world, from half of them, by a linear rule.
            with_person, without = (np.array(each, dtype=float) for each in shown[whole])
            half = DRAWS // 2
            weights = with_person[:half].mean(axis=0) - without[:half].mean(axis=0)
            middle = (with_person[:half] @ weights).mean() / 2 + (without[:half] @ weights).mean() / 2
            right = ((with_person[half:] @ weights > middle).mean() + (without[half:] @ weights <= middle).mean()) / 2
            assert 0.5 < right <= best + slack

    @pytest.mark.slow
    @pytest.mark.parametrize("whole", [True, False])
    def test_black_box(self, whole):
        """No event of the published tables is much more likely with a person than eps allows."""
        found = attack.epsilon_lower_bound(
            lambda frame: tables(frame, whole), FEW, FEW.iloc[1:], eps=EPS, draws=300, level=0.9999
        )
        assert found.verdict != "broken"

    @pytest.mark.slow
    def test_consistent_tables(self):
        """Answers that were out before, adjusted afterwards: both cost eps, and nothing more is told."""

        def published(frame):
            cells = frame.dprisk.count(eps=EPS / 2, by=BY, keys=KEYS)
            regions = frame.dprisk.count(eps=EPS / 2, by="region", keys=KEYS)
            return np.concatenate([each["value"] for each in pdrisk.consistent([cells, regions], same_data=True)])

        found = attack.epsilon_lower_bound(published, FEW, FEW.iloc[1:], eps=EPS, draws=400, level=0.9999)
        assert found.verdict != "broken"

    @pytest.mark.slow
    def test_a_wrong_claim_would_be_noticed(self):
        """The same attack breaks a claim of a twentieth of eps, by the total alone."""
        options = {"eps": 4, "by": BY, "keys": KEYS, "margins": True, "allot": ALLOT, "whole": False}
        found = attack.epsilon_lower_bound(
            lambda frame: frame.dprisk.count(**options)["value"].iloc[-1], FEW, FEW.iloc[1:], eps=0.2, draws=600
        )
        assert found.verdict == "broken"

    def test_tables_are_a_function_of_what_was_drawn(self, drawn):
        """The same raw numbers give the same tables, whoever is in the data."""
        first = tables(FEW, True)
        (numbers,) = drawn
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("pdrisk._answer.releasing.drawn_margins", lambda *_: numbers)
            again = tables(FEW.iloc[2:], True)
        assert again.tolist() == first.tolist()


ASKED = {
    "count": lambda frame, **options: frame.dprisk.count(**options),
    "values": lambda frame, **options: frame.dprisk.count("x", **options),
    "sum": lambda frame, **options: frame.dprisk.sum("x", bounds=(0, 9), **options),
    "whole sum": lambda frame, **options: frame.dprisk.sum("x", bounds=(0, 9), step=1, **options),
    "mean": lambda frame, **options: frame.dprisk.mean("x", bounds=(0, 9), **options),
    "agg": lambda frame, **options: frame.dprisk.agg({"x": ["count", "mean", "std"]}, bounds=(0, 9), **options),
    "shares": lambda frame, **options: frame.dprisk.count(normalize=["region"], **options),
    "SQL": lambda frame, eps, keys, **_: pdrisk.sql(
        "SELECT region, sex, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY CUBE (region, sex)",
        eps=eps, keys=keys, bounds={"x": (0, 9)}, t=frame,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "groups"), [(2, 3), (2, 6), (3, None)])
def test_success_against_the_total_alone(rows, groups):
    """In a margin all rows of a person may be in one cell, however many groups they are in: the best test of it."""
    frame, change = FEW.assign(pid=np.arange(len(FEW))), rows * (groups or 1)
    options = {} if groups is None else {"groups": groups}
    shares = {tuple(BY): 0.01, (): 0.99}
    table = frame.dprisk.count(
        success=0.7, by=BY, keys=KEYS, margins=[[]], allot=shares, person="pid", rows=rows, whole=False, **options
    )
    total = table["eps"].iloc[0] * 0.99
    steps = np.arange(-4000, 4001)
    law = np.exp(-np.abs(steps) * total / change)
    success = 0.5 + np.abs(law - np.roll(law, change)).sum() / law.sum() / 4
    assert 0.66 < success <= 0.7


class TestReplay:
    """With the noise of a neighbour all that is shown is the same, and what differs under it costs at most eps."""

    @pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
    def test_neighbours(self, asked):
        random = np.random.default_rng(4)
        for number in (1, 4, 40):
            columns = {"region": random.integers(0, 3, number), "sex": random.integers(0, 2, number)}
            frame = pd.DataFrame(columns | {"x": random.integers(0, 10, number).astype(float)})
            options = {"eps": EPS, "by": BY, "keys": KEYS, "margins": True}
            for allot in (None, "even"):

                def ask(data, allot=allot, options=options):
                    return asked(data, **options | ({} if asked is ASKED["SQL"] else {"allot": allot}))

                first = recorded(ask, frame)
                assert replayed(ask, frame.iloc[1:], first).loss <= EPS * (1 + 1e-9)

    @pytest.mark.parametrize("asked", [ASKED[each] for each in ("count", "whole sum", "mean")])
    def test_people_with_several_rows(self, asked):
        """At most three rows of a person count, in whatever cells: all tables together hide them."""
        random = np.random.default_rng(5)
        columns = {"region": random.integers(0, 3, 60), "sex": random.integers(0, 2, 60), "pid": np.arange(60) // 5}
        frame = pd.DataFrame(columns | {"x": random.integers(0, 10, 60).astype(float)})
        options = {"eps": EPS, "by": BY, "keys": KEYS, "margins": True, "allot": "even", "person": "pid", "rows": 3}
        first = recorded(lambda data: asked(data, **options), frame)
        for pid in range(6):
            left = replayed(lambda data: asked(data, **options), frame[frame["pid"] != pid], first)
            assert left.loss <= EPS * (1 + 1e-9)
