"""``change``: by its definition the mean of later less earlier numbers of people in both waves, on every engine; by
the definition of neighbours what one person can move; and what is refused before it is paid."""

import datetime
import itertools
import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pdrisk
from pdrisk import ColumnTypeError, Dataset, Ledger, ParameterError, PdriskError, UnknownColumnError
from pdrisk._model.arguments import statistic
from pdrisk._pandas.requests.lines import judged_lines
from people_losses import loss, loss_between
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = {"y": (0.0, 10.0)}
WEIGHED = {**BOUNDS, "w": (0.0, 4.0)}
WAVES = {"wave": "year", "from_": 1980, "to": 1987}
REGIONS = ["north", "south"]
PLACES = 2**30  # steps from one bound to the other: docs/numbers.md, two_sums


def panel(seed: int, people: int = 40, several: bool = False) -> pd.DataFrame:
    """Rows of some people in three waves, in any order: gaps, values beyond the bounds, people in one wave only."""
    draw = np.random.default_rng(seed)
    n = people * 4
    frame = pd.DataFrame({"pid": draw.integers(0, people, n), "year": draw.choice([1980, 1983, 1987], n)})
    frame["y"] = draw.choice([-2.0, 0.0, 1.25, 3.7, 5.0, 10.0, 13.5, np.nan], n)
    frame["region"] = draw.choice([*REGIONS, "west", None], n)
    frame["sex"] = np.where(frame["pid"] % 3 == 0, "f", "m")
    frame["pid"] = frame["pid"].astype("Int64").mask(draw.random(n) < 0.05)
    frame["w"] = draw.choice([-1.0, 0.0, 0.3, 1.25, 2.0, 3.1, 9.0, np.inf, np.nan, np.nan], n)
    if not several:
        frame = frame.drop_duplicates(["pid", "year"])
    return frame.reset_index(drop=True)


def dataset(data, bounds=BOUNDS, **said):
    """A Dataset that chooses among rows as any other does."""
    found = Dataset(data, person="pid", constant="sex", bounds=bounds, **said)
    object.__setattr__(found._known_people, "secret", lambda: b"q" * 32)
    return found


def differences_of(frame, way=lambda rows: rows[0], group=None):
    """For each person in both waves the later less the earlier number: a loop over people."""
    found = {}
    for pid in frame["pid"].dropna().unique():
        own = frame[(frame["pid"] == pid).fillna(False) & frame["y"].notna()]
        before, after = (own[own["year"] == year] for year in (1980, 1987))
        if len(before) and len(after) and (group is None or after[group[0]].iloc[0] == group[1]):
            found[pid] = way(after["y"].tolist()) - way(before["y"].tolist())
    return found


def mean_of(numbers, lo, hi):
    """Mean of clamped numbers."""
    return sum(min(max(each, lo), hi) for each in numbers) / len(numbers)


