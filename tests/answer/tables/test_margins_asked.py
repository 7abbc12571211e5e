"""Tables with margins, as people ask for them: they add up, cost one eps, and say how they were made."""

import itertools
import os
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pdrisk
from margin_tables import EVERY
from paths import GOLDEN
from pdrisk import ALL
from pdrisk._answer.answers.answer import Answer
from pdrisk._ledger import Ledger
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BY = ["region", "sex", "age"]
KEYS = {"region": ["north", "south", "west", "nowhere"], "sex": ["f", "m"], "age": [3, 1, 2]}
BOUNDS = {"hours": (0, 60)}


def made(n=900, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": pd.Series(random.choice(["north", "south", "west", "elsewhere"], n, p=[0.5, 0.3, 0.1, 0.1])),
            "sex": random.choice(["f", "m", None], n, p=[0.5, 0.4, 0.1]),
            "age": random.integers(1, 5, n),
            "hours": random.integers(0, 60, n).astype(float),
        }
    ).astype({"region": "string", "sex": "string"})


FRAME = made()
ROWS = FRAME.astype(object).where(FRAME.notna(), None).to_numpy().tolist()  # None where nothing is known


def listed(frame, by, keys=KEYS):
    """Records whose key is listed in every column."""
    return frame[np.logical_and.reduce([frame[column].isin(keys[column]) for column in by])]


def asked(d=None, by=("region", "sex"), eps=1.0, **options):
    own = (FRAME.dprisk if d is None else d).count
    return own(eps=eps, by=list(by), keys={each: KEYS[each] for each in by}, **{"margins": True, **options})


def cells_of(table, axes):
    """Rows of a table over these levels of its index, without margins over others."""
    labels = [table.index.get_level_values(at) for at in range(table.index.nlevels)]
    return table[np.logical_and.reduce([(own == ALL) != (at in axes) for at, own in enumerate(labels)])]


def paid(ledger):
    """How many queries a ledger paid for."""
    return (ledger.history()["event"] == "paid").sum()


@pytest.fixture
def same_draws(monkeypatch):
    """Noise from a generator that begins anew at each call of what is returned."""
    random = [np.random.default_rng(0)]

    def drawn(exact, change, eps):
        chance = -np.expm1(-float(eps) / change)
        return exact + random[0].geometric(chance, exact.shape) - random[0].geometric(chance, exact.shape)

    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", drawn)
    return lambda: random.__setitem__(0, np.random.default_rng(0))


@pytest.fixture
def draws(monkeypatch):
    """What is drawn: exact numbers, the change of one record, and eps."""
    found = []

    def drawn(exact, change, eps):
        found.append((exact.copy(), change, eps))
        return exact + 0

    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", drawn)
    return found


class TestTheyAddUp:
    """Every margin is the sum of its cells."""

    @pytest.mark.parametrize("by", [["region"], ["region", "sex"], BY])
    @pytest.mark.parametrize("eps", [0.05, 1.0])
    @pytest.mark.parametrize("whole", [True, False])
    def test_counts(self, by, eps, whole):
        for _ in range(5):
            table = asked(by=by, eps=eps, whole=whole)
            assert (table["value"].dtype == np.int64) == whole
            cells = cells_of(table, range(len(by)))["value"]
            assert not whole or cells.min() >= 0
            for axes in EVERY[len(by)][:-1]:
                own = cells_of(table, axes)
                levels = [by[axis] for axis in axes]
                wanted = cells.groupby(level=levels, sort=False).sum() if axes else pd.Series([cells.sum()])
                labels = own.droplevel([name for name in by if name not in levels]).index if len(axes) else wanted.index
                assert np.abs(own["value"].to_numpy() - wanted.reindex(labels).to_numpy()).max() <= (
                    0 if whole else 1e-6
                )

    def test_sums(self):
        table = FRAME.dprisk.sum("hours", eps=1, by=BY[:2], keys=KEYS, bounds=(0, 60), margins=True)
        cells = cells_of(table, (0, 1))["value"]
        assert cells.groupby(level=0, sort=False).sum().to_numpy() == pytest.approx(cells_of(table, (0,))["value"])
        assert cells.sum() == pytest.approx(cells_of(table, ())["value"].item())

    @pytest.mark.parametrize("statistic", ["sum", "mean", "var"])
    def test_of_much_eps_they_are_the_exact_numbers(self, statistic):
        """Also where means, variances and counts come from one draw."""
        table = FRAME.dprisk.agg(
            {"hours": ["count", statistic]}, eps=1e5, by=BY[:2], keys=KEYS, bounds=(0, 60), margins=True
        )
        people = listed(FRAME, BY[:2])
        for axes in EVERY[2]:
            own = cells_of(table.loc["hours"].loc[statistic], axes)
            for key, value in own["value"].items():
                some = people[
                    np.logical_and.reduce([people["hours"].notna(), *(people[BY[axis]] == key[axis] for axis in axes)])
                ]
                wanted = getattr(some["hours"], statistic)() if len(some) > 1 or statistic == "sum" else value
                assert value == pytest.approx(wanted, abs=1e-2, rel=1e-3)
                low, high = own.loc[key, ["low", "high"]]
                assert low <= value <= high

    def test_intervals_hold_whole_values_and_exact_ones(self):
        people = listed(FRAME, BY[:2])
        held = []
        for _ in range(60):
            table = asked()
            assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
            held.append(table.loc[(ALL, "f"), "low"] <= (people["sex"] == "f").sum() <= table.loc[(ALL, "f"), "high"])
        assert np.mean(held) > 0.85


