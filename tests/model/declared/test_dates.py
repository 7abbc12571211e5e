"""Dates: their statistics are dates, differences have bounds that follow, and months are keys; on every engine."""

import datetime
import json
import pickle

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._answer.answers.answer import Answer
from pdrisk._core.days import as_dates, day_number, moment, written_day
from pdrisk._core.universe import Days
from pdrisk._model.plain import days_between
from pdrisk._sql.syntax.ranges import Range, range_of_time
from pdrisk.errors import ColumnTypeError, ParameterError
from people_losses import loss_between
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

YEAR = ("2020-01-01", "2020-12-31")
BOUNDS = {"a": YEAR, "b": ("2020-01-01", "2021-02-04"), "t": ("2020-01-01", "2020-02-01")}
SURE = {"eps": 1e9, "bounds": BOUNDS}
# Admission, discharge and a moment of 999 stays; some are missing.
STAYS = """
CREATE TABLE stays AS SELECT i AS pid, i % 3 AS g,
    CASE WHEN i % 10 > 0 THEN CAST(DATE '2020-01-01' + CAST(i * 7919 % 366 AS INTEGER) AS DATE) END AS a,
    CAST(DATE '2020-01-01' + CAST(i * 7919 % 366 + i % 40 AS INTEGER) AS DATE) AS b,
    TIMESTAMP '2020-01-01 03:00:00' + INTERVAL (i * 37) MINUTE AS t
FROM range(999) AS r(i)
"""
STATISTICS = ["MIN({})", "MAX({})", "AVG({})", "MEDIAN({})", "QUANTILE_CONT({}, 0.25)", "QUANTILE_DISC({}, 0.9)"]
DAY = pd.Timedelta(days=1)


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as con:
        con.execute(STAYS)
        yield con


def ask(query, con, **options):
    return pdrisk.sql(query, con, **{**SURE, **options})