class TestDefinition:
    """The answer without noise is the mean of clamped differences of people who have a value in both waves."""

    @pytest.mark.parametrize(("bounds", "ends"), [(None, (-10, 10)), ((-4, 6), (-4, 6)), ({"y": (0, 5)}, (-5, 5))])
    @pytest.mark.parametrize("seed", range(3))
    def test_of_one_row_in_each_wave(self, seed, bounds, ends, monkeypatch):
        frame, draws = panel(seed), without_noise(monkeypatch)
        dataset(frame).change("y", rows=1, eps=1, bounds=bounds, **WAVES)
        found, numbers = draws.answers[0], list(differences_of(frame).values())
        assert len(numbers) > 4
        assert float(found[0]) == pytest.approx(mean_of(numbers, *ends), abs=(ends[1] - ends[0]) / PLACES)
        ((exact, most, _),) = draws
        assert exact.sum() == len(numbers) * PLACES and most == PLACES

    @pytest.mark.parametrize(
        ("name", "way"),
        [("mean", lambda rows: sum(rows) / len(rows)), ("min", min), ("max", max), ("sum", sum)],
    )
    def test_of_a_number_of_several_rows(self, name, way, monkeypatch):
        frame, draws = panel(5, several=True), without_noise(monkeypatch)
        dataset(frame).change("y", per_person=name, eps=1, bounds=(-9, 12), **WAVES)
        numbers = list(differences_of(frame, way).values())
        assert float(draws.answers[0][0]) == pytest.approx(mean_of(numbers, -9, 12), abs=1e-6)

    def test_one_of_several_rows_is_chosen_in_each_wave(self, monkeypatch):
        frame, draws = panel(6, several=True), without_noise(monkeypatch)
        waves = [frame[(frame["year"] == year) & frame["y"].notna()] for year in (1980, 1987)]
        several = 0
        for pid in differences_of(frame):
            draws.clear()
            dataset(frame).change("y", rows=1, eps=1, where=f"pid == {pid}", bounds=(-30, 30), **WAVES)
            before, after = (wave.loc[wave["pid"] == pid, "y"] for wave in waves)
            several += len(before) * len(after) > 1
            possible = [late - early for early, late in itertools.product(before, after)]
            assert any(float(draws.answers[0][0]) == pytest.approx(each, abs=1e-6) for each in possible)
        assert several > 5

    @pytest.mark.parametrize("option", [{"rows": 1}, {"per_person": "one"}])
    def test_groups_are_those_of_the_later_rows(self, option, monkeypatch):
        frame, draws = panel(7), without_noise(monkeypatch)
        dataset(frame).change("y", eps=1, by="region", keys=REGIONS, **option, **WAVES)
        expected = [mean_of(list(differences_of(frame, group=("region", key)).values()), -10, 10) for key in REGIONS]
        assert draws.answers[0].tolist() == pytest.approx(expected, abs=1e-6)

    def test_a_missing_or_infinite_value_is_none(self, monkeypatch):
        draws = without_noise(monkeypatch)
        frame = pd.DataFrame({"pid": [1, 1, 2, 2, 3, 3, 4, 4], "year": [1980, 1987] * 4, "sex": "f"})
        frame["y"] = [1.0, 3.0, 2.0, np.nan, np.inf, np.inf, 4.0, np.inf]  # infinite less finite is clamped
        dataset(frame).change("y", rows=1, eps=1, **WAVES)
        assert float(draws.answers[0][0]) == pytest.approx((2 + 10) / 2, abs=1e-6)

    def test_both_rows_must_be_selected(self, monkeypatch):
        frame, draws = panel(8, people=200), without_noise(monkeypatch)
        dataset(frame).query("region == 'north'").change("y", rows=1, eps=1, where="y < 9", **WAVES)
        own = frame[(frame["region"] == "north") & (frame["y"] < 9)]
        assert float(draws.answers[0][0]) == pytest.approx(mean_of(differences_of(own).values(), -10, 10), abs=1e-6)

    @pytest.mark.parametrize(
        ("made", "from_", "to"),
        [
            (lambda years: years.astype(str), "1980", "1987"),
            (lambda years: years.astype(str).astype("category"), "1980", "1987"),
            (lambda years: pd.to_datetime(years.astype(str), format="%Y"), "1980-01-01", datetime.date(1987, 1, 1)),
            (lambda years: years == 1987, False, True),
            (lambda years: years.astype("float32"), 1980.0, 1987),
        ],
    )
    def test_waves_of_every_type(self, made, from_, to, monkeypatch):
        frame, draws = panel(9), without_noise(monkeypatch)
        frame = frame[frame["year"] != 1983]
        d = dataset(frame.assign(year=made(frame["year"])))
        d.change("y", rows=1, eps=1, wave="year", from_=from_, to=to)
        assert float(draws.answers[0][0]) == pytest.approx(mean_of(differences_of(frame).values(), -10, 10), abs=1e-6)

    def test_assigned_columns(self, monkeypatch):
        frame, draws = panel(10), without_noise(monkeypatch)
        d = dataset(frame).assign(twice="y * 2", late="year > 1985", known="year != 1983").query("known")
        d.change("twice", rows=1, eps=1, wave="late", from_=False, to=True, bounds=(-5, 7))
        numbers = [2 * each for each in differences_of(frame).values()]
        assert float(draws.answers[0][0]) == pytest.approx(mean_of(numbers, -5, 7), abs=1e-6)

    def test_the_self_join_of_sql_is_the_same(self, monkeypatch):
        """Where each person has one row in each wave."""
        frame, draws = panel(11), without_noise(monkeypatch)
        d = dataset(frame)
        d.change("y", rows=1, eps=1, bounds=(-4, 6), **WAVES)
        d.sql(
            "SELECT AVG(late.y - early.y) AS rise FROM data early JOIN data late ON early.pid = late.pid "
            "WHERE early.year = 1980 AND late.year = 1987",
            eps=1, rows=1, bounds={"rise": (-4, 6)},
        )  # fmt: skip
        assert draws[0][0].tolist() == draws[1][0].tolist()


def rows_of(frame):
    """Rows as tuples of plain values."""
    return [tuple(None if pd.isna(each) else each for each in row) for row in frame.astype(object).values.tolist()]


def in_files(frame, folder):
    frame.to_parquet(folder / "panel.parquet")
    return folder / "panel.parquet"


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect() as con:
        yield lambda frame, _: con.execute("CREATE OR REPLACE TABLE panel AS SELECT * FROM frame") and (con, "panel")


@pytest.fixture(scope="module")
def postgres():
    with database() as url, connected(url) as con:

        def stored(frame, _):
            columns = "y double precision, region text, sex text, w double precision"
            con.execute("DROP TABLE IF EXISTS panel")
            con.execute(f"CREATE TABLE panel (pid bigint, year integer, {columns})")
            con.cursor().executemany("INSERT INTO panel VALUES (%s, %s, %s, %s, %s, %s)", rows_of(frame))
            con.commit()
            return url, "panel"

        yield stored


@pytest.fixture(scope="module")
def spark():
    own = session()

    def held(frame, _):
        return own.createDataFrame(
            rows_of(frame), "pid bigint, year int, y double, region string, sex string, w double"
        )

    yield held
    own.stop()