class TestRows:
    """Rows stand in the order of the keys, cells first, with ALL for what a margin sums over."""

    def test_all_margins(self, noiseless):
        table = asked()
        cells = list(itertools.product(KEYS["region"], KEYS["sex"]))
        regions, sexes = [(key, ALL) for key in KEYS["region"]], [(ALL, key) for key in KEYS["sex"]]
        assert table.index.tolist() == [*cells, *regions, *sexes, (ALL, ALL)]
        people = listed(FRAME, BY[:2])
        assert table["value"].tolist() == [
            *(((people["region"] == a) & (people["sex"] == b)).sum() for a, b in cells),
            *((people["region"] == a).sum() for a in KEYS["region"]),
            *((people["sex"] == b).sum() for b in KEYS["sex"]),
            len(people),
        ]

    def test_some_margins(self, noiseless):
        table = asked(margins=[["sex"], ()])
        assert table.index.get_level_values(0).tolist() == [*np.repeat(KEYS["region"], 2), ALL, ALL, ALL]
        ages = asked(by=["age", "sex"], margins=[["age"]]).index.get_level_values(0)
        assert ages.dtype == np.int64  # where no margin sums over it

    def test_keys_in_any_order(self, noiseless):
        """Pairs as they are listed; their margins in the order in which keys are listed first."""
        pairs = [("west", "m"), ("south", "f"), ("west", "f"), ("south", "m")]
        table = FRAME.dprisk.count(eps=1, by=BY[:2], keys=pairs, margins=True)
        assert table.index.tolist() == [*pairs, ("west", ALL), ("south", ALL), (ALL, "m"), (ALL, "f"), (ALL, ALL)]
        people = FRAME[FRAME["region"].isin(["west", "south"]) & FRAME["sex"].isin(["f", "m"])]
        assert [table.loc[pair, "value"] for pair in pairs] == [
            ((people["region"] == a) & (people["sex"] == b)).sum() for a, b in pairs
        ]
        assert table.loc[("west", ALL), "value"] == (people["region"] == "west").sum()

    def test_one_column(self, noiseless):
        table = FRAME.dprisk.count(eps=1, by="age", keys=[2, 3], margins=True)
        assert table.index.tolist() == [2, 3, ALL]
        assert table["value"].tolist() == [
            *(FRAME["age"].value_counts()[key] for key in (2, 3)),
            FRAME["age"].isin([2, 3]).sum(),
        ]

    def test_of_a_dataset_in_polars(self):
        d = pdrisk.Dataset(pl.from_pandas(FRAME), keys=KEYS, as_="polars")
        table = d.count(eps=1, by=["sex", "age"], margins=True)
        assert isinstance(table, pl.DataFrame)
        assert table["age"].to_list()[-1] == table["sex"].to_list()[-1] == ALL

    def test_files(self, tmp_path):
        table = asked()
        table.to_csv(tmp_path / "table.csv")
        again = pd.read_csv(tmp_path / "table.csv", index_col=[0, 1])
        assert again.loc[(ALL, ALL), "value"] == table.loc[(ALL, ALL), "value"]
        assert "(all)" in table.to_html()
        table.to_parquet(tmp_path / "table.parquet")
        stored = pd.read_parquet(tmp_path / "table.parquet")
        assert pdrisk.explain(stored, "publication") == pdrisk.explain(table, "publication")


