"""Answers about too few people are withheld, by a noisy number of them that is paid for."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

import pdrisk
import pdrisk._answer.releasing as releasing
from ledgers import SURE, asked, events, tables, typed, values
from pdrisk._answer.answers.answer import Answer

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

SIZE = 20
BOUNDS = {"bounds": (0, 10)}
KEYS = [0, 1, 18, 19, 21, 22, 40]
SMALL = [key < SIZE for key in KEYS]


def sized():
    """Group k has k people; in column y, only 19 of each group have a value."""
    groups = np.repeat(KEYS, KEYS)
    frame = pd.DataFrame({"g": groups, "x": np.arange(len(groups)) % 7 + 1.0})
    frame["y"] = frame["x"].where(frame.groupby("g").cumcount() < SIZE - 1)
    return frame


def policy(size=SIZE, eps=SURE):
    return {"least_group": {"size": size, "eps": eps}}


def sql(select, frame, ledger, eps=SURE, **options):
    return pdrisk.sql(f"SELECT {select} FROM t", eps=eps, ledger=ledger, t=frame, **BOUNDS | options)


STATISTICS = {
    "count": {}, "sum": BOUNDS, "mean": BOUNDS, "median": BOUNDS, "quantile": BOUNDS | {"q": 0.9}, "min": BOUNDS,
    "max": BOUNDS, "var": BOUNDS, "std": BOUNDS,
}  # fmt: skip


class TestWithheld:
    """With noise that decides nothing: withheld below the size, and nowhere else."""

    @pytest.mark.parametrize("name", STATISTICS)
    @pytest.mark.parametrize("column", ["x", "y"])
    def test_groups(self, book, name, column):
        """It counts the records that are used, not the rows."""
        frame = sized()
        ask = getattr(frame.dprisk, name)
        options = {"eps": SURE, "by": "g", "keys": KEYS} | STATISTICS[name]
        found = ask(column, ledger=book(policy=policy()), **options)
        expected = ask(column, **options)["value"].where(~np.array(SMALL) & (column == "x"))
        np.testing.assert_allclose(found["value"], expected, atol=0.01)
        exact = ask(column, curator=True, **options)
        assert exact["n"].tolist() == [min(key, SIZE - 1) if column == "y" else key for key in KEYS]

    @pytest.mark.parametrize(("where", "withheld"), [("g == 19", True), ("g == 21", False), ("g > 90", True)])
    def test_a_filter(self, book, where, withheld):
        release = sized().dprisk.mean("x", where=where, eps=SURE, ledger=book(policy=policy()), **BOUNDS)
        assert math.isnan(release.value) == math.isnan(float(release)) == withheld
        assert release.least_group == release.public()["least_group"] == (SIZE, SURE)
        assert ("withheld: too few people" in repr(release)) == withheld
        assert f"{SIZE} people, by a noisy number of them for eps 1e+06 more" in repr(release)

    def test_each_column_of_agg(self, book):
        frame = sized()
        request = {"x": ["mean", "max"], "y": ["count", "mean"]}
        found = frame.dprisk.agg(request, eps=SURE, where="g == 40", ledger=book(policy=policy()), **BOUNDS)
        assert found["value"].isna().tolist() == [False, False, True, True]
        told = Answer.from_attrs(found.attrs)
        assert (told.least_group, told.extra) == (SIZE, 2 * SURE)

    @pytest.mark.parametrize(("bad", "size"), [(0, 1), (1, 2), (40, 41)])
    def test_sizes(self, book, bad, size):
        frame = sized()
        ledger = book(policy=policy(size))
        for key in (bad, *([] if bad == 40 else [40])):
            release = frame.dprisk.count(where=f"g == {key}", eps=SURE, ledger=ledger)
            assert math.isnan(release.value) == (key == bad)

    def test_without_a_rule(self, book):
        release = sized().dprisk.count(eps=SURE, where="g == 1", ledger=book())
        assert release.least_group is None and "least_group" not in release.public()
        assert "withheld" not in repr(release) and release.value == pytest.approx(1, abs=0.01)

    def test_rounding(self, book):
        rules = policy() | {"round_to": {"count": 25}}
        found = sized().dprisk.count(by="g", keys=KEYS, eps=SURE, ledger=book(policy=rules))["value"]
        np.testing.assert_array_equal(found, [math.nan] * 4 + [25, 25, 50])

    def test_sql(self, book):
        """NULL, so that no comparison takes it for a number."""
        frame, ledger = sized(), book(policy=policy())
        select = "g, COUNT(*) AS n, AVG(x) AS m, COUNT(*) IS NULL AS none"
        found = pdrisk.sql(f"SELECT {select} FROM t GROUP BY g", eps=SURE, ledger=ledger, t=frame, keys=KEYS, **BOUNDS)
        assert found["n"].isna().tolist() == found["m"].isna().tolist() == found["none"].tolist() == SMALL
        assert Answer.from_attrs(found.attrs).least_group == SIZE
        for having, kept in (("> 0", 3), ("<= 1e9", 3), ("IS NULL", 4), (">= 39", 1)):
            text = f"SELECT g FROM t GROUP BY g HAVING COUNT(*) {having}"
            assert len(pdrisk.sql(text, eps=SURE, ledger=ledger, t=frame, keys=KEYS)) == kept

    def test_sql_filters(self, book):
        select = (
            "COUNT(*) AS a, COUNT(*) FILTER (g = 19) AS b, AVG(x) FILTER (g = 21) AS c, AVG(y) FILTER (g = 21) AS d"
        )
        found = sql(select, sized(), book(policy=policy()))
        assert found.isna().iloc[0].tolist() == [False, True, False, True]

    def test_lines_about_the_same_people(self, book):
        """They are withheld together: one number decides, at an eps where chance has its say."""
        frame = pd.DataFrame({"g": np.repeat(np.arange(300), SIZE), "x": 1.0})
        request = {"x": ["mean", "max", "count"]}
        found = frame.dprisk.agg(request, eps=3, by="g", keys=range(300), ledger=book(policy=policy(eps=0.5)), **BOUNDS)
        withheld = found["value"].isna().to_numpy().reshape(3, 300)
        assert (withheld == withheld[0]).all()
        assert 50 < withheld[0].sum() < 250  # each with probability 1/2: outside with 1e-30

    def test_noise_decides(self, book):
        """The number is noisy with its own eps: a group far below is shown with probability exp(-eps d) / 2."""
        frame = pd.DataFrame({"g": np.repeat(np.arange(2000), SIZE - 4), "x": 1.0})
        found = frame.dprisk.count(by="g", keys=range(2000), eps=1, ledger=book(policy=policy(eps=0.5)))
        shown = found["value"].notna().sum()
        assert abs(shown - 2000 * math.exp(-2) / 2) < 100  # 9 standard deviations


COSTS = {  # how many numbers of people are looked at
    "one": (1, lambda df, led: df.dprisk.mean("x", eps=2, ledger=led, **BOUNDS)),
    "rows": (1, lambda df, led: df.dprisk.count(eps=2, ledger=led)),
    "groups": (1, lambda df, led: df.dprisk.count(eps=2, by="g", keys=KEYS, ledger=led)),
    "one column": (1, lambda df, led: df.dprisk.agg({"x": ["mean", "max", "count"]}, eps=2, ledger=led, **BOUNDS)),
    "two columns": (2, lambda df, led: df.dprisk.agg({"x": ["mean", "max"], "y": "min"}, eps=2, ledger=led, **BOUNDS)),
    "a series": (1, lambda df, led: df["x"].dprisk.mean(eps=2, ledger=led, **BOUNDS)),
    "sql": (1, partial(sql, "COUNT(*), COUNT(*) + 1", eps=2)),
    "sql, one column": (1, partial(sql, "AVG(x), MAX(x), COUNT(x)", eps=2)),
    "sql, rows and a column": (2, partial(sql, "COUNT(*), COUNT(x)", eps=2)),
    "sql, filters": (3, partial(sql, "AVG(x), AVG(x) FILTER (g = 1), MAX(x) FILTER (g = 2)", eps=2)),
    "sql, one filter": (1, partial(sql, "AVG(x) FILTER (g = 1), MAX(x) FILTER (g = 1)", eps=2)),
    "sql, expressions": (2, partial(sql, "COUNT(x), COUNT(x + y)", eps=2)),
    "sql, two ranges": (1, partial(sql, "dp_mean(x, lo := 0, hi := 5), dp_mean(x, lo := 0, hi := 9)", eps=2)),
}


@pytest.mark.parametrize("limits", [{"rows": 1}, {"rows": 2}, {"rows": 5}, {"rows": 2, "groups": 2}])
def test_of_people_in_several_groups(book, monkeypatch, limits):
    """By brute force: without one person, the numbers of people lose the eps of the look in all groups together."""
    looked, drawn_once = [], releasing.drawn_once

    def noted(mechanism, summary):
        if mechanism.eps < 1:  # the values have eps 8
            looked.append((float(mechanism.eps), summary.n))
        return drawn_once(mechanism, summary)

    monkeypatch.setattr(releasing, "drawn_once", noted)
    draw, keys = np.random.default_rng(8), ["a", "b", "c"]
    for _ in range(15):
        frame = typed(pd.DataFrame({"pid": draw.integers(0, 4, 14), "g": draw.choice(list("abcd"), 14)}))
        for own in (frame, frame[frame["pid"] > 0]):
            d = pdrisk.Dataset(own, person="pid", ledger=book(policy=policy(2, 0.5)))
            object.__setattr__(d._known_people, "secret", lambda: b"s" * 32)
            d.count("g", by="g", keys=keys, eps=8, **limits)
        (eps, one), (_, other) = looked[-2:]
        assert eps * np.abs(one - other).sum() <= 0.5
        assert eps == 0.5 / min(limits.get("groups", limits["rows"]), 3)


class TestCosts:
    """Each number of people costs its eps once, paid before, and inside of every limit."""

    @pytest.mark.parametrize(("looked", "ask"), COSTS.values(), ids=COSTS.keys())
    @pytest.mark.parametrize("eps", [0.3, Fraction(1, 3)])
    def test_costs(self, book, path, looked, ask, eps):
        frame, ledger = sized(), book(policy=policy(eps=eps))
        ask(frame, ledger)
        ((paid,),) = tables(path, "SELECT eps FROM records WHERE event = 'paid'")
        assert Fraction(paid) == 2 + looked * Fraction(str(eps))

    def test_a_search_for_bounds_is_about_nobody(self, book):
        frame, ledger = pd.DataFrame({"x": [42.0] * 500}), book(policy=policy(size=10**6, eps=5))
        low, high = frame.dprisk.suggest_bounds("x", eps=2, ledger=ledger)
        assert low <= 42 <= high and ledger.remaining().spent == 2

    @pytest.mark.parametrize("limits", [{"eps": 2.5}, {"eps_per_query": 2.5}, {"each_analyst": {"eps_per_day": 2.5}}])
    def test_over_a_limit(self, book, limits):
        frame = sized()
        ledger = book(**limits, policy=policy(eps=0.5))
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            frame.dprisk.count(eps=2.1, ledger=ledger)
        assert caught.value.requested == Fraction("2.6")
        assert frame.dprisk.count(eps=2, ledger=ledger).eps == 2
        assert events(ledger) == ["opened", "refused", "paid"]

    def test_remembered(self, book):
        """What was withheld stays withheld, for nothing."""
        frame = pd.DataFrame({"g": np.repeat(np.arange(50), SIZE), "x": 1.0})
        ledger = book(policy=policy(eps=0.5))
        d = pdrisk.Dataset(frame, ledger=ledger)
        ask = partial(lambda led, **o: d.count(eps=1, by="g", keys=range(50), **o))
        first, cost = asked(ledger, ask)
        again, nothing = asked(ledger, ask)
        np.testing.assert_array_equal(again, first)
        assert (cost, nothing) == (1.5, 0)
        fresh, cost = asked(ledger, partial(ask, fresh=True))
        assert cost == 1.5 and [*map(math.isnan, fresh)] != [*map(math.isnan, first)]

    @pytest.mark.parametrize(
        "said",
        [
            20, {"size": 20}, {"eps": 1}, {"size": 0, "eps": 1}, {"size": 2.5, "eps": 1}, {"size": True, "eps": 1},
            {"size": 20, "eps": 0}, {"size": 20, "eps": -1}, {"size": 20, "eps": math.inf}, {"size": 20, "eps": None},
            {"size": 20, "eps": 1e-30}, {"size": 20, "eps": 1, "noise": "laplace"}, [("size", 20), ("eps", 1)],
        ],
        ids=str,
    )  # fmt: skip
    def test_what_is_no_rule(self, book, path, said):
        with pytest.raises((pdrisk.ParameterError, pdrisk.ColumnTypeError)):
            book(policy={"least_group": said})
        assert not path.exists()

    def test_stands_in_the_file(self, book):
        """Exactly, for whoever opens it without naming it."""
        book(policy=policy(7, Fraction(1, 3)))
        book(policy=policy(7, Fraction(1, 3)))
        with pytest.raises(pdrisk.ParameterError, match="other limits"):
            book(policy=policy(7, 0.33))
        release = sized().dprisk.count(eps=1, ledger=book())
        assert release.least_group == (7, 1 / 3) and book().remaining().spent == pytest.approx(4 / 3)
        book().verify()


def test_values_are_those_asked_for(book):
    """What is shown has its own noise: it is not the number that decided."""
    frame, ledger = sized(), book(policy=policy(eps=SURE))
    found = [values(frame.dprisk.count(eps=0.1, ledger=ledger))[0] for _ in range(20)]
    assert max(found) - min(found) > 1