@pytest.fixture(
    params=[
        "polars",
        "arrow",
        "files",
        "duck",
        pytest.param("postgres", marks=needs_server),
        pytest.param("spark", marks=[needs_spark, pytest.mark.slow]),
    ]
)
def elsewhere(request):
    """Stores a frame with another engine."""
    held = {
        "polars": lambda frame, _: pl.from_pandas(frame).lazy(),
        "arrow": lambda frame, _: pa.Table.from_pandas(frame),
        "files": in_files,
    }
    return held[request.param] if request.param in held else request.getfixturevalue(request.param)


ASKS = {
    "one row": lambda d: d.change("y", rows=1, eps=1, **WAVES),
    "bounds of the difference": lambda d: d.change("y", rows=1, eps=1, bounds=(-3, 4.5), **WAVES),
    "a filter": lambda d: d.query("region != 'west'").change("y", rows=1, eps=1, where="y > 0", **WAVES),
    "groups": lambda d: d.change("y", rows=1, eps=1, by="region", keys=REGIONS, **WAVES),
    "a missing group": lambda d: d.change("y", rows=1, eps=1, by="region", keys=["west", None], **WAVES),
    "constant groups": lambda d: d.change("y", per_person="mean", eps=1, by="sex", keys=["m", "f"], **WAVES),
    "laplace": lambda d: d.change("y", rows=1, eps=1, mechanism="laplace", **WAVES),
    "assigned": lambda d: d.assign(z="y * 3").change("z", rows=1, eps=1, bounds=(-9, 9), **WAVES),
    "curator": lambda d: d.change("y", rows=1, eps=1, curator=True, **WAVES),
    "curator of groups": lambda d: d.change("y", rows=1, eps=1, by="region", keys=REGIONS, curator=True, **WAVES),
    "weighted": lambda d: d.change("y", rows=1, eps=1, weights="w", bounds=WEIGHED, curator=True, **WAVES),
    "weighted groups": lambda d: d.query("y > -1").change(
        "y", rows=1, eps=1, weights="w", bounds=WEIGHED, by="region", keys=["west", None], **WAVES
    ),
    "weighted columns": lambda d: d.assign(z="y * 3", v="w / 2").agg(
        {"z": [("change", WAVES)], "y": [("change", WAVES)]},
        rows=1,
        eps=1,
        weights="v",
        bounds={**BOUNDS, "z": (0, 20), "v": (0, 1)},
    ),
}
OF_SEVERAL = {
    way: lambda d, way=way: d.change("y", per_person=way, eps=1, bounds=(-20, 20), curator=True, **WAVES)
    for way in ("mean", "sum", "min", "max")
} | {
    "weighted": lambda d: d.change("y", per_person="mean", eps=1, weights="w", bounds=WEIGHED, **WAVES),
    "weighted constant groups": lambda d: d.change(
        "y", per_person="mean", eps=1, weights="w", bounds=WEIGHED, by="sex", keys=["m", "f"], curator=True, **WAVES
    ),
}  # fmt: skip


class TestEngines:
    """Every engine draws noise for the same whole numbers as numpy does."""

    def same(self, frame, data, ask, monkeypatch):
        draws = without_noise(monkeypatch)
        found = []
        for each in (frame, data):
            ask(dataset(each))
            found.append([(np.asarray(exact).tolist(), change, eps) for exact, change, eps in draws])
            draws.clear()
        assert found[0] and found[0] == found[1]

    @pytest.mark.whole
    def test_same_numbers(self, elsewhere, tmp_path, monkeypatch):
        for frame, asks in ((panel(21, people=80), ASKS), (panel(22, several=True), OF_SEVERAL)):
            data = elsewhere(frame, tmp_path)
            for ask in asks.values():
                self.same(frame, data, ask, monkeypatch)

    @pytest.mark.whole
    def test_people_in_both_waves_show_private_groups(self, elsewhere, tmp_path):
        """By the group of the later row; whether a value is missing decides nothing here, as in every statistic."""
        frame, wanted = panel(24, people=80), statistic(("change", WAVES))
        options = {"rows": 1, "eps": 1, "by": "region", "keys": "private", "delta": 1e-6}
        for data in (frame, elsewhere(frame, tmp_path)):
            d = dataset(data)
            asked = d._request(options)
            query, engine = d._judged(lambda frame, asked=asked: judged_lines(frame, "y", (wanted,), asked), asked)
            found = engine.group_sizes(query)
            both = frame[frame["year"] == 1987].merge(frame[frame["year"] == 1980], on="pid").dropna(subset="pid")
            sizes = both["region_x"].value_counts().sort_index()
            assert dict(zip(found.keys, found.n, strict=True)) == {(key,): n for key, n in sizes.items()}

    @pytest.mark.whole
    def test_huge_values_fail_nowhere(self, elsewhere, tmp_path, monkeypatch):
        frame = pd.DataFrame({"pid": pd.array([1, 1, 2, 2], dtype="Int64"), "year": [1980, 1987] * 2})
        frame["y"], frame["region"], frame["sex"] = [-1.7e308, 1.7e308, np.inf, np.inf], "north", "f"
        frame["w"] = [np.nan, 1.7e308, 1.0, 1.0]
        data = elsewhere(frame, tmp_path)
        for ask in (ASKS["one row"], ASKS["weighted"]):
            self.same(frame, data, ask, monkeypatch)

    @pytest.mark.whole
    def test_one_of_several_rows_is_chosen_everywhere(self, elsewhere, tmp_path, monkeypatch):
        frame, draws = panel(23, several=True), without_noise(monkeypatch)
        dataset(elsewhere(frame, tmp_path)).change("y", rows=1, eps=1, by="region", keys=REGIONS, **WAVES)
        ((exact, _, _),) = draws
        assert 0 < exact.sum() <= len(differences_of(frame)) * PLACES