class TestHistogram:
    """Bins and their total are a table of one column."""

    def test_they_add_up(self):
        for whole in (True, False):
            table = FRAME.dprisk.hist("hours", [0, 20, 40, 60], eps=0.5, margins=True, whole=whole)
            assert table.index[-1] == ALL
            assert table["value"].iloc[:-1].sum() == pytest.approx(table["value"].iloc[-1])
        assert "add up" in " ".join(pdrisk.explain(table, "publication").split())
        assert "listed in all columns" not in " ".join(pdrisk.explain(table, "publication").split())

    def test_exact_numbers(self, noiseless):
        table = FRAME.dprisk.hist("hours", [0, 20, 40, 60], eps=1, margins=True)
        wanted = np.histogram(FRAME["hours"], [0, 20, 40, 60])[0]
        assert table["value"].tolist() == [*wanted, wanted.sum()]

    def test_draws(self, draws):
        FRAME.dprisk.hist("hours", [0, 20, 40, 60], eps=1, margins=True, allot="even")
        assert [(change, eps, len(exact)) for exact, change, eps in draws] == [(1, Fraction(1, 2), n) for n in (3, 1)]

    def test_many_empty_bins(self):
        """Of 1,000 bins most are empty: the nearest numbers with the noisy total are far nearer than cut ones."""
        values = np.random.default_rng(0).geometric(0.2, 2000).clip(max=1000).astype(float)
        frame, edges = pd.DataFrame({"x": values}), np.arange(0.5, 1001.5)
        exact = np.histogram(values, edges)[0]
        cut = frame.dprisk.hist("x", edges, eps=1)["value"]
        found = frame.dprisk.hist("x", edges, eps=1, margins=True, allot="cells")["value"].iloc[:-1]
        assert np.abs(found - exact).mean() < 0.7 * np.abs(cut - exact).mean()

    def test_refused(self):
        with pytest.raises(pdrisk.ParameterError, match="curator= is about single tables"):
            FRAME.dprisk.hist("hours", [0, 20], eps=1, margins=True, curator=True)
        with pytest.raises(pdrisk.ParameterError, match="no sum over"):
            FRAME.dprisk.hist("hours", [0, 20], eps=1, margins=True, mechanism="laplace")


class TestCrosstab:
    """The wide form of the same tables."""

    def test_margins(self, noiseless):
        wide = FRAME.dprisk.crosstab("region", "sex", eps=1, keys=KEYS, margins=True)
        people = listed(FRAME, BY[:2])
        wanted = pd.crosstab(people["region"], people["sex"], margins=True, margins_name=ALL)
        wanted = wanted.reindex([*KEYS["region"], ALL], fill_value=0)
        assert wide.to_numpy().tolist() == wanted.to_numpy().tolist()
        assert (wide.index.tolist(), wide.columns.tolist()) == ([*KEYS["region"], ALL], ["f", "m", ALL])
        assert "add up" in pdrisk.explain(wide, "publication")

    @pytest.mark.parametrize("normalize", ["index", "columns", "all"])
    @pytest.mark.parametrize("margins", [False, True])
    def test_normalize(self, normalize, margins, noiseless):
        keys = {"region": KEYS["region"][:3], "sex": KEYS["sex"]}
        wide = FRAME.dprisk.crosstab("region", "sex", eps=1, keys=keys, normalize=normalize, margins=margins)
        people = listed(FRAME, BY[:2], keys)
        wanted = pd.crosstab(people["region"], people["sex"], normalize=normalize, margins=margins, margins_name=ALL)
        assert wide.loc[wanted.index, wanted.columns].to_numpy() == pytest.approx(wanted.to_numpy())

    def test_a_statistic_in_each_cell(self):
        wide = FRAME.dprisk.crosstab(
            "region", "sex", values="hours", aggfunc="mean", eps=1e5, keys=KEYS, bounds=(0, 60), margins=True
        )
        people = listed(FRAME, BY[:2])
        assert wide.loc["north", "f"] == pytest.approx(
            people[(people["region"] == "north") & (people["sex"] == "f")]["hours"].mean(), abs=0.01
        )
        assert wide.loc[ALL, ALL] == pytest.approx(people["hours"].mean(), abs=0.01)
        assert FRAME.dprisk.crosstab(
            "region", "sex", values="hours", aggfunc="median", eps=9, keys=KEYS, bounds=(0, 60)
        ).shape == (4, 2)