class TestStatistics:
    """Answers without noise are those of DuckDB, rounded to days, of times to the lattice that answers lie on."""

    @pytest.mark.parametrize("column", ["a", "b", "t"])
    @pytest.mark.parametrize("form", STATISTICS)
    def test_as_duckdb(self, form, column, con):
        statistic = form.format(column)
        found = ask(f"SELECT {statistic} AS s, g FROM stays GROUP BY g ORDER BY g", con, keys=[0, 1, 2])
        wanted = con.execute(f"SELECT {statistic} FROM stays GROUP BY g ORDER BY g").fetchall()
        assert found["s"].dtype.kind == "M"
        for one, (other,) in zip(found["s"], wanted, strict=True):
            if column == "t":
                near = pd.Timedelta(hours=2) if "AVG" not in statistic else pd.Timedelta(seconds=1)
            else:
                assert one == one.normalize()
                near = 0.5 * DAY if "AVG" in statistic else 7 * DAY  # any day between two records
            assert abs(one - pd.Timestamp(other)) <= near

    def test_values_beyond_bounds_count_as_the_ends(self, con):
        short = {"a": ("2020-03-01", "2020-04-30")}
        found = ask("SELECT AVG(a) AS m, MAX(a) AS hi FROM stays", con, bounds=short)
        mean = con.execute(
            "SELECT AVG(least(greatest(a, DATE '2020-03-01'), DATE '2020-04-30')) FROM stays WHERE a IS NOT NULL"
        ).fetchone()[0]
        assert abs(found["m"].item() - pd.Timestamp(mean)) <= 0.5 * DAY
        assert found["hi"].item() == pd.Timestamp("2020-04-30")

    @pytest.mark.parametrize(
        "bounds",
        [
            YEAR,
            {"a": (datetime.date(2020, 1, 1), datetime.datetime(2020, 12, 31))},
            {"a": (pd.Timestamp("2020-01-01"), np.datetime64("2020-12-31"))},
            {"m": YEAR, "a": YEAR},
        ],
    )
    def test_bounds_of_any_form(self, bounds, con):
        found = ask("SELECT MEDIAN(a) AS m FROM stays", con, bounds=bounds)
        assert found.equals(ask("SELECT dp_median(a, lo := DATE '2020-01-01', hi := '2020-12-31') AS m FROM stays", con,
                                bounds=None))  # fmt: skip
        assert Answer.from_attrs(found.attrs).lines[0].bounds == (18262, 18627)

    def test_bounds_of_where(self, con):
        query = "SELECT MAX(a) AS m FROM stays WHERE a >= DATE '2020-02-01' AND a < DATE '2020-03-01'"
        found = ask(query, con, bounds=None)
        line = Answer.from_attrs(found.attrs).lines[0]
        assert line.bounds == (day_number(datetime.date(2020, 2, 1)), day_number(datetime.date(2020, 2, 29)))
        assert line.bounds_by_where and found["m"].item() <= pd.Timestamp("2020-02-29")
        moments = ask(
            "SELECT MIN(t) AS m FROM stays WHERE t BETWEEN '2020-02-01 12:00' AND '2020-02-03'", con, bounds=None
        )
        assert Answer.from_attrs(moments.attrs).lines[0].bounds == (18293.5, 18295)

    def test_what_is_computed_of_noisy_dates(self, con):
        found = ask(
            "SELECT MAX(b) - MIN(a) AS days, year(MEDIAN(a)) AS y, COUNT(a) + (MAX(b) - MIN(a)) AS s, "
            "QUANTILE_CONT(b, [0.0, 1.0]) AS q FROM stays HAVING MEDIAN(a) > DATE '2020-02-01'",
            con,
        )
        assert found["days"].item() == con.execute("SELECT max(b) - min(a) FROM stays").fetchone()[0]
        assert found["y"].item() == 2020 and found["s"].item() == found["days"].item() + 899
        assert [pd.Timestamp(each).year for each in found["q"].item()] == [2020, 2021]
        both = ask("SELECT MEDIAN(a) AS m FROM stays UNION ALL SELECT MAX(b) FROM stays", con)
        assert both["m"].dtype.kind == "M"
        over = ask(
            "SELECT MAX(m) - MIN(m) AS d FROM (SELECT g, MEDIAN(a) AS m FROM stays GROUP BY g)", con, keys=[0, 1]
        )
        assert 0 <= over["d"].item() < 40

    def test_a_number_for_each_person(self, con):
        query = "SELECT AVG(l - f) AS d, MIN(f) AS f FROM (SELECT g, MIN(a) AS f, MAX(b) AS l FROM stays GROUP BY g)"
        found = ask(query, con, person="g")
        wanted = con.execute(query).fetchone()
        assert found["d"].item() == pytest.approx(wanted[0]) and found["f"].item() == pd.Timestamp(wanted[1])
        mean = ask("SELECT AVG(a) AS m FROM stays", con, person="g", per_person="mean")
        wanted = con.execute("SELECT AVG(epoch(m)) FROM (SELECT AVG(a) AS m FROM stays GROUP BY g)").fetchone()[0]
        assert abs(mean["m"].item() - pd.Timestamp(wanted, unit="s")) <= 0.5 * DAY