class TestNeighbours:
    """All rows of one person, added or removed, move both noisy sums by no more than the noise is for."""

    @pytest.mark.parametrize("option", [{"rows": 1}, {"per_person": "mean"}, {"per_person": "max"}])
    def test_every_small_panel(self, option, monkeypatch):
        """Whatever rows a person has in three waves, beside two others: L1 <= S, and S if they are in both."""
        draws, largest = without_noise(monkeypatch), 0
        others = pd.DataFrame({"pid": [1, 1, 2, 2], "year": [1980, 1987, 1980, 1983], "y": [0.0, 10.0, 4.0, 4.0]})
        rows = [(year, y) for year in (1980, 1983, 1987) for y in (0.0, 7.3, math.nan)]

        def sums(own):
            listed = pd.DataFrame([(0, *row) for row in own], columns=["pid", "year", "y"])
            frame = pd.concat([others, listed.astype({"pid": int, "year": int, "y": float})]).assign(sex="f")
            draws.clear()
            dataset(frame).change("y", eps=1, **option, **WAVES)
            ((exact, most, eps),) = draws
            assert (most, eps) == (PLACES, 1)
            return exact

        alone = sums([])
        for number in (1, 2, 3):
            for own in itertools.combinations_with_replacement(rows, number):
                moved = int(np.abs(sums(own) - alone).sum())
                is_in_both = {year for year, y in own if not math.isnan(y)} >= {1980, 1987}
                assert moved == (PLACES if is_in_both else 0)
                largest = max(largest, moved)
        assert largest == PLACES

    @pytest.mark.parametrize(
        "ask",
        [
            lambda d: d.change("y", rows=1, eps=1, **WAVES),
            lambda d: d.change("y", rows=1, eps=1, by="region", keys=REGIONS, **WAVES),
            lambda d: d.change("y", rows=1, eps=1, mechanism="laplace", by="region", keys=REGIONS, **WAVES),
            lambda d: d.change("y", per_person="sum", eps=1, bounds=(-3, 3), **WAVES),
            lambda d: d.agg({each: [("change", WAVES)] for each in ("x", "y")}, rows=1, eps=1),
        ],
    )
    def test_no_person_loses_more_than_eps(self, ask):
        most = 0.0
        for seed in range(12):
            frame = panel(100 + seed, people=5, several=True).assign(x=lambda own: 5 - own["y"] / 2)
            for pid in frame["pid"].dropna().unique():
                most = max(most, loss(ask, frame, frame[(frame["pid"] != pid).fillna(True)]))
        assert 0.3 < most <= 1 + 1e-9


class TestRisk:
    """Curators' numbers are about people in both waves."""

    def test_individual_risk(self):
        """A person in both waves loses eps by two_sums, in whichever row; others are in no answer."""
        frame = panel(31, several=True)
        spec = ("change", WAVES)
        risk = dataset(frame).individual_risk("y", spec, eps=1, rows=1)
        both = frame["pid"].isin(list(differences_of(frame))) & frame["year"].isin([1980, 1987]) & frame["y"].notna()
        assert risk[both].round(4).eq(0.7311).all()  # e / (1 + e)
        assert risk[~both].isna().all()

    def test_individual_risk_by_how_far_the_mean_moves(self):
        frame = panel(32)
        risk = dataset(frame).individual_risk("y", ("change", WAVES), eps=1, rows=1, mechanism="laplace")
        numbers = {pid: min(max(each, -10), 10) for pid, each in differences_of(frame).items()}
        for pid, own in numbers.items():
            rest = [each for other, each in numbers.items() if other != pid]
            moved = abs(sum(numbers.values()) / len(numbers) - sum(rest) / len(rest))
            row = frame.index[(frame["pid"] == pid).fillna(False) & (frame["year"] == 1987)][0]
            assert risk[row] == pytest.approx(1 / (1 + math.exp(-moved / 10)), abs=1e-6), own

    def test_facts(self):
        frame = panel(33)
        found = dataset(frame).change("y", rows=1, eps=1, curator=True, **WAVES)
        assert found.curator.n == len(differences_of(frame))
        assert found.curator.left_out is None and found.curator.unlisted == int(frame["pid"].isna().sum())

    def test_texts_say_of_whom(self):
        found = dataset(panel(34)).change("y", rows=1, eps=1, **WAVES)
        assert found.answer.leaves_out == ("waves",)
        assert "of those in both" in str(found) and "change by year from 1980 to 1987, of one row in each" in str(found)
        assert "a pid counts if both waves have a value" in pdrisk.explain(found, "publication")

    def test_plan(self):
        (row,) = pdrisk.plan({"y": [("change", WAVES)]}, n=545, eps=1, bounds=(-10, 20)).to_dict("records")
        mean = pdrisk.plan("mean(y)", n=545, eps=1, bounds=(-10, 20)).to_dict("records")[0]
        assert row["question"] == "change(1980 to 1987) of y" and row["noise95"] == mean["noise95"]
        of_rows = pdrisk.plan({"y": [("change", WAVES)]}, n=545, eps=1, bounds={"y": (0, 15)})
        assert of_rows["noise95"][0] == pytest.approx(mean["noise95"])  # the difference is within -15 and 15