class TestShares:
    """Shares with Fieller's intervals, of what was measured together."""

    @pytest.mark.parametrize(
        "normalize",
        [["region"], pytest.param(["sex"], marks=pytest.mark.slow), pytest.param("all", marks=pytest.mark.slow)],
    )
    def test_coverage(self, normalize):
        keys = {"region": KEYS["region"][:3], "sex": KEYS["sex"]}
        people = listed(FRAME, BY[:2], keys)
        counts = people.groupby(BY[:2]).size()
        whole = len(people) if normalize == "all" else counts.groupby(level=normalize).transform("sum")
        exact, held, times = counts / whole, [], 150
        for _ in range(times):
            table = FRAME.dprisk.count(eps=0.5, by=BY[:2], keys=keys, normalize=normalize)
            own = exact.reindex(table.index)
            held.append((table["low"] <= own) & (own <= table["high"]))
            assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
        assert 0.94 - 0.03 < np.mean(held) < 0.99

    @pytest.mark.parametrize("normalize", [["region"], ["sex"], "all"])
    def test_they_add_up_to_one_among_few_people(self, normalize):
        """Also where single ones would be below 0 or above 1."""
        for _ in range(30):
            shares = FRAME.iloc[:40].dprisk.count(eps=0.5, by=BY[:2], keys=KEYS, normalize=normalize)
            known = shares["value"][shares["value"].notna()]
            sums = known.sum() if normalize == "all" else known.groupby(level=normalize).sum()
            assert np.allclose(sums, 1)
            assert ((known >= 0) & (known <= 1)).all()

    def test_of_nobody(self):
        table = FRAME.dprisk.count(
            eps=5, by=BY[:2], keys=KEYS, normalize=["region"], where="age > 99", margins=[["sex"]]
        )
        nothing = table[table["value"].isna()]
        assert (nothing["low"] == 0).all()
        assert (nothing["high"] == 1).all()


class TestOneMeasurement:
    """One payment, one reading; each measured table is a release of its own share of eps."""

    def test_draws_and_shares(self, draws):
        asked(by=["region", "age"], allot={("region", "age"): 0.5, ("age",): 0.25, (): 0.25})
        assert [(change, eps) for _, change, eps in draws] == [
            (1, Fraction(1, 2)),
            (1, Fraction(1, 4)),
            (1, Fraction(1, 4)),
        ]
        people = listed(FRAME, ["region", "age"])
        assert draws[2][0].tolist() == [len(people)]
        assert draws[1][0].tolist() == [(people["age"] == age).sum() for age in KEYS["age"]]

    @pytest.mark.parametrize("statistic", ["count", "sum", "mean", "agg"])
    def test_a_person_changes_each_table_by_what_its_noise_hides(self, draws, statistic):
        """The losses of all tables are at most eps together."""
        ask = {
            "count": lambda d, **o: d.count(**o),
            "sum": lambda d, **o: d.sum("hours", bounds=(0, 60), **o),
            "mean": lambda d, **o: d.mean("hours", bounds=(0, 60), **o),
            "agg": lambda d, **o: d.agg({"hours": ["count", "mean", "std"]}, bounds=(0, 60), **o),
        }[statistic]
        more = pd.concat([FRAME, FRAME[:1].assign(region="north", sex="f", age=1, hours=60.0)], ignore_index=True)
        for frame in (FRAME, more):
            ask(frame.dprisk, eps=1, by=BY, keys=KEYS, margins=True, allot="even")
        half = len(draws) // 2
        losses = [
            np.abs(one - other).sum() * eps / change
            for (one, change, eps), (other, _, _) in zip(draws[:half], draws[half:], strict=True)
        ]
        assert len(losses) == 8
        assert 0.99 < sum(losses) <= 1

    def test_one_payment_and_one_reading(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=1)
        d = pdrisk.Dataset(FRAME, name="people", keys=KEYS, ledger=ledger, version="one")
        table = d.count(eps=0.5, by=BY[:2], margins=True, allot="even")
        assert ledger.remaining().spent == 0.5
        assert paid(ledger) == 1
        assert d.count(eps=0.5, by=BY[:2], margins=True, allot="even").equals(table)  # remembered
        estimates = d.count(eps=0.5, by=BY[:2], margins=True, allot="even", whole=False)  # of the same draws
        assert np.abs(estimates["value"] - table["value"]).max() < 30
        assert ledger.remaining().spent == 0.5
        assert not d.count(eps=0.5, by=BY[:2], margins=True).equals(table)
        assert ledger.remaining().spent == 1
        with pytest.raises(pdrisk.BudgetExceededError):
            d.count(eps=0.5, by=BY[:2], margins=[["sex"]], allot="even")

    def test_what_a_ledger_keeps_for_its_curator(self, tmp_path):
        """A person's loss by all tables together is at most eps; by a count it is all of it."""
        policy = {"curator_facts": True, "curators": ["dpo"]}
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=1, policy=policy, analyst="dpo")
        d = pdrisk.Dataset(FRAME.assign(pid=FRAME.index), name="people", keys=KEYS, ledger=ledger, person="pid")
        d.count(eps=0.5, by=BY[:2], margins=True, allot="even", constant=["region", "sex"])
        d.sum("hours", eps=0.5, by=BY[:2], bounds=(0, 60), margins=True, rows=1)
        assert ledger.remaining().spent == 1
        ledger.verify()
        facts, lost = ledger.facts(), ledger.odometer(FRAME.assign(pid=FRAME.index)[["pid"]])
        assert (facts["loss"] <= 0.5 + 1e-9).all()
        assert len(facts) == 2
        assert lost["loss"].max() <= 1 + 1e-9

    def test_proportions(self):
        table = FRAME.dprisk.agg({"hours > 30": "proportion"}, eps=1e5, by=BY[:2], keys=KEYS, margins=True)
        people = listed(FRAME, BY[:2])
        assert table["value"].iloc[-1] == pytest.approx((people["hours"] > 30).mean(), abs=1e-3)

    def test_nothing_is_read_before_it_is_paid(self, tmp_path, monkeypatch):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=0.1)
        read = []
        monkeypatch.setattr("pdrisk.engines.numpy.frame.FrameEngine.read", lambda *_: read.append(True))
        with pytest.raises(pdrisk.BudgetExceededError):
            pdrisk.Dataset(FRAME, name="people", keys=KEYS, ledger=ledger).count(eps=0.5, by=BY[:2], margins=True)
        assert read == []

    def test_success_counts_the_squares_of_all_draws(self):
        """Less than one draw at the whole eps would let an attacker reach."""
        table = asked(allot={("region", "sex"): 0.5, (): 0.5})
        mu = Answer.from_attrs(table.attrs).mu
        alone = [Answer.from_attrs(asked(margins=False, eps=eps).attrs).mu for eps in (0.5, 1)]
        assert mu == pytest.approx(alone[0] * 2**0.5)
        assert mu < alone[1]
        both = {"allot": {("region", "sex"): 0.5, (): 0.5}}
        more, less = (asked(eps=None, success=0.7, **each)["eps"].iloc[0] for each in (both, {"margins": False}))
        assert more > less