class TestDifferences:
    """Bounds of differences follow from those of both dates."""

    @pytest.mark.parametrize(
        "expression",
        ["b - a", "date_diff('day', a, b)", "date_diff('month', a, t)", "datediff('week', a, b)", "year(b) - year(a)",
         "DATE '2021-01-01' - a", "epoch(t)", "date_sub('month', a, b)", "date_part('day', t - a)", "epoch(t - a)",
         "(b + 30) - a", "b - CAST(t AS DATE)", "year(b + INTERVAL 1 MONTH)"],
    )  # fmt: skip
    def test_as_duckdb(self, expression, con):
        found = ask(f"SELECT AVG({expression}) AS m FROM stays", con)
        wanted = con.execute(f"SELECT AVG({expression}) FROM stays").fetchone()[0]
        assert found["m"].item() == pytest.approx(wanted, rel=1e-6)

    @pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day", "hour", "minute", "second"])
    @pytest.mark.parametrize("name", ["date_diff", "date_sub"])
    def test_no_value_lies_beyond(self, name, unit, con):
        # By brute force: of moments within both ranges, those at the ends among them.
        draw = np.random.default_rng(3)
        for _ in range(20):
            lows = draw.integers(18_000, 18_800, 2) + draw.choice([0, 0.25, 1 / 24], 2)
            ranges = [(low, low + width) for low, width in zip(lows, draw.choice([0.5, 3, 40, 400], 2), strict=True)]
            found = range_of_time(name, [Range(*each) for each in ranges], unit)
            firsts, lasts = (
                [moment(float(each), times=True) for each in (*ends, *draw.uniform(*ends, 30))] for ends in ranges
            )
            values = con.execute(
                f"SELECT min({name}('{unit}', f, l)), max({name}('{unit}', f, l)) "
                "FROM (SELECT unnest($1::TIMESTAMP[]) AS f), (SELECT unnest($2::TIMESTAMP[]) AS l)",
                [firsts, lasts],
            ).fetchone()
            assert found.lo <= values[0] and values[1] <= found.hi
            if name == "date_diff" and unit != "week":  # and no range is wider than it has to be
                assert (found.lo, found.hi) == values

    def test_months_later(self, con):
        # The 30th and the 31st become the same day, so that the earlier moment may be the later one.
        moments = ["2020-01-30 23:00", "2020-01-30 23:30", "2020-01-31 00:30"]
        con.execute("CREATE OR REPLACE TEMP TABLE late AS SELECT unnest($1)::TIMESTAMP AS t", [moments])
        found = ask("SELECT MAX(t + INTERVAL 1 MONTH) AS m FROM late", con, bounds={"t": (moments[0], moments[2])})
        lo, hi = Answer.from_attrs(found.attrs).lines[0].bounds
        least, most = con.execute("SELECT min(t + INTERVAL 1 MONTH), max(t + INTERVAL 1 MONTH) FROM late").fetchone()
        assert lo <= day_number(least) and day_number(most) <= hi

    def test_they_are_told(self, con):
        found = ask("SELECT AVG(b - a) AS m, AVG(date_diff('month', a, b)) AS n FROM stays", con)
        assert [line.bounds for line in Answer.from_attrs(found.attrs).lines] == [(-365, 400), (-11, 13)]

    def test_parameters_give_none(self, con):
        for expression, value in (
            ("year(a + INTERVAL (?) MONTH)", 3),
            ("date_diff(?, a, b)", "day"),
            ("a - ?", datetime.date(2020, 1, 1)),
        ):
            with pytest.raises(ParameterError, match="needs"):
                ask(f"SELECT AVG({expression}) AS m FROM stays", con, params=[value])

    def test_from_a_noisy_date(self, con):
        found = ask("SELECT AVG(a - (SELECT MIN(a) FROM stays)) AS m FROM stays", con)
        wanted = con.execute("SELECT AVG(a - (SELECT MIN(a) FROM stays)) FROM stays").fetchone()[0]
        assert found["m"].item() == pytest.approx(wanted, abs=7)

    @pytest.mark.parametrize("expression", ["b - a", "year(a)", "date_diff('day', a, b)", "a"])
    def test_an_open_end_gives_none(self, expression, con):
        with pytest.raises(ParameterError, match="needs"):
            ask(f"SELECT AVG({expression}) AS m FROM stays", con, bounds={"b": BOUNDS["b"]})