class TestLedger:
    """A ledger pays before anything is read, and remembers a change by its waves and its rule."""

    def test_each_change_is_one_question(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="panel", eps=10)
        d = dataset(panel(41, several=True), ledger=ledger)
        asks = [
            lambda: d.change("y", rows=1, eps=1, **WAVES),
            lambda: d.change("y", rows=1, eps=1, wave="year", from_=1987, to=1980),
            lambda: d.change("y", rows=1, eps=1, wave="year", from_=1980, to=1983),
            lambda: d.change("y", per_person="mean", eps=1, **WAVES),
        ]
        values = [ask().value for ask in asks]
        assert [ask().value for ask in asks] == values and len(set(values)) == 4
        assert ledger.remaining().eps == 6
        assert d.mean("y", rows=1, eps=1).value not in values
        assert ledger.history()["query"].dropna().str.startswith("change(").sum() == 12  # 8 of them remembered

    def test_another_range_of_rows_is_another_question(self, tmp_path):
        """By it the rows of a person are rounded before they are added up."""
        ledger = Ledger(tmp_path / "budget.db", dataset="panel", eps=10)
        frame = panel(43, several=True)
        for bounds in ((0, 10), (0, 20), (0, 10)):
            d = dataset(frame, bounds={"y": bounds}, ledger=ledger)
            d.change("y", per_person="mean", eps=1, bounds=(-5, 5), **WAVES)
        assert ledger.remaining().eps == 8

    def test_a_note_for_readers_says_how(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="panel", eps=10)
        with ledger.publication("note", purpose="a table"):
            dataset(panel(42), ledger=ledger).change("y", rows=1, eps=1, **WAVES)
        text = str(ledger.statement("note"))
        assert "change by year from 1980 to 1987" in text and "of those with a value in both waves" in text


REFUSED = [
    ({"rows": None}, ParameterError, "several rows in a wave"),
    ({"rows": 2}, ParameterError, "rows=2 takes several"),
    ({"rows": 1, "per_person": "mean"}, ParameterError, "pass one of them"),
    ({"rows": None, "per_person": "count"}, ParameterError, "would not look at the column"),
    ({"rows": None, "per_person": "sum"}, ParameterError, "differences of sums"),
    ({"rows": None, "per_person": "sum", "bounds": {"y": (0, 9)}}, ParameterError, "differences of sums"),
    ({"rows": None, "per_person": "mean", "by": "region", "keys": REGIONS}, ParameterError, "may differ within"),
    ({"groups": 1, "by": "region", "keys": REGIONS}, ParameterError, "groups= means nothing"),
    ({"rows": None, "unit": "row"}, ParameterError, "unit= means nothing"),
    ({"from_": 1987}, ParameterError, "both 1987"),
    ({"from_": 1987.0}, ParameterError, "both 1987"),
    ({"from_": None}, ParameterError, "a missing value is none"),
    ({"from_": "1980"}, ParameterError, "not of one kind"),
    ({"to": [1987]}, ColumnTypeError, "to must be text, a number"),
    ({"to": 1985}, ParameterError, "none of the declared keys of 'year': 1980, 1983, 1987"),
    ({"wave": "yaer"}, UnknownColumnError, "Did you mean 'year'"),
    ({"wave": ["year"]}, ColumnTypeError, "wave"),
    ({"wave": "region", "from_": "north", "to": "gone"}, ParameterError, "stand for a missing answer"),
    ({"bounds": "column"}, ParameterError, "the range of the difference"),
    ({"bounds": (3, 1)}, ParameterError, "reversed"),
    ({"bounds": (-math.inf, 1)}, ParameterError, "finite"),
    ({"column": "sex"}, ColumnTypeError, "needs numbers"),
    ({"column": "z"}, ParameterError, "needs bounds"),
    ({"column": "z", "rows": None, "per_person": "mean", "bounds": (-1, 1)}, ParameterError, "is not known"),
    ({"step": 1}, ParameterError, "step=1"),
    ({"clip": "private"}, ParameterError, "leave it out"),
    ({"mechanism": "bernstein"}, ParameterError, "cannot answer"),
    ({"neighbours": "replace-one"}, ParameterError, "replace-one"),
    ({"weights": "w"}, ParameterError, "needs the largest weight W.*pass bounds="),
    ({"weights": "w", "bounds": (-3, 3)}, ParameterError, "needs the largest weight W.*beside bounds=.lo, hi. of the"),
    ({"weights": "w", "bounds": {"w": (-1, 4)}}, ParameterError, "weights cannot be negative"),
    ({"weights": "w", "bounds": {"w": (0, math.inf)}}, ParameterError, "finite"),
    ({"weights": "w", "bounds": {"w": "column"}}, ParameterError, "cannot come from the data"),
    ({"weights": "w", "bounds": "column"}, ParameterError, "bounds of two columns"),
    ({"weights": "w", "column": "z", "bounds": {"w": (0, 4)}}, ParameterError, "needs bounds: pass bounds={'z'"),
    ({"weights": "w", "column": "z"}, ParameterError, "several arguments are missing: bounds={'w'.*bounds={'z'"),
    ({"weights": "v"}, UnknownColumnError, "unknown column 'v'"),
    ({"weights": "sex", "bounds": {"sex": (0, 4)}}, ColumnTypeError, "needs numbers"),
    ({"weights": "w", "column": "sex", "bounds": WEIGHED}, ColumnTypeError, "change.*needs numbers"),
    ({"weights": ["w"]}, ColumnTypeError, "name of a column"),
    ({"weights": "w", "bounds": WEIGHED, "mechanism": "two_sums"}, ParameterError, "cannot answer weighted change"),
    ({"weights": "w", "bounds": WEIGHED, "step": 1}, ParameterError, "not for weighted"),
    *(
        ({"weights": "w", "rows": None, "per_person": way, "bounds": WEIGHED}, ParameterError, "number of the weights")
        for way in ("sum", "min", "max", "any", "all", "count")
    ),
]