OPENED = {
    "pandas": lambda frame, con: frame,
    "polars": lambda frame, con: pl.from_pandas(frame),
    "arrow": lambda frame, con: pa.Table.from_pandas(frame),
    "DuckDB": lambda frame, con: (con, "people"),
}


def questions(d, begin):
    """The same questions of a Dataset, each from the same draws; as pandas frames."""
    keys = {"region": KEYS["region"], "sex": KEYS["sex"]}
    options = {"eps": 0.7, "by": BY[:2], "keys": keys, "margins": True}
    asks = [
        lambda: d.count(**options),
        lambda: d.mean("hours", bounds=(0, 60), **options),
        lambda: d.sum("hours", step=1, bounds=(0, 60), **options),
        lambda: d.agg({"hours": ["count", "std"]}, bounds=(0, 60), allot="even", **options),
        lambda: d.count(**options | {"margins": [[]], "normalize": ["sex"]}),
        lambda: d.count(**options | {"by": BY, "keys": KEYS}),
    ]
    found = []
    for ask in asks:
        begin()
        answer = ask()
        answer = answer if isinstance(answer, pd.DataFrame) else answer.to_pandas()
        columns = [name for name in ("value", "low", "high") if name in answer]
        found.append(answer[columns].to_numpy(dtype=float))
    return found


class TestEveryEngine:
    """All engines give the same tables from the same draws."""

    def check(self, data, same_draws):
        for found, wanted in zip(
            questions(pdrisk.Dataset(data), same_draws), questions(pdrisk.Dataset(FRAME), same_draws), strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)

    @pytest.mark.parametrize("kind", OPENED)
    def test_here(self, kind, same_draws):
        with duckdb.connect() as con:
            con.execute("CREATE TABLE people (region VARCHAR, sex VARCHAR, age BIGINT, hours DOUBLE)")
            con.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", ROWS)
            self.check(OPENED[kind](FRAME, con), same_draws)

    @needs_server
    def test_postgres(self, same_draws):
        with database() as url, connected(url) as connection:
            connection.execute("CREATE TABLE people (region text, sex text, age bigint, hours double precision)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO people VALUES (%s, %s, %s, %s)", ROWS)
            self.check((connection, "people"), same_draws)

    @needs_spark
    @pytest.mark.slow
    def test_spark(self, same_draws):
        spark = session()
        made_ = spark.createDataFrame(ROWS, "region string, sex string, age bigint, hours double")
        self.check(made_, same_draws)