class TestMonths:
    """Keys of months follow from the bounds of a date; a text like 2020-01 names one."""

    @pytest.mark.parametrize(
        "key",
        ["date_trunc('month', {})", "date_trunc('quarter', {})", "year({0}) * 100 + month({0})",
         "strftime({}, '%Y-%m')", "CAST({} AS DATE)", "date_trunc('week', {})"],
    )  # fmt: skip
    @pytest.mark.parametrize("column", ["a", "t"])
    def test_all_that_can_be_and_nothing_else(self, key, column, con):
        by = key.format(column)
        bounds = {column: ("2020-02-10", "2020-05-20")}
        found = ask(f"SELECT {by} AS m, COUNT(*) AS n FROM stays GROUP BY m", con, bounds=bounds)
        days = [datetime.date(2020, 2, 10) + datetime.timedelta(days=day) for day in range(101)]
        listed = con.execute(f"SELECT DISTINCT {by} FROM (SELECT unnest($1::DATE[]) AS {column})", [days]).fetchall()
        as_key = pd.Timestamp if found["m"].dtype.kind == "M" else type(found["m"].iloc[0])
        assert set(found["m"]) == {as_key(each) for (each,) in listed}
        counts = {as_key(k): n for k, n in con.execute(f"SELECT {by}, COUNT(*) FROM stays GROUP BY 1").fetchall() if k}
        assert dict(zip(found["m"], found["n"], strict=True)) == {each: counts.get(each, 0) for each in found["m"]}

    @pytest.mark.parametrize("joined", ["", " JOIN (SELECT pid FROM stays) USING (pid)"])
    @pytest.mark.parametrize("where", ["", " WHERE a >= DATE '2020-03-01'"])
    def test_of_a_column_that_a_subquery_names(self, where, joined, con):
        named = f"(SELECT month(a) + 100 AS m, pid FROM stays{where}) q{joined}"
        query = f"SELECT m, COUNT(*) AS n FROM {named} GROUP BY m ORDER BY m"
        found = ask(query, con, bounds={"a": ("2020-02-10", "2020-05-20")}, person="pid", rows={"stays": 1})
        assert found["m"].tolist() == [103, 104, 105] if where else [102, 103, 104, 105]
        counts = dict(con.execute(f"SELECT month(a) + 100, COUNT(*) FROM stays{where} GROUP BY 1").fetchall())
        assert found["n"].tolist() == [counts[m] for m in found["m"]]

    @pytest.mark.parametrize("source", ["stays", "(SELECT coalesce(month(a), 0) AS m FROM stays) q"])
    def test_of_a_missing_day(self, source, con):
        by = "m" if "q" in source else "coalesce(month(a), 0)"
        for where, listed in (("", [2, 3, 0]), (" WHERE a >= DATE '2020-03-01'", [3])):
            if where and by == "m":
                continue
            query = f"SELECT {by} AS m, COUNT(*) AS n FROM {source}{where} GROUP BY {by}"
            found = ask(query, con, bounds={"a": ("2020-02-10", "2020-03-20")})
            assert found["m"].tolist() == listed
            counts = dict(con.execute(query).fetchall())
            assert found["n"].tolist() == [counts[m] for m in listed]

    @pytest.mark.parametrize("keys", [["2020-01", "2020-03"], {"m": ["2020-01-01", "2020-03"]}])
    def test_keys_as_months(self, keys, con):
        query = "SELECT date_trunc('month', a) AS m, COUNT(*) AS n FROM stays GROUP BY m"
        found = ask(query, con, keys=keys, bounds=None)
        assert found["m"].tolist() == [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-03-01")]
        counts = dict(con.execute("SELECT month(a), COUNT(*) FROM stays GROUP BY 1").fetchall())
        assert found["n"].tolist() == [counts[1], counts[3]]

    def test_a_month_is_no_day(self, con):
        with pytest.raises(ColumnTypeError, match="no ISO date"):
            ask("SELECT a, COUNT(*) FROM stays GROUP BY a", con, keys=["2020-01"], bounds=None)

    def test_declared_keys_stay(self, con):
        frame = con.table("stays").df().dprisk.declare(
            bounds={"a": YEAR}, keys={"a": ["2020-01-05", "2021-05-05"]}
        )  # fmt: skip
        found = pdrisk.sql("SELECT a, COUNT(*) AS n FROM f GROUP BY a", f=frame, eps=1e9)
        assert found["a"].tolist() == [pd.Timestamp("2020-01-05"), pd.Timestamp("2021-05-05")]


class TestRefusals:
    @pytest.mark.parametrize(
        ("query", "options", "said"),
        [
            ("MEDIAN(a)", {"bounds": {"a": (0, 5)}}, "are numbers, but it holds dates"),
            ("MEDIAN(a)", {"bounds": (0, 5)}, "are numbers, but it holds dates"),
            ("MEDIAN(pid)", {"bounds": {"pid": YEAR}}, "are dates, but it holds numbers"),
            ("MEDIAN(pid)", {"bounds": YEAR}, "are dates, but it holds numbers"),
            ("dp_median(pid, lo := '2020-01-01', hi := '2020-12-31')", {}, "are dates, but it holds numbers"),
            ("MEDIAN(a)", {"bounds": {"a": YEAR[::-1]}}, "reversed"),
            ("MEDIAN(a)", {"bounds": {"a": (YEAR[0], YEAR[0])}}, "the same"),
            ("MEDIAN(t)", {"bounds": {"t": ("2020-01-01", "2020-01-01 00:05")}}, "too near to each other"),
            ("MEDIAN(a)", {"bounds": {"a": ("2020-01-01", 5)}}, "hi of bounds must be a date"),
            ("MEDIAN(a)", {"bounds": {"a": ("2020-02-30", "2020-05-01")}}, "lo of bounds is no day"),
            ("MEDIAN(a)", {"bounds": {"a": (YEAR[0], pd.Timestamp("2020-05-01", tz="UTC"))}}, "has a time zone"),
            ("MEDIAN(a)", {"bounds": {"a": (pd.NaT, pd.Timestamp("2020-05-01"))}}, "lo of bounds must be a date"),
            ("AVG(a)", {"bounds": None}, "needs bounds"),
            ("SUM(a)", {}, "x - DATE '2020-01-01'"),
            ("STDDEV(a)", {}, "needs numbers"),
            ("AVG(a)", {"clip": "private"}, "is for numbers, not for dates"),
            ("AVG(a)", {"person": "g", "per_person": "sum"}, "makes no date"),
            ("AVG(a)", {"person": "g", "per_person": "count"}, "makes no date"),
        ],
    )
    def test_sql(self, query, options, said, con):
        with pytest.raises((ColumnTypeError, ParameterError), match=said):
            ask(f"SELECT {query} AS m FROM stays", con, **options)

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            (lambda d: d.median("a", eps=1), "needs bounds"),
            (lambda d: d.median("a", eps=1, bounds=(0, 5)), "are numbers, but column 'a' holds timestamps"),
            (lambda d: d.median("pid", eps=1, bounds=YEAR), "must be a number"),
            (lambda d: d.std("a", eps=1, bounds=YEAR), "needs numbers"),
            (lambda d: d.sum("a", eps=1, bounds=YEAR), "needs numbers"),
            (lambda d: d.median("a", eps=1, bounds="column"), "needs numbers"),
            (lambda d: d.declare(bounds={"a": (0, 5)}), "are numbers, but column 'a' holds timestamps"),
            (lambda d: d.declare(bounds={"pid": YEAR}), "must be a number"),
            (lambda d: d.mean("a", eps=1, bounds={"a": YEAR, "pid": (0, 9)}, weights="pid"), "needs numbers"),
            (lambda d: d.mean("a", eps=1, bounds=YEAR) + 1, "no number: subtract"),
            (lambda d: d.mean("a", eps=1, bounds=YEAR, person="g", per_person="any"), "needs numbers"),
            (
                lambda d: d.agg({"a": ["mean"], "g": ["mean"]}, eps=1, bounds={"a": YEAR, "g": (0, 2)}),
                "ask for them apart",
            ),
            (lambda d: pdrisk.quality(d.mean("a", eps=1, bounds=YEAR, by="g", keys=[0, 1])), "is a date"),
            (lambda d: pdrisk.plot(d.mean("a", eps=1, bounds=YEAR)), "is a date"),
        ],
    )
    def test_frames(self, asked, said, con):
        with pytest.raises((ColumnTypeError, ParameterError), match=said):
            asked(con.table("stays").df().dprisk)