def weighted_differences_of(frame, of=lambda rows: rows[0], group=None):
    """For each person in both waves the difference and the weight of the later wave, which alone needs one: a loop."""
    found = {}
    for pid in frame["pid"].dropna().unique():
        own = frame[(frame["pid"] == pid).fillna(False) & frame["y"].notna()]
        before, after = own[own["year"] == 1980], own[(own["year"] == 1987) & own["w"].notna()]
        if len(before) and len(after) and (group is None or after[group[0]].iloc[0] == group[1]):
            found[pid] = (of(after["y"].tolist()) - of(before["y"].tolist()), of(after["w"].tolist()))
    return found


def weighted_mean_of(pairs, lo, hi, most):
    """Weighted mean of clamped numbers, with weights between 0 and the largest."""
    weights = [min(max(weight, 0), most) for _, weight in pairs]
    values = [min(max(value, lo), hi) for value, _ in pairs]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def place_of(weight, most=4.0):
    """What a weight adds to both sums together."""
    return math.floor(min(max(weight, 0), most) / most * PLACES + 0.5)


class TestWeighted:
    """A weighted change is the mean of the differences, weighted with what the later row says."""

    @pytest.mark.parametrize(
        ("bounds", "ends", "most"),
        [
            (None, (-10, 10), 4),
            ((-4, 6), (-4, 6), 4),
            ({"y": (0, 5)}, (-5, 5), 4),
            ({"y": (0, 5), "w": (0, 2)}, (-5, 5), 2),
            ({"w": (0, 8)}, (-10, 10), 8),
        ],
    )
    def test_of_one_row_in_each_wave(self, bounds, ends, most, monkeypatch):
        frame, draws = panel(61, people=120), without_noise(monkeypatch)
        dataset(frame, WEIGHED).change("y", rows=1, eps=1, weights="w", bounds=bounds, **WAVES)
        pairs = list(weighted_differences_of(frame).values())
        assert len(pairs) > 15 and {weight for _, weight in pairs} >= {-1.0, 9.0, np.inf}
        assert float(draws.answers[0][0]) == pytest.approx(weighted_mean_of(pairs, *ends, most), abs=1e-6)
        ((exact, change, eps),) = draws
        assert exact.sum() == sum(place_of(weight, most) for _, weight in pairs)
        assert (change, eps) == (PLACES, 1)

    def test_of_the_means_of_several_rows(self, monkeypatch):
        """Of the rows that have what is read: a value, and in the later wave a weight, too."""
        frame, draws = panel(62, several=True), without_noise(monkeypatch)
        frame["w"] = frame["w"].replace(np.inf, 3.0)
        dataset(frame, WEIGHED).change("y", per_person="mean", eps=1, weights="w", bounds=(-9, 12), **WAVES)
        pairs = weighted_differences_of(frame, lambda rows: sum(rows) / len(rows)).values()
        assert float(draws.answers[0][0]) == pytest.approx(weighted_mean_of(pairs, -9, 12, 4), abs=1e-6)

    def test_the_weight_is_that_of_the_row_that_counts(self, monkeypatch):
        frame, draws = panel(63, several=True), without_noise(monkeypatch)
        several = 0
        for pid in weighted_differences_of(frame):
            own = frame[(frame["pid"] == pid).fillna(False) & frame["y"].notna()]
            before, after = own[own["year"] == 1980], own[(own["year"] == 1987) & own["w"].notna()]
            draws.clear()
            d = dataset(frame, WEIGHED)
            d.change("y", rows=1, eps=1, weights="w", where=f"pid == {pid}", bounds=(-30, 30), **WAVES)
            possible = [
                (late - early, place_of(weight)) for early in before["y"] for late, weight in after[["y", "w"]].values
            ]
            several += len(after) > 1
            ((exact, _, _),) = draws
            weight, low_and_high = int(exact.sum()), exact.ravel().tolist()
            assert any(
                weight == place and sorted(low_and_high) == pytest.approx(sorted(
                    [place * (30 + value) / 60, place * (30 - value) / 60]), abs=2)
                for value, place in possible
            )  # fmt: skip
        assert several > 5

    def test_groups_are_those_of_the_later_rows(self, monkeypatch):
        frame, draws = panel(64, people=150), without_noise(monkeypatch)
        dataset(frame, WEIGHED).change("y", rows=1, eps=1, weights="w", by="region", keys=REGIONS, **WAVES)
        expected = [
            weighted_mean_of(weighted_differences_of(frame, group=("region", key)).values(), -10, 10, 4)
            for key in REGIONS
        ]
        assert draws.answers[0].tolist() == pytest.approx(expected, abs=1e-6)

    def test_the_design_has_the_weights_unless_they_are_turned_off(self, monkeypatch):
        frame, draws = panel(65, people=80), without_noise(monkeypatch)
        d = dataset(frame, WEIGHED, design=pdrisk.Design("w"))
        found = [d.change("y", rows=1, eps=1, **off, **WAVES) for off in ({}, {"weights": False})]
        name = "change(1980 to 1987) of y"
        assert [each.name for each in found] == [f"{name} weighted by w", name]
        pairs = weighted_differences_of(frame).values()
        expected = [weighted_mean_of(pairs, -10, 10, 4), mean_of(differences_of(frame).values(), -10, 10)]
        assert [float(each[0]) for each in draws.answers] == pytest.approx(expected, abs=1e-6)

    def test_codes_of_missing_weights(self, monkeypatch):
        frame, draws = panel(66, people=80), without_noise(monkeypatch)
        dataset(frame, WEIGHED, missing={"w": [9]}).change("y", rows=1, eps=1, weights="w", **WAVES)
        pairs = weighted_differences_of(frame.assign(w=frame["w"].replace(9.0, np.nan))).values()
        assert float(draws.answers[0][0]) == pytest.approx(weighted_mean_of(pairs, -10, 10, 4), abs=1e-6)

    @pytest.mark.parametrize("option", [{"rows": 1}, {"per_person": "mean"}])
    def test_a_person_moves_the_sums_by_the_place_of_the_later_weight(self, option, monkeypatch):
        """Whatever one or two rows a person has in each wave, beside two others, added or removed."""
        draws, seen = without_noise(monkeypatch), set()
        columns = ["pid", "year", "y", "w"]
        others = pd.DataFrame([(1, 1980, 0.0, 4.0), (1, 1987, 10.0, 0.7), (2, 1987, 4.0, 4.0)], columns=columns)
        early = [[], [(math.nan, 1.0)], [(2.0, math.nan)], [(2.0, 4.0), (7.3, math.nan)]]
        late = [(9.0, 1.3), (math.nan, 2.0), (0.0, 4.0), (5.0, 11.0), (3.3, 0.0), (8.0, math.nan)]

        def sums(own):
            frame = pd.concat([others, pd.DataFrame(own, columns=columns).astype(others.dtypes)]).assign(sex="f")
            draws.clear()
            dataset(frame, WEIGHED).change("y", eps=1, weights="w", **option, **WAVES)
            ((exact, most, eps),) = draws
            assert (most, eps) == (PLACES, 1)
            return exact

        alone = sums([])
        for before in early:
            for number in (0, 1, 2):
                for after in itertools.combinations(late, number):
                    moved = int(np.abs(sums(
                        [(0, 1980, *row) for row in before] + [(0, 1987, *row) for row in after]
                    ) - alone).sum())  # fmt: skip
                    weights = [weight for y, weight in after if not (math.isnan(y) or math.isnan(weight))]
                    is_in_both = any(not math.isnan(y) for y, _ in before) and weights
                    mean = place_of(sum(weights) / len(weights)) if weights else 0
                    possible = [mean] if "per_person" in option else [place_of(each) for each in weights]
                    near = 4 if len(weights) > 1 and "per_person" in option else 0  # means are rounded to 2**-31
                    assert min(abs(moved - each) for each in (possible if is_in_both else [0])) <= near
                    assert moved <= PLACES
                    seen.add(moved)
        assert {0, place_of(1.3), PLACES} <= seen

    @pytest.mark.parametrize(
        "ask",
        [
            lambda d: d.change("y", rows=1, eps=1, weights="w", **WAVES),
            lambda d: d.change("y", rows=1, eps=1, weights="w", by="region", keys=REGIONS, **WAVES),
            lambda d: d.change("y", per_person="mean", eps=1, weights="w", bounds=(-3, 3), **WAVES),
        ],
    )
    def test_a_person_loses_eps_times_the_weight_over_the_largest(self, ask):
        most = 0.0
        for seed in range(12):
            frame = panel(160 + seed, people=5, several=True)
            for pid in frame["pid"].dropna().unique():
                own = frame.loc[(frame["pid"] == pid).fillna(False) & (frame["year"] == 1987), "w"].dropna()
                largest = min(max(own.max() if len(own) else 0.0, 0.0), 4.0)
                rest = frame[(frame["pid"] != pid).fillna(True)]
                found = loss_between(ask, dataset(frame, WEIGHED), dataset(rest, WEIGHED))
                assert found <= largest / 4 + 1e-9
                most = max(most, found)
        assert most > 0.7

    @pytest.mark.parametrize("options", [{}, {"by": "region", "keys": REGIONS}])
    def test_individual_risk(self, options):
        frame, eps = panel(67), 1.5
        d = dataset(frame, WEIGHED)
        risk = d.individual_risk("y", ("change", WAVES), eps=eps, rows=1, weights="w", **options)
        pairs = {}
        for key in options.get("keys", [None]):
            pairs |= weighted_differences_of(frame, group=None if key is None else ("region", key))
        is_late = frame["year"] == 1987
        rows = frame["y"].notna() & ((frame["year"] == 1980) | (is_late & frame["w"].notna()))
        assert len(pairs) > 5
        for at, row in frame.iterrows():
            if rows[at] and not pd.isna(row["pid"]) and row["pid"] in pairs:
                loss_of_eps = eps * min(max(pairs[row["pid"]][1], 0), 4) / 4
                assert risk[at] == pytest.approx(1 / (1 + math.exp(-loss_of_eps)), abs=1e-8)
            else:
                assert math.isnan(risk[at])

    def test_texts_and_bounds(self):
        found = dataset(panel(68), WEIGHED).change("y", rows=1, eps=1, weights="w", bounds=(-3, 4), **WAVES)
        assert found.bounds == {"y": (-3.0, 4.0), "w": (0.0, 4.0)}
        assert found.answer.lines[0].statistic == "weighted change(1980 to 1987)"
        text = " ".join(pdrisk.explain(found, "publication").split())
        assert "of one row in each, with the weight of the later" in text
        assert "a pid counts if both waves have a value, and the later one a weight" in text
        assert "weight w, trimmed at 4" in text
        with pytest.raises(ParameterError, match="not for weighted change"):
            found.interval(kind="sampling")

    def test_weights_are_part_of_the_question(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="panel", eps=10)
        frame = panel(69).assign(v=1.0)
        d = dataset(frame, {**WEIGHED, "v": (0, 4)}, ledger=ledger)
        with ledger.publication("note", purpose="a table"):
            for weights in ("w", "v", False, "w"):
                d.change("y", rows=1, eps=1, weights=weights, **WAVES)
            dataset(frame, {**WEIGHED, "w": (0, 8)}, ledger=ledger).change("y", rows=1, eps=1, weights="w", **WAVES)
        assert ledger.remaining().eps == 6
        text = " ".join(str(ledger.statement("note")).split())
        assert "with a value in both waves, and a weight in the later one" in text and "trimmed at 8" in text