class TestSQL:
    """ROLLUP, CUBE and GROUPING SETS are the same call."""

    @pytest.mark.parametrize(
        ("sets", "margins"),
        [
            ("CUBE (region, sex)", True),
            ("ROLLUP (region, sex)", [["region"], []]),
            ("GROUPING SETS ((region, sex), (sex))", [["sex"]]),
        ],
    )
    def test_the_same_numbers_from_the_same_draws(self, sets, margins, same_draws):
        query = f"SELECT region, sex, COUNT(*) AS n FROM people GROUP BY {sets}"
        keys = {"region": KEYS["region"], "sex": KEYS["sex"]}
        same_draws()
        found = pdrisk.sql(query, eps=0.7, keys=keys, people=FRAME)
        same_draws()
        wanted = FRAME.dprisk.count(eps=0.7, by=BY[:2], keys=keys, margins=margins)
        assert found["n"].tolist() == wanted["value"].tolist()
        labels = found[["region", "sex"]].astype(object).where(found[["region", "sex"]].notna(), ALL)
        assert list(map(tuple, labels.to_numpy())) == wanted.index.tolist()

    def test_the_order_of_groupings_and_which_groups_a_row_has(self, noiseless):
        query = (
            "SELECT sex, region, COUNT(*) AS n, GROUPING(region) AS r, GROUPING(sex, region) AS b FROM people "
            "GROUP BY GROUPING SETS ((), (region), (sex, region))"
        )
        found = pdrisk.sql(query, eps=1, keys={"region": ["north", "west"], "sex": ["f", "m"]}, people=FRAME)
        assert found["b"].tolist() == [0, 0, 0, 0, 2, 2, 3]
        assert found["r"].tolist() == [0, 0, 0, 0, 0, 0, 1]
        *cells, north, west, everybody = found["n"]
        assert sum(cells) == north + west == everybody
        assert found["region"].fillna("-").tolist() == ["north", "north", "west", "west", "north", "west", "-"]

    def test_groupings_in_any_order(self, noiseless):
        query = "SELECT sex, region, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((sex, region), (region), (sex))"
        found = pdrisk.sql(query, eps=1, keys={"region": ["north", "west"], "sex": ["f", "m"]}, people=FRAME)
        people = listed(FRAME, BY[:2], {"region": ["north", "west"], "sex": ["f", "m"]})
        for _, row in found.iterrows():
            wanted = people
            for column in ("sex", "region"):
                wanted = wanted if pd.isna(row[column]) else wanted[wanted[column] == row[column]]
            assert row["n"] == len(wanted)
        assert sorted(found["sex"].isna()) == [False] * 6 + [True] * 2

    def test_one_query_is_paid(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=1)
        query = "SELECT region, sex, COUNT(*) AS n, AVG(hours) AS h FROM people GROUP BY CUBE (region, sex)"
        answer = pdrisk.sql(query, eps=0.8, keys=KEYS, bounds=BOUNDS, ledger=ledger, people=FRAME)
        assert ledger.remaining().spent == 0.8
        assert paid(ledger) == 1
        said = Answer.from_attrs(answer.attrs)
        assert said.eps == 0.8
        assert said.tables == ("region, sex", "region", "sex", "")
        assert answer["n"].iloc[:8].sum() == answer["n"].iloc[-1]
        assert "add up" in pdrisk.explain(answer, "publication")

    def test_without_the_cells_each_grouping_is_a_query(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=1)
        query = "SELECT region, sex, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((region), (sex))"
        answer = pdrisk.sql(query, eps=0.8, keys=KEYS, ledger=ledger, people=FRAME)
        assert (len(answer), paid(ledger)) == (6, 2)

    def test_medians_are_asked_one_by_one(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=1)
        query = "SELECT sex, MEDIAN(hours) AS h FROM people GROUP BY ROLLUP (sex)"
        answer = pdrisk.sql(query, eps=0.8, keys=KEYS, bounds=BOUNDS, ledger=ledger, people=FRAME)
        assert (len(answer), paid(ledger)) == (3, 2)


