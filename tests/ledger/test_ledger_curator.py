"""What a ledger keeps for the curator, against what really happens when each person is taken out."""

import itertools
import math
import threading
import time
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import ledgers
import pdrisk
from ledgers import tables
from noisy_answers import HI, LO, STATISTICS
from oracle import DEFINITIONS, fractions
from pdrisk import Dataset
from pdrisk._model.arguments import statistic
from pdrisk._model.unit import Unit

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = {"bounds": (LO, HI)}
CURATOR = {"policy": {"curators": ["ann"]}}
PERSON = {"person": "pid", "per_person": "one"}
LABELS = {"quantile": "quantile(0.9)", "var0": "var(ddof=0)", "var1": "var", "std0": "std(ddof=0)", "std1": "std"}
KEYS = {None: None, "all": ["a", "b", "c"], "some": ["c", "a", "nobody"]}
FILTERS = {None: lambda df: df["pid"] >= 0, "z > 0": lambda df: df["z"] > 0, "x < 5": lambda df: df["x"] < 5}
STATISTIC = {name: statistic((method, parameters)) for name, (method, parameters, *_) in STATISTICS.items()}
ENDS = fractions((LO, HI))


def sample(n, seed, repeated=False):
    """With values outside of the bounds, equal ones, and missing ones."""
    draw = np.random.default_rng([seed, n])
    frame = pd.DataFrame({"pid": np.arange(n) // (2 if repeated else 1) + 7, "z": draw.integers(-2, 4, n)})
    for column in "xy":
        frame[column] = draw.choice([-3, 1, 1.1, 2, 2.5, 3.7, 4, 4, 6.9, 7, 99, math.nan], n)
    return frame.assign(g=draw.choice(["a", "b", "c", "c", None], n)).astype({"g": "string"})


def removed(frame, lines, keys, where):
    """For each person ``sum of eps |f(D) - f(D - x)| / GS`` over lines ``(column, name, eps)`` and groups."""
    used = frame[FILTERS[where](frame)]
    groups = [used] if keys is None else [used[used["g"] == key] for key in keys]
    losses = dict.fromkeys(frame["pid"].tolist(), 0.0)
    for group, (column, name, eps) in itertools.product(groups, lines):
        known = group[group[column].notna()]
        records, people = fractions(known[column].clip(LO, HI)), known["pid"].tolist()
        for gone in {*people}:
            rest = tuple(x for x, pid in zip(records, people, strict=True) if pid != gone)
            change = DEFINITIONS[LABELS.get(name, name)].change(records, rest, *ENDS)
            losses[gone] += eps * change / STATISTICS[name][3]
    return losses


def request(lines):
    """As ``agg`` takes it."""
    made = {}
    for column, name, _ in lines:
        parameters = STATISTICS[name][1]
        label = f"quantile({parameters['q']})" if name == "quantile" else LABELS.get(name, name)
        made.setdefault(column, []).append(label)
    return made


def ask(frame, lines, keys, where, ledger, of_people=True, **said):
    """By Laplace noise of the statistics' own sensitivities."""
    d = Dataset(frame, ledger=ledger, **PERSON) if of_people else frame.dprisk
    options = {"eps": sum(eps for *_, eps in lines), "where": where, "ledger": ledger, "mechanism": "laplace"} | said
    if keys is not None:
        options |= {"by": "g", "keys": keys}
    if len(lines) > 1:
        return d.agg(request(lines), **BOUNDS, **options)
    ((column, name, _),) = lines
    method, parameters, *_ = STATISTICS[name]
    return getattr(d, method)(column, **parameters, **({} if method == "count" else BOUNDS), **options)


SHAPES = list(itertools.product(KEYS, FILTERS))
AGGS = {
    "two statistics": [("x", "mean", 0.5), ("x", "max", 0.5)],
    "two columns": [("x", "median", 0.5), ("y", "sum", 0.5)],
    "counts": [("x", "count", 1.0), ("y", "count", 1.0)],
    "many": [(column, name, 0.25) for column in "xy" for name in ("mean", "std1", "min", "median")],
}


class TestOdometer:
    """The loss of each person is that of the brute force: never less, never more than was paid."""

    def assert_right(self, ledger, frame, expected, paid, slack=1e-7):
        table = ledger.odometer(frame)
        found, expected = table["loss"].to_numpy(), np.array(expected)
        assert (found >= expected - 1e-12).all() and (found <= paid + 1e-12).all()
        np.testing.assert_allclose(found, expected, atol=slack)
        np.testing.assert_allclose(table["two_worlds"], 1 / (1 + np.exp(-found)))
        assert table.index.tolist() == frame["pid"].tolist()

    def assert_each(self, book, lines, keys, where, seeds):
        """Of several answers, each about other people: few of them, and a dozen."""
        ledger, frames, expected = book(**CURATOR), [], []
        for seed in seeds:
            frame = sample(seed if seed < 5 else 3 * seed - 12, seed)
            frame["pid"] += 100 * seed
            ask(frame, lines, KEYS[keys], where, ledger)
            expected += removed(frame, lines, KEYS[keys], where).values()
            frames.append(frame)
        self.assert_right(ledger, pd.concat(frames), expected, sum(eps for *_, eps in lines))

    @pytest.mark.sampled(11)
    @pytest.mark.parametrize("name", STATISTICS)
    @pytest.mark.parametrize(("keys", "where"), SHAPES, ids=[f"{keys} keys, {where}" for keys, where in SHAPES])
    def test_each_statistic(self, book, name, keys, where):
        self.assert_each(book, [("x", name, 0.5)], keys, where, range(9))

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("lines", AGGS.values(), ids=AGGS.keys())
    @pytest.mark.parametrize(("keys", "where"), SHAPES, ids=[f"{keys} keys, {where}" for keys, where in SHAPES])
    def test_agg(self, book, lines, keys, where):
        self.assert_each(book, lines, keys, where, [1, 5, 8])

    def test_answers_add(self, book):
        """Of other rows, in other orders, with other filters."""
        frame, ledger, expected = sample(14, 9), book(**CURATOR), np.zeros(14)
        for name, keys, where in (("mean", None, None), ("sum", "all", "z > 0"), ("max", "some", "x < 5")):
            part = frame.sample(frac=1, random_state=3)[: 10 if name == "mean" else 14]
            lines = [("x", name, 0.5)]
            ask(part, lines, KEYS[keys], where, ledger)
            own = removed(part, lines, KEYS[keys], where)
            expected += [own.get(pid, 0) for pid in frame["pid"]]
        self.assert_right(ledger, frame, expected, 1.5)
        assert ledger.odometer([20, 7])["loss"].tolist() == ledger.odometer(frame)["loss"].loc[[20, 7]].tolist()

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("name", STATISTICS)
    @pytest.mark.parametrize("keys", KEYS)
    def test_people_with_several_rows(self, book, name, keys):
        """How far the answers move when all their rows are taken out, as a share of how far they could."""
        lines, where = [("x", name, 0.5)], "z > 0"
        several = {"rows": 2} | ({} if keys is None else {"groups": 2})
        for seed in range(4):
            frame, ledger = sample(12, seed, repeated=True), book(dataset=f"{seed}", **CURATOR)
            ask(frame, lines, KEYS[keys], where, ledger, **several)
            weight = float(Unit(("pid",), **several).weight_of(STATISTIC[name], "laplace", Fraction(1, 2)))
            brute = removed(frame, lines, KEYS[keys], where)
            for pid, loss in ledger.odometer(frame["pid"].unique())["loss"].items():
                assert loss == pytest.approx(brute[pid] / weight, abs=1e-7)
                assert brute[pid] / weight - 1e-12 <= loss <= 0.5

    def test_missing_codes(self, book):
        frame = sample(12, 3)
        coded = frame.fillna({"x": -9}).dprisk.declare(missing={"x": [-9]})
        ledger = book(**CURATOR)
        ask(coded, [("x", "mean", 0.5)], None, None, ledger)
        expected = removed(frame, [("x", "mean", 0.5)], None, None)
        self.assert_right(ledger, frame, [*expected.values()], 0.5)

    @pytest.mark.parametrize(
        ("method", "options", "loss"),
        [
            ("mean", {"bounds": (LO, HI)}, lambda x: 0.5),
            ("count", {}, lambda x: 0.5),
            ("sum", {"bounds": (LO, HI), "step": 1}, lambda x: 0.5 * x / HI),
        ],
    )
    def test_accurate_mechanisms(self, book, method, options, loss):
        """A mean from two sums is of everybody alike: whoever is in it loses eps, whatever their value."""
        ledger, frame = book(**CURATOR), pd.DataFrame({"pid": range(6), "x": [1.0, 2, 4, 7, 99, math.nan]})
        d = Dataset(frame, ledger=ledger, **PERSON)
        getattr(d, method)("x", eps=0.5, where="pid > 0", **options)
        expected = [0, *(loss(x) for x in (2, 4, 7, HI)), 0]
        np.testing.assert_allclose(ledger.odometer(frame)["loss"], expected)
        assert ledger.facts()["loss"].tolist() == [0.5]

    @pytest.mark.slow
    def test_many_people(self, book):
        n = 200_000
        frame = pd.DataFrame({"pid": np.arange(n), "x": np.arange(n) % 7 + 1.0})
        ledger, start = book(**CURATOR), time.perf_counter()
        for _ in range(3):
            ask(frame, [("x", "sum", 0.5)], None, None, ledger, fresh=True)
        np.testing.assert_allclose(ledger.odometer(frame)["loss"], 1.5 * frame["x"] / 7, rtol=1e-12)
        assert time.perf_counter() - start < 10


UNKNOWN = {
    "sql": lambda d, df: d.sql("SELECT AVG(x) FROM data", eps=0.5, **BOUNDS),
    "without the Dataset": lambda d, df: df.dprisk.mean("x", eps=0.5, ledger=d.ledger, **PERSON, **BOUNDS),
    "failed": lambda d, df: d.count(where=lambda frame: 1 / 0, eps=0.5),
    "bounds that were not found": lambda d, df: d.suggest_bounds("x", eps=0.5),
}
OF_ROWS = {
    "a series": lambda d, df: df["x"].dprisk.mean(eps=0.5, ledger=d.ledger, **BOUNDS),
    "a frame": lambda d, df: df.dprisk.mean("x", eps=0.5, ledger=d.ledger, **BOUNDS),
    "a Dataset without people": lambda d, df: Dataset(df, ledger=d.ledger).mean("x", eps=0.5, **BOUNDS),
    "sql": lambda d, df: pdrisk.sql("SELECT AVG(x) FROM df", eps=0.5, ledger=d.ledger, df=df, **BOUNDS),
}


class TestInFull:
    """Whatever the ledger does not know counts in full, for everybody, for those it never saw as well."""

    @pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN.keys())
    def test_unknown(self, book, unknown):
        frame, ledger = sample(8, 3), book(**CURATOR)
        ask(frame, [("x", "sum", 0.25)], None, None, ledger)
        before = ledger.odometer([*frame["pid"], 999])["loss"]
        try:
            unknown(Dataset(frame, ledger=ledger, **PERSON), frame)
        except (pdrisk.QueryFailedError, pdrisk.BoundsNotFoundError):
            pass
        after = ledger.odometer([*frame["pid"], 999])["loss"]
        np.testing.assert_allclose(after, before.fillna(0) + 0.5)
        assert np.isnan(before[999])  # nobody asked about this person yet

    @pytest.mark.parametrize("asked", OF_ROWS.values(), ids=OF_ROWS.keys())
    def test_a_question_of_rows_is_refused(self, book, asked):
        """Its eps would be that of a row, of which the budget's people may have several: two units in one budget."""
        frame, ledger = sample(8, 3, repeated=True), book(**CURATOR)
        d = Dataset(frame, ledger=ledger, person="pid")
        with pytest.raises(pdrisk.ParameterError, match=r"does not say who a person is.*pass person='pid'"):
            asked(d, frame)
        assert ledger.remaining().spent == 0

    def test_columns_of_people_in_another_order(self, book):
        """Together they say who a person is, whichever is named first."""
        frame, ledger = sample(8, 3), book(**CURATOR)
        Dataset(frame, ledger=ledger, person=["pid", "z"], per_person="one").count(eps=0.25)
        Dataset(frame, ledger=ledger, person=["z", "pid"], per_person="one").count(eps=0.25)
        frame.dprisk.count(eps=0.25, ledger=ledger, person=["z", "pid"])
        assert ledger.remaining().spent == 0.75
        with pytest.raises(pdrisk.ParameterError, match="a budget holds for one kind of person"):
            frame.dprisk.count(eps=0.25, ledger=ledger, person=["z", "g"])

    def test_before_people_were_declared(self, book):
        frame, ledger = sample(8, 3), book(**CURATOR)
        ask(frame, [("x", "mean", 0.5)], None, None, ledger, of_people=False)
        assert ledger.odometer([7, 8])["loss"].tolist() == [0.5, 0.5]
        Dataset(frame, ledger=ledger, **PERSON)
        assert set(ledger.odometer(frame)["loss"]) == {0.5}

    def test_in_a_block(self, book):
        """A Dataset without a ledger of its own tells the one that pays who its people are."""
        frame, ledger = sample(8, 3), book(**CURATOR)
        with ledger:
            Dataset(frame, **PERSON).count(eps=0.5, where="pid > 10")
        assert ledger.odometer(frame)["loss"].tolist() == [0.5 * (pid > 10) for pid in frame["pid"]]

    def test_a_least_group(self, book):
        frame, ledger = sample(8, 3), book(policy=CURATOR["policy"] | {"least_group": {"size": 2, "eps": 0.25}})
        lines = [("x", "mean", 0.5)]
        ask(frame, lines, None, None, ledger)
        expected = [0.25 + loss for loss in removed(frame, lines, None, None).values()]
        np.testing.assert_allclose(ledger.odometer(frame)["loss"], expected)
        assert (ledger.facts()["loss"] <= 0.75).all() and (ledger.facts()["loss"] >= max(expected) - 1e-12).all()

    def test_remembered(self, book):
        """Adds nothing; asked anew, it adds."""
        frame = sample(8, 3)
        ledger, lines = book(**CURATOR), [("x", "mean", 0.5)]
        ask(frame, lines, None, None, ledger)
        once = ledger.odometer(frame)["loss"]
        ask(frame, lines, None, None, ledger)
        pd.testing.assert_series_equal(ledger.odometer(frame)["loss"], once)
        ask(frame, lines, None, None, ledger, fresh=True)
        np.testing.assert_allclose(ledger.odometer(frame)["loss"], 2 * once)
        assert len(ledger.facts()) == 2

    def test_people_who_cannot_be_told_apart(self, book, monkeypatch):
        """Under another secret nobody is who they were: no loss may be lost for that."""
        frame, lines = sample(8, 3), [("x", "max", 0.5)]
        ledger = book(**CURATOR)
        ask(frame, lines, None, "z > 0", ledger)
        true = np.array([*removed(frame, lines, None, "z > 0").values()])
        monkeypatch.setenv("PDRISK_SECRET", "another")
        assert (ledger.odometer(frame)["loss"].to_numpy() >= true - 1e-12).all()
        ask(frame, lines, None, "z > 0", ledger)
        assert (ledger.odometer(frame)["loss"].to_numpy() >= 2 * true - 1e-12).all()

    def test_another_column_of_people(self, book):
        """The budget is that of one kind of person, whichever Dataset spends it."""
        frame, ledger = sample(8, 3).assign(other=1), book(**CURATOR)
        Dataset(frame, ledger=ledger, **PERSON)
        others = Dataset(frame, person="other", per_person="one")
        for call in (lambda: others.count(eps=1, ledger=ledger), lambda: others.sql("SELECT 1", eps=1, ledger=ledger)):
            with pytest.raises(pdrisk.ParameterError, match=r"by column 'pid', not 'other'"):
                call()
        assert ledger.remaining().spent == 0


DAYS = pd.date_range("2020", periods=4)
IDS = {  # how the people 0 to 3 are called in two frames
    "floats": ([0, 1, 2, 3], [0.0, 1.0, 2.0, 3.0]),
    "texts": ([0, 1, 2, 3], ["0", "1", "2", "3"]),
    "small": ([0, 1, 2, 3], np.arange(4, dtype=np.int8)),
    "nullable": ([0, 1, 2, 3], pd.array([0, 1, 2, 3], dtype="Int64")),
    "nullable floats": ([0, 1, 2, 3], pd.array([0, 1, 2, 3], dtype="Float64")),
    "categories": (["0", "1", "2", "3"], pd.Categorical([0, 1, 2, 3])),
    "objects": ([0, 1, 2, 3], pd.Series([0, "1", 2.0, np.int8(3)], dtype=object)),
    "one without a number": ([0, 1, 2, "x"], pd.Series([0.0, 1.0, 2.0, "x"], dtype=object)),
    "one between": ([0, 1, 2, 3.5], [0.0, 1.0, 2.0, 3.5]),
    "great numbers": ([2**60, 2**61, 2**62, 1], [2.0**60, 2.0**61, 2.0**62, 1.0]),
    "names": (["ann", "bob", "", "b b"], pd.Series(["ann", "bob", "", "b b"], dtype="string")),
    "times": (pd.Series(DAYS), pd.Series([*DAYS], dtype=object)),
    "units of time": (
        pd.Series(DAYS), pd.Series(DAYS).astype("datetime64[s]")
    ),
}  # fmt: skip


class TestPeople:
    """A person is the same, however their id is stored; whose id is missing is nobody."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("swapped", [False, True])
    @pytest.mark.parametrize("pair", IDS.values(), ids=IDS.keys())
    def test_one_person(self, book, pair, swapped):
        ledger = book(**CURATOR)
        for ids in reversed(pair) if swapped else pair:
            frame = pd.DataFrame({"pid": ids, "x": 2.0})
            Dataset(frame, ledger=ledger, **PERSON).count(eps=0.5, fresh=True)
            for few in (frame, frame[:1], frame[-1:]):  # alone, they may look different
                assert set(ledger.odometer(few)["loss"]) == {ledger.remaining().spent}
        assert set(ledger.odometer(list(pair[0]))["loss"]) == {1.0}

    def test_people_who_look_alike(self, book):
        """They are one to the ledger, which loses no less than the answer moves without both: here by 6 of 10."""
        frame = pd.DataFrame({"pid": pd.Series([7, "7", 8], dtype=object), "x": [7.0, 7, 1]})
        ledger = book(**CURATOR)
        Dataset(frame, ledger=ledger, **PERSON).max("x", eps=0.5, bounds=(0, 10), mechanism="laplace")
        both, other = ledger.odometer([7, 8])["loss"]
        assert 0.5 * 6 / 10 <= both <= 2 * 0.5 and other == 0

    def test_times_of_day(self, book):
        """Dates stay what they are beside a time of day."""
        ledger, days = book(**CURATOR), pd.Series(DAYS)
        for ids in (days, pd.concat([days, days + pd.Timedelta(hours=12)])):
            Dataset(pd.DataFrame({"pid": ids}), ledger=ledger, **PERSON).count(eps=0.5)
        assert ledger.odometer(days)["loss"].tolist() == [1.0] * 4

    @pytest.mark.parametrize(
        "ids",
        [
            [7, None, 8, None], [7.0, math.nan, 8.0, math.nan], pd.array([7, None, 8, None], dtype="Int64"),
            pd.Categorical(["7", None, "8", None]), pd.Series(["7", None, "8", math.nan], dtype=object),
        ],
        ids=["None", "NaN", "NA", "category", "object"],
    )  # fmt: skip
    def test_missing(self, book, path, ids):
        frame, ledger = pd.DataFrame({"pid": ids, "x": 2.0}), book(**CURATOR)
        Dataset(frame, ledger=ledger, **PERSON).count(eps=0.5)
        table = ledger.odometer(frame)
        assert tables(path, "SELECT length(people), length(losses) FROM curator_people") == [(16, 16)]
        np.testing.assert_array_equal(table["loss"], [0.5, math.nan, 0.5, math.nan])
        np.testing.assert_array_equal(table["two_worlds"].isna(), [False, True, False, True])

    @pytest.mark.slow
    def test_the_same_in_all_processes(self, book, path):
        book(**CURATOR)
        text = """
            frame = pd.DataFrame({"pid": ["ann", "bob"], "x": [1, 2]})
            d = pdrisk.Dataset(frame, name="survey", ledger=sys.argv[1], person="pid", per_person="one")
            d.count(eps=1, where="x > 1")
        """
        ledgers.script(text, path)
        assert book().odometer(["ann", "bob"])["loss"].tolist() == [0, 1]

    def test_threads(self, book):
        frame, ledger = sample(8, 3), book(**CURATOR)
        ways = [
            threading.Thread(
                target=ask, args=(frame, [("x", "count", 0.5)], None, None, ledger), kwargs={"fresh": True}
            )
            for _ in range(8)
        ]
        for thread in ways:
            thread.start()
        for thread in ways:
            thread.join()
        expected = frame["x"].notna() * 4.0
        assert ledger.odometer(frame)["loss"].tolist() == expected.tolist()

    def test_a_frame_without_ids(self, book):
        frame, ledger = sample(8, 3), book(**CURATOR)
        with pytest.raises(pdrisk.UnknownColumnError, match=r"^no column of ids was declared: .*Pass a frame"):
            ledger.odometer(frame)
        Dataset(frame, ledger=ledger, **PERSON)
        with pytest.raises(pdrisk.UnknownColumnError, match=r"^the frame has no column 'pid': .* or a list of ids"):
            ledger.odometer(frame[["x"]])

    @pytest.mark.parametrize(
        ("people", "error"),
        [
            (pd.DataFrame({"x": [1]}), pdrisk.UnknownColumnError), ("ann", pdrisk.ColumnTypeError),
            (7, pdrisk.ColumnTypeError), (None, pdrisk.ColumnTypeError),
        ],
        ids=str,
    )  # fmt: skip
    def test_what_are_no_people(self, book, people, error):
        with pytest.raises(error):
            book(**CURATOR).odometer(people)


class TestFacts:
    """The loss of the most exposed group is eps LS / GS, added over the lines: never less than any person's."""

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("name", STATISTICS)
    @pytest.mark.parametrize("keys", KEYS)
    def test_each_statistic(self, book, name, keys):
        ledger = book(policy={"curator_facts": True, "curators": ["ann"]})
        for n, seed in ((0, 0), (1, 1), (2, 2), (6, 3)):
            frame = sample(n, seed)
            ask(frame, [("x", name, 0.5)], KEYS[keys], None, ledger, of_people=False)
            groups = [frame] if keys is None else [frame[frame["g"] == key] for key in KEYS[keys]]
            records = [fractions(group["x"].dropna().clip(LO, HI)) for group in groups]
            definition = DEFINITIONS[LABELS.get(name, name)]
            local = [definition.local_sensitivity(each, *ENDS, fractions(range(1, 8))) for each in records]
            fact = ledger.facts().iloc[-1]
            assert fact["loss"] == pytest.approx(0.5 * max(local) / STATISTICS[name][3], rel=1e-9)
            assert fact["local_sensitivity"] == pytest.approx([max(local)]) and fact["n"] == [min(map(len, records))]

    @pytest.mark.parametrize("lines", AGGS.values(), ids=AGGS.keys())
    @pytest.mark.parametrize("keys", KEYS)
    def test_agg(self, book, lines, keys):
        """The groups' own sums are compared, not the largest of each line added."""
        frame, ledger = sample(12, 8), book(**CURATOR)
        answer = ask(frame, lines, KEYS[keys], None, ledger, curator=True)
        whole = np.repeat([STATISTICS[name][3] for _, name, _ in lines], len(answer) // len(lines))
        shares = answer["eps"] * answer["local_sensitivity"] / whole
        (fact,) = ledger.facts().to_dict("records")
        assert fact["loss"] == pytest.approx((shares.groupby("g").sum() if keys else pd.Series(shares.sum())).max())
        assert ledger.odometer(frame)["loss"].max() <= fact["loss"] + 1e-12 <= fact["eps"] + 2e-12

    def test_the_table(self, book, path, tmp_path):
        frame, ledger = sample(12, 8), book(eps=2)
        ask(frame, [("x", "mean", 0.5)], None, None, ledger, of_people=False)
        ledger.amend(policy={"curator_facts": True, "curators": ["ANN "]})
        with pytest.raises(pdrisk.BudgetExceededError):
            frame.dprisk.count(eps=2, ledger=ledger)
        text = "SELECT AVG(x) FROM t WHERE z > 0"
        pdrisk.sql(text, eps=1, mechanism="laplace", ledger=ledger, t=frame, **BOUNDS)
        ask(frame, [("x", "count", 0.25)], KEYS["all"], None, ledger, of_people=False)
        table = ledger.facts()
        assert table["query"].iloc[[0, 2]].tolist() == ["mean(x)", "count(x) by g"]
        assert table["known"].tolist() == [False, True, True] and table["loss"].iloc[0] == 0.5
        assert table["loss"].iloc[2] == 0.25 and 0 < table["loss"].iloc[1] < 1
        np.testing.assert_allclose(table["total"], table["loss"].cumsum())
        np.testing.assert_allclose(table["two_worlds"], 1 / (1 + np.exp(-table["total"])))
        assert table.attrs == {"dprisk": '{"exact": true}'} and table.index.tolist() == [2, 5, 6]
        assert "loss" not in ledger.export(tmp_path / "all.csv").read_text()
        assert tables(path, "SELECT count(*) FROM curator_people") == [(0,)]

    def test_people_with_several_rows(self, book):
        """Three records of 2 move a sum by 6 of the 24 that three of 8 could; somebody new could move it by all."""
        frame, ledger = pd.DataFrame({"pid": [1, 1, 1, 2], "x": [2.0, 2, 2, 1]}), book(eps=9, **CURATOR)
        Dataset(frame, ledger=ledger, person="pid").sum("x", eps=0.5, bounds=(0, 8), rows=3)
        assert ledger.facts()["loss"].tolist() == [0.5]
        assert ledger.odometer(frame)["loss"].tolist() == [0.5 * 6 / 24] * 3 + [0.5 / 24]

    def test_nothing_is_kept_unasked(self, book, path):
        frame = sample(12, 8)
        Dataset(frame, ledger=book()).mean("x", eps=0.5, **BOUNDS)
        assert [tables(path, f"SELECT * FROM curator_{name}") for name in ("releases", "people")] == [[], []]

    def test_a_copy_that_was_changed(self, book, path):
        frame, ledger = sample(12, 8), book(**CURATOR)
        ask(frame, [("x", "mean", 0.5)], None, None, ledger)
        tables(path, "UPDATE curator_people SET losses = x'0000000000000000'")
        with pytest.raises(pdrisk.LedgerError, match="damaged"):
            ledger.odometer(frame)

    def test_people_with_several_rows_are_counted_once(self, book):
        """For the least group, all rows of a person move the number of people by one."""
        policy = CURATOR["policy"] | {"least_group": {"size": 3, "eps": 1}}
        frame, ledger = pd.DataFrame({"pid": [0] * 6 + [1], "x": 1.0}), book(eps=9, policy=policy)
        Dataset(frame, ledger=ledger, person="pid").count(eps=0.5, rows=6)
        assert ledger.odometer(frame)["loss"].tolist() == [1.5] * 6 + [1 + 0.5 / 6]
        assert ledger.facts()["loss"].tolist() == [1.5]