class TestRefused:
    """What is wrong by names, types and declarations is refused before it is paid, and says what to write."""

    @pytest.mark.whole
    @pytest.mark.parametrize(("said", "error", "words"), REFUSED)
    def test_before_it_is_paid(self, said, error, words, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="panel", eps=1)
        frame = panel(51).assign(z=1.0).astype({"sex": "string"})  # objects of pandas 2 may be anything
        d = dataset(frame, ledger=ledger, keys={"year": [1980, 1983, 1987]}, missing={"region": ["gone"]})
        with pytest.raises(error, match=words) as raised:
            d.change(**{"column": "y", "rows": 1, "eps": 1, **WAVES, **said})
        assert ledger.remaining().eps == 1
        assert "13.5" not in str(raised.value)

    def test_a_wave_that_nobody_is_in_is_no_error_without_declared_keys(self):
        """Whether there is such a wave is a fact of the data."""
        found = dataset(panel(52)).change("y", rows=1, eps=1, wave="year", from_=1980, to=1999)
        assert -10 <= found.value <= 10

    def test_people_must_be_declared(self):
        with pytest.raises(ParameterError, match="pass person="):
            panel(53).dprisk.change("y", eps=1, bounds=(-1, 1), **WAVES)
        found = panel(53).dprisk.change("y", eps=1, bounds=(-1, 1), person="pid", rows=1, **WAVES)
        assert found.unit == "pid"

    def test_other_statistics_are_about_others(self):
        d = dataset(panel(54))
        other = ("change", {**WAVES, "to": 1983})
        for specs in (["mean", ("change", WAVES)], [other, ("change", WAVES)]):
            with pytest.raises(ParameterError, match="ask it alone"):
                d.agg({"y": specs}, rows=1, eps=1)
        for parameters in ({}, {"wave": "year"}, {**WAVES, "q": 1}):
            with pytest.raises(PdriskError, match="a change is"):
                d.agg({"y": [("change", parameters)]}, rows=1, eps=1)