class TestLabels:
    """Texts name the allotment, what adds up and what was shown."""

    def test_publication(self):
        text = " ".join(pdrisk.explain(asked(allot={("region", "sex"): 0.75, (): 0.25}), "publication").split())
        assert (
            "cells and margins add up: all are least-squares estimates from what was measured, the table by region, "
            "sex with 75 % of eps and the total with 25 % of eps; counts are shown as whole numbers of at least 0 near "
            "the estimates, of which the intervals are; margins, too, are about the records whose keys are listed in "
            "all columns" in text
        )
        assert "scale" not in text  # that of each table is another

    @pytest.mark.parametrize("audience", ["publication", "analyst", "participant"])
    def test_golden(self, audience, noiseless):
        """Read by a person once; ``PDRISK_WRITE_GOLDEN=1`` writes them anew."""
        tables = asked(by=["region", "age"]), asked(margins=False, normalize="all")
        consistent = pdrisk.consistent([asked(margins=False), asked(by=["region"], margins=False)], same_data=True)
        text = "\n\n".join(pdrisk.explain(each, audience) for each in (*tables, consistent[0])) + "\n"
        file = GOLDEN / f"margins_{audience}.txt"
        if os.environ.get("PDRISK_WRITE_GOLDEN"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    def test_shares(self):
        text = " ".join(pdrisk.explain(asked(margins=False, normalize=["region"]), "analyst").split())
        assert "shares of all in the same group by region" in text
        assert "whole numbers" not in text
        assert "of all together" in " ".join(pdrisk.explain(asked(margins=False, normalize="all"), "analyst").split())

    def test_the_statement_of_a_publication(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=1)
        with ledger.publication("report", purpose="trial"):
            asked(ledger=ledger, allot={("region", "sex"): 0.75, (): 0.25})
        assert (
            "cells and margins were measured apart and adjusted to each other by least squares, so that they add up; "
            "measured were the table by region, sex with 75 % of eps and the total with 25 % of eps"
            in " ".join(str(ledger.statement("report")).split())
        )

    def test_without_margins_nothing_is_said(self):
        assert "margins" not in pdrisk.explain(asked(margins=False), "publication")


CELLS, SEVEN = ("region", "sex"), [f"c{at}" for at in range(7)]
BAD = {
    "a table not published": ({"allot": {CELLS: 0.5, ("sex",): 0.5}, "margins": [()]}, "allot names the table by sex"),
    "an unknown column": ({"allot": {CELLS: 0.5, ("sez",): 0.5}}, r"allot names 'sez'.*Did you mean 'sex'"),
    "shares that are not 1": ({"allot": {CELLS: 0.5, (): 0.4}}, "must add up to 1, but add up to 0.9"),
    "none on cells": ({"allot": {CELLS: 0, (): 1}}, "nothing to the cells"),
    "cells left out": ({"allot": {("sex",): 0.5, (): 0.5}}, "nothing to the cells"),
    "a negative share": ({"allot": {CELLS: 1.5, (): -0.5}}, "between 0 and 1"),
    "a table twice": ({"allot": {CELLS: 0.5, ("sex", "region"): 0.5}}, "twice"),
    "an unknown allotment": ({"allot": "total"}, "allot can be 'cells', 'even' or a dict"),
    "an allotment without margins": ({"allot": "cells", "margins": False}, "pass margins= as well"),
    "an unknown margin": ({"margins": [["regoin"]]}, r"margins names 'regoin'.*Did you mean 'region'"),
    "a margin twice": ({"margins": [["sex"], ["sex"]]}, "twice"),
    "the cells as a margin": ({"margins": [["sex", "region"]]}, "twice, or the cells"),
    "margins of another type": ({"margins": "sex"}, "True, or a list"),
    "whole numbers without margins": ({"margins": False, "whole": True}, "pass margins=True as well"),
    "whole shares": ({"normalize": "all", "whole": True}, "no whole numbers"),
    "whole of another type": ({"whole": "yes"}, "True or False"),
    "shares of each cell": ({"normalize": ["region", "sex"]}, "each share would be 1"),
    "an unknown normalization": ({"normalize": "index"}, '"all", or a list'),
    "the curator's numbers": ({"curator": True}, "curator= is about single tables"),
    "a limit of noise": ({"max_noise95": 5}, "max_noise95= is about single tables"),
}


class TestRefusals:
    """Bad input is refused before anything is paid, with what to write instead."""

    @pytest.mark.parametrize(("options", "said"), BAD.values(), ids=BAD)
    def test_counts(self, options, said, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=1)
        with pytest.raises(pdrisk.ParameterError, match=said):
            asked(ledger=ledger, **options)
        assert ledger.remaining().spent == 0

    @pytest.mark.parametrize(
        ("method", "options", "said"),
        [
            ("count", {}, "by=, which is missing"),
            ("count", {"by": "sex", "keys": "observed"}, "public list of all groups"),
            ("count", {"by": "sex", "keys": "private", "delta": 1e-6}, "public list of all groups"),
            ("count", {"by": BY[:2], "keys": [("west", "f"), ("north", "m")]}, "all combinations"),
            ("count", {"by": "sex", "keys": ["f", ALL]}, "name that key otherwise"),
            ("agg", {"request": {"hours": "median"}, "by": "sex"}, "no sum over"),
            ("mean", {"column": "hours", "by": "sex", "mechanism": "laplace"}, "auto"),
            ("mean", {"column": "hours", "by": "sex", "bounds": "column"}, "declared bounds"),
            ("sum", {"column": "hours", "by": "sex", "bounds": (-9, 9), "normalize": "all"}, "never below 0"),
            ("agg", {"request": {"hours": "sum"}, "by": "sex", "whole": True}, "numbers of records"),
            ("median", {"column": "hours", "by": "sex"}, "margins are for count"),
            ("crosstab", {"index": "sex", "columns": "age", "normalize": "rows"}, '"index", "columns" or "all"'),
            ("crosstab", {"index": "sex", "columns": "age", "values": "hours"}, "belong together"),
            ("count", {"by": SEVEN, "keys": {each: [0] for each in SEVEN}}, "up to 6 columns"),
        ],
    )
    def test_others(self, method, options, said):
        frame = FRAME.assign(**dict.fromkeys(SEVEN, 0))
        usual = {"bounds": BOUNDS, "keys": KEYS, "margins": True, "eps": 1}
        with pytest.raises((pdrisk.ParameterError, TypeError), match=said):
            getattr(frame.dprisk, method)(**usual | options)

    def test_people_in_several_groups(self):
        frame = FRAME.assign(pid=FRAME.index % 300)
        with pytest.raises(pdrisk.ParameterError, match="once for each group"):
            frame.dprisk.count(eps=1, person="pid", groups=2, by="sex", keys=["f", "m"], margins=True)
        rows = frame.dprisk.count(eps=1, person="pid", rows=3, by="sex", keys=["f", "m"], margins=True)
        assert rows.loc[ALL, "value"] == rows["value"].iloc[:2].sum()

    @pytest.mark.parametrize("policy", [{"least_group": {"size": 9, "eps": "0.1"}}, {"round_to": {"count": 5}}])
    def test_rules_of_a_ledger(self, tmp_path, policy):
        ledger = Ledger(tmp_path / "budget.db", dataset="people", eps=2, policy=policy)
        with pytest.raises(pdrisk.PolicyError, match="a question of its own"):
            asked(ledger=ledger)
        query = "SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)"
        with pytest.raises(pdrisk.PolicyError, match="a question of its own"):
            pdrisk.sql(query, eps=1, keys=["f", "m"], ledger=ledger, people=FRAME)
        assert ledger.remaining().spent == 0


class TestPlan:
    """The noise to expect of cells and margins, before there are data."""

    def test_counts(self):
        planned = pdrisk.plan("count()", n=900, eps=0.7, groups={"region": 30, "sex": 3}, margins=True)
        frame = pd.DataFrame({"region": np.arange(900) % 30, "sex": np.arange(900) % 3})
        keys = {"region": list(range(30)), "sex": [0, 1, 2]}
        table = frame.dprisk.count(eps=0.7, by=["region", "sex"], keys=keys, margins=True, whole=False)
        reach = (table["high"] - table["value"]).iloc[[0, 90, 120, 123]]  # the first of each table
        assert planned["table"].tolist() == ["by region, sex", "by region", "by sex", "total"]
        assert planned["noise95"].to_numpy() == pytest.approx(reach.to_numpy(), abs=1)  # ends are whole numbers
        assert planned["share"].sum() == 1
        assert planned["n"].tolist() == [10, 30, 300, 900]

    def test_means(self):
        options = {"n": 3000, "eps": 1, "bounds": (0, 60), "groups": {"region": 3, "sex": 2}, "margins": [["sex"], []]}
        planned = pdrisk.plan("mean(hours)", **options, allot="even").set_index("table")
        frame = pd.DataFrame({"region": np.arange(3000) % 3, "sex": np.arange(3000) // 3 % 2, "hours": 30.0})
        keys = {"region": [0, 1, 2], "sex": [0, 1]}
        table = frame.dprisk.mean(
            "hours", eps=1, by=["region", "sex"], keys=keys, bounds=(0, 60), margins=[["sex"], []], allot="even"
        )
        wanted = (table["high"] - table["low"]).iloc[[0, 6, 8]] / 2
        assert planned["noise95"].to_numpy() == pytest.approx(wanted.to_numpy(), rel=0.05)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"groups": 3}, "needs groups="),
            ({"success": 0.7, "eps": None}, "with targets write"),
            ({"questions": "median(hours)", "bounds": (0, 9)}, r"leave out median\(hours\)"),
            ({"allot": {("sex",): 1}}, "nothing to the cells"),
        ],
    )
    def test_refused(self, options, said):
        usual = {"questions": "count()", "n": 100, "eps": 1, "groups": {"region": 3, "sex": 2}, "margins": True}
        with pytest.raises(pdrisk.ParameterError, match=said):
            pdrisk.plan(**usual | options)