class TestFrames:
    """A frame, a Dataset of any table, and SQL give the same answers: Timestamps."""

    def test_release(self, con):
        release = con.table("stays").df().dprisk.mean("t", bounds=YEAR, eps=1)
        assert release.low <= release.value <= release.high and isinstance(release.value, pd.Timestamp)
        assert release.bounds == (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-12-31"))
        assert release.noise95 * DAY == pytest.approx(max(release.high - release.value, release.value - release.low),
                                                      abs=pd.Timedelta(seconds=2))  # fmt: skip
        assert release.to_dict()["value"] == release.value == pickle.loads(pickle.dumps(release)).value
        assert json.loads(json.dumps(release.to_dict(), default=str))["value"] == str(release.value)
        text = repr(release)
        assert f"noisy value         {release.value}" in text and "182.5 days" in text
        assert "2020-01-01 00:00:00 to 2020-12-31 00:00:00" in release.explain("analyst")
        wide = release.interval(0.99)
        assert wide[0] <= release.low and release.high <= wide[1]

    def test_differences_of_releases(self, con):
        d = con.table("stays").df().dprisk
        one, other = d.mean("a", bounds=YEAR, eps=1e6), d.mean("b", bounds=BOUNDS["b"], eps=1e6)
        assert (other - one).value == pytest.approx((other.value - one.value) / DAY, abs=1e-4)
        assert (one - one).value == 0 and one > pd.Timestamp("2020-01-01")

    def test_tables(self, con):
        d = con.table("stays").df().assign(x=1.0).dprisk
        by_group = d.median("a", bounds=YEAR, eps=1e9, by="g", keys=[0, 1])
        assert by_group.dtypes[["value", "low", "high"]].tolist() == [np.dtype("M8[us]")] * 3
        several = d.agg({"a": ["mean", "max"], "b": ["mean"]}, bounds=BOUNDS, eps=1e9)
        assert several["value"].dtype == np.dtype("M8[us]") and several["value"].iloc[1] == pd.Timestamp("2020-12-31")

    @pytest.mark.parametrize("statistic", ["mean", "median", "min", "max"])
    def test_every_table_alike(self, statistic, con):
        polars, frame = pytest.importorskip("polars"), con.table("stays").df()
        objects = frame.assign(a=[None if pd.isna(day) else day.date() for day in frame["a"]])
        stored = con.table("stays")
        for column in ("a", "t"):
            alike = [frame, polars.from_pandas(frame), stored, stored.to_arrow_table(), objects]
            found = [getattr(pdrisk.Dataset(each), statistic)(column, bounds=BOUNDS[column], eps=1e9).value
                     for each in alike]  # fmt: skip
            wanted = pd.Timestamp(getattr(frame[column], statistic)())
            assert all(abs(each - wanted) <= (0.5 * DAY if statistic != "mean" else DAY) for each in found)
            if statistic == "mean":
                assert max(found[:3]) - min(found[:3]) <= (DAY if column == "a" else pd.Timedelta(0))

    def test_whole_days(self, con):
        release = con.table("stays").df().dprisk.median("t", bounds=YEAR, eps=1, step=1)
        assert release.value == release.value.normalize()

    def test_declared(self, con):
        frame = con.table("stays").df().dprisk.declare(bounds={"a": YEAR, "t": BOUNDS["t"]})
        assert frame.dprisk.max("a", eps=1e9).value == pd.Timestamp("2020-12-31")
        found = pdrisk.sql("SELECT AVG(date_diff('day', a, t)) AS d, MAX(a) AS m FROM f", f=frame, eps=1e9)
        wanted = con.execute("SELECT AVG(date_diff('day', a, t)) FROM stays").fetchone()[0]
        assert found["d"].item() == pytest.approx(wanted, rel=1e-6) and found["m"].item() == pd.Timestamp("2020-12-31")


class TestAnswers:
    def test_risk_columns(self, con):
        found = ask("SELECT g, AVG(a) AS m, AVG(t) AS s, COUNT(*) AS n FROM stays GROUP BY g", con, eps=3, keys=[0, 1],
                    risk_columns=True)  # fmt: skip
        for name in ("m", "s"):
            assert {found[f"{name}{end}"].dtype for end in ("", "_low", "_high")} == {np.dtype("M8[us]")}
            assert (found[f"{name}_low"] <= found[name]).all() and (found[name] <= found[f"{name}_high"]).all()

    def test_ends_are_rounded_outwards(self, con):
        found = ask("SELECT AVG(a) AS m FROM stays", con, eps=1e5, risk_columns=True)  # noise of a minute or so
        assert (found["m_high"] - found["m_low"]).item() == DAY

    def test_dates_are_chosen_among_days(self, con):
        found = ask("SELECT MEDIAN(a) AS m, MEDIAN(t) AS s FROM stays", con, eps=1, interval=True, risk_columns=True)
        assert found["m_low"].item() < found["m"].item() < found["m_high"].item()
        steps = [
            line.step
            for line in Answer.from_attrs(ask("SELECT MEDIAN(a) AS m, MEDIAN(t) AS s FROM stays", con).attrs).lines
        ]
        assert steps[0] == 1 and steps[1] < 0.01

    def test_texts(self, con):
        found = ask("SELECT AVG(a) AS m, MEDIAN(t) AS s FROM stays", con, eps=1)
        text = " ".join(pdrisk.explain(found, "analyst").split())
        assert "clamped to 2020-01-01 to 2020-12-31" in text and " days, 95 % sure" in text
        shown = ask("EXPLAIN SELECT AVG(a) AS m, COUNT(*) AS n FROM stays", con, eps=1, n=999)
        assert shown["clamped_high"].tolist()[0] == pd.Timestamp("2020-12-31")

    def test_memory_of_a_ledger(self, con, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "b.db", dataset="stays", eps=5)
        d = pdrisk.Dataset(con.table("stays").df(), ledger=ledger)
        query = "SELECT AVG(a) AS m, MEDIAN(t) AS s FROM data"
        first, again = (d.sql(query, eps=1, bounds=BOUNDS, risk_columns=True) for _ in range(2))
        assert first.equals(again) and ledger.remaining().eps == 4
        release = d.median("a", eps=1, bounds=YEAR)
        assert d.median("a", eps=1, bounds=YEAR).value == release.value and ledger.remaining().eps == 3
        assert "2020-01-01" in str(ledger.history()["bounds"].tolist())
        ledger.verify()


class TestNeighbours:
    """Somebody's absence moves what is drawn by what is paid, at most: beyond the bounds and missing dates, too."""

    ASKED = (
        "AVG(a)", "MEDIAN(a)", "MAX(t)", "MIN(a)", "AVG(t)", "AVG(date_diff('day', a, t))",
        "AVG(t), COUNT(*), MEDIAN(a)", "AVG(epoch(t - a))",
    )  # fmt: skip

    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    @pytest.mark.parametrize("aggregates", ASKED)
    def test_without_somebody(self, aggregates, mechanism):
        draw = np.random.default_rng(len(aggregates))
        days = pd.to_datetime(
            ["2019-05-01", "2020-01-01", "2020-02-29", "2020-06-30 12:30", "2022-01-01", None], format="mixed"
        )
        bounds = {column: YEAR for column in ("a", "t") if f"{column})" in aggregates or f"({column}" in aggregates}
        bounds |= {"a": YEAR} if " a" in aggregates else {}

        def asked(people):
            return pdrisk.sql(f"SELECT {aggregates} FROM p", p=people, eps=1, person="pid", rows=2, bounds=bounds,
                              mechanism=mechanism)  # fmt: skip

        most = 0.0
        for _ in range(6):
            people = pd.DataFrame({"pid": draw.integers(0, 4, 12)})
            people["a"], people["t"] = days[draw.integers(0, 6, 12)].normalize(), days[draw.integers(0, 6, 12)]
            for pid in range(4):
                most = max(most, loss_between(asked, people, people[people["pid"] != pid]))
        assert most <= 1 + 1e-9 and (most > 0 or "MIN" in aggregates)  # of which several may lie at the end

    @pytest.mark.parametrize("statistic", ["mean", "median", "max"])
    def test_of_a_frame(self, statistic):
        draw = np.random.default_rng(5)
        days = pd.to_datetime(["2019-05-01", "2020-02-29", "2020-06-30 12:30", "2022-01-01", None], format="mixed")
        most = 0.0
        for _ in range(8):
            people = pd.DataFrame({"pid": draw.integers(0, 4, 10), "a": days[draw.integers(0, 5, 10)]})

            def asked(frame):
                return getattr(frame.dprisk, statistic)("a", eps=1, bounds=YEAR, person="pid", rows=2)

            for pid in range(4):
                most = max(most, loss_between(asked, people, people[people["pid"] != pid]))
        assert 0 < most <= 1 + 1e-9


ELSEWHERE = {
    "SELECT MIN(a) AS x, MAX(b) AS y, AVG(t) AS z, MEDIAN(a) AS m FROM stays": {},
    "SELECT AVG(b - a) AS x, AVG(year(b) - year(a)) AS y FROM stays": {},
    "SELECT date_trunc('month', a) AS m, COUNT(*) AS n FROM stays GROUP BY 1 ORDER BY 1": {},
    "SELECT date_trunc('month', a) AS m, MAX(t) AS n FROM stays GROUP BY 1 ORDER BY 1": {
        "keys": ["2020-01", "2020-05"]
    },
}


def assert_as_duckdb(found, query, options, con):
    wanted = ask(query, con, **options)
    assert list(found) == list(wanted) and found.dtypes.tolist() == wanted.dtypes.tolist()
    for name in found:
        if found[name].dtype.kind == "M":
            assert ((found[name] - wanted[name]).abs() <= 5 * DAY).all()
        else:
            assert found[name].tolist() == pytest.approx(wanted[name].tolist(), rel=1e-6)


def written(query, language):
    """PostgreSQL has EXTRACT for year()."""
    return (
        query.replace("year(b)", "EXTRACT(year FROM b)").replace("year(a)", "EXTRACT(year FROM a)")
        if language
        else query
    )


class TestElsewhere:
    """PostgreSQL and Spark give the answers of DuckDB."""

    @needs_server
    def test_postgres(self, con):
        with database() as url, connected(url) as connection:
            connection.execute("CREATE TABLE stays (pid int, g int, a date, b date, t timestamp)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO stays VALUES (%s, %s, %s, %s, %s)",
                                   con.execute("SELECT * FROM stays").fetchall())  # fmt: skip
            for query, options in ELSEWHERE.items():
                found = ask(written(query, "postgres"), connection, **options)
                assert_as_duckdb(found, query, options, con)
            d = pdrisk.Dataset((connection, "stays"))
            for column in ("a", "t"):
                mean = d.mean(column, bounds=BOUNDS[column], eps=1e9).value
                wanted = con.execute(f"SELECT AVG(CAST({column} AS TIMESTAMP)::TIMESTAMP) FROM stays").fetchone()[0]
                assert abs(mean - pd.Timestamp(wanted)) <= DAY / 2 + pd.Timedelta(seconds=1)
            by = d.max("a", by="g", keys=[0, 1], bounds=YEAR, eps=1e9)
            assert by["value"].dt.year.eq(2020).all()

    @needs_spark
    @pytest.mark.slow
    def test_spark(self, con):
        spark = session()
        rows, types = con.execute("SELECT * FROM stays").fetchall(), "pid INT, g INT, a DATE, b DATE, t TIMESTAMP_NTZ"
        spark.createDataFrame(rows, types).createOrReplaceTempView("stays")
        for query, options in ELSEWHERE.items():
            assert_as_duckdb(ask(query, spark, **options), query, options, con)


class TestNumbersOfDays:
    def test_there_and_back(self):
        draw = np.random.default_rng(1)
        for _ in range(200):
            day = datetime.date.fromordinal(int(draw.integers(700_000, 760_000)))
            time = datetime.datetime.combine(day, datetime.time(*map(int, draw.integers(0, (24, 60, 60)))))
            assert moment(day_number(day), times=False) == day
            assert written_day(day_number(time), times=True) == str(time)
            assert days_between((day, day + datetime.timedelta(days=1))) == Days(day_number(day), day_number(day) + 1)

    def test_sides_and_ends(self):
        assert [written_day(0.5, times=False, side=side) for side in ("before", "after")] == [
            "1970-01-01",
            "1970-01-02",
        ]
        assert written_day(np.nan, times=True) == "nan"
        found = as_dates(np.array([np.nan, -1e9, 1e9]), times=False)
        assert np.isnat(found[0]) and str(found[1])[:10] == "0001-01-01" and str(found[2])[:10] == "9999-12-31"


class TestNanoseconds:
    """Times in nanoseconds are the same times where a view or a join computes them."""

    BORN = pd.Series([pd.Timestamp("1990-05-01"), pd.Timestamp("2001-01-01"), None, pd.Timestamp("2001-01-01 12:30")])

    @pytest.mark.parametrize("unit", ["ns", "us", "s"])
    def test_of_views_and_joins(self, unit):
        frame = pd.DataFrame({"pid": range(4), "born": self.BORN.astype(f"datetime64[{unit}]")})
        con = duckdb.connect()
        con.register("given", frame)
        con.execute("CREATE TABLE stored AS FROM given; CREATE VIEW seen AS SELECT born, pid FROM stored")
        stays = pdrisk.Dataset(pd.DataFrame({"pid": [0, 1, 1, 2, 3]}), person="pid")
        people = {"person": "pid", "per_person": "one"}
        known, where = pdrisk.Dataset(frame, **people), "born >= '1995-05-01'"
        ends = {"eps": 1e6, "bounds": ("1950-01-01", "2020-01-01")}
        for data, more, counts in (
            (pdrisk.Dataset((con, "seen"), **people), {}, [2, 1, 1]),
            (known.join(stays), {"rows": 3}, [3, 1, 2]),
        ):
            assert data.query(where).count(eps=1e6, **more).value == counts[0]
            keys = ["1990-05-01", "2001-01-01"]
            found = data.value_counts("born", keys=keys, eps=1e6, **more)
            assert found["value"].sort_index().tolist() == counts[1:]
            assert abs(data.min("born", **ends, **more).value - self.BORN.min()) < pd.Timedelta("30D")
            assert abs(data.mean("born", **ends, **more).value.year - 1998) <= 3
        assert known.query(where).join(stays).count(eps=1e6, rows=3).value == 3
