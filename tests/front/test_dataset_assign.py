"""``d.assign(name=expression)`` adds columns that each record's own values decide, computed after payment."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import SURE, asked, events
from pdrisk import Dataset

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

N = np.arange(90)
FRAME = pd.DataFrame(
    {
        "pid": N, "birth": 1950 + N * 7 % 50, "hours": np.where(N % 11 == 0, np.nan, N % 9), "sex": N % 2,
        "region": np.where(N % 3 == 0, "north", "south"),
        "few": pd.array(np.where(N % 13 == 0, None, N % 4), dtype="Int8"),
        "member": N % 5 == 0, "code": np.where(N % 10 == 0, -1, N % 10),
    }
)  # fmt: skip
KINDS = {  # an expression, and the same by pandas
    "birth // 10 * 10": lambda df: df["birth"] // 10 * 10,
    "-hours + birth / 2": lambda df: -df["hours"] + df["birth"] / 2,
    "few * 3 + hours": lambda df: df["few"].astype("Float64") * 3 + df["hours"],
    "member + 1": lambda df: df["member"] + 1,
    "birth": lambda df: df["birth"],
    "hours > 4": lambda df: df["hours"] > 4,
    "few > 1 or member": lambda df: (df["few"] > 1) | df["member"],
    "region == 'north' and not member": lambda df: (df["region"] == "north") & ~df["member"],
    "member": lambda df: df["member"],
    "code": lambda df: df["code"].where(df["code"] != -1),
    "code + few": lambda df: df["code"].where(df["code"] != -1) + df["few"].astype("Float64"),
}


@pytest.fixture(params=[False, True], ids=["in one piece", "in pieces"])
def pieces(request, monkeypatch):
    if request.param:
        monkeypatch.setattr("pdrisk.engines.numpy.derived.PIECE", 7)


class TestValues:
    """The answers are those of a frame that has the column."""

    @pytest.mark.parametrize("expression", KINDS)
    def test_as_by_pandas(self, pieces, expression):
        d = Dataset(FRAME, missing={"code": [-1]}).assign(new=expression)
        # Of nullable columns, beside which a missing value is unknown in pandas, too.
        new = pd.Series(KINDS[expression](FRAME.astype({"hours": "Float64"}))).astype("Float64")
        new = new.to_numpy(dtype=float, na_value=np.nan)
        parts = {None: new == new, "sex == 1": FRAME["sex"] == 1}
        if d._frame["new"].dtype != "boolean":
            parts["new > 2"] = new > 2
        for part, mine in parts.items():
            options = {"eps": SURE * 1000, "where": part}
            kept = new[mine & ~np.isnan(new)]
            assert d.count("new", **options).value == pytest.approx(len(kept), abs=0.01)
            assert d.sum("new", bounds=(-3000, 3000), **options).value == pytest.approx(kept.sum(), abs=0.01)
        keys = [True, False, None] if d._frame["new"].dtype == "boolean" else [1, 1950, 1960, None]
        table = d.sum("birth", bounds=(0, 3000), eps=SURE * 1000, by="new", keys=keys)
        for key, value in zip(keys, table["value"], strict=True):
            mine = np.isnan(new) if key is None else new == key
            assert value == pytest.approx(FRAME["birth"][mine].sum(), abs=0.01)

    @pytest.mark.parametrize("source", ["frame", "table"])
    def test_whole_keys_stay_as_they_are_listed(self, source):
        con = duckdb.connect()
        con.register("people", FRAME[["birth", "region"]])
        d = Dataset(FRAME if source == "frame" else con.table("people")).assign(decade="birth // 10 * 10")
        keys, regions = [1980, 1950, 1890, 1960], ["south", "north"]
        decades = FRAME["birth"] // 10 * 10
        one = d.count(by="decade", keys=keys, eps=SURE * 1000)
        assert one.index.equals(pd.Index(keys, name="decade")) and one.index.dtype == np.int64
        assert one["value"].tolist() == [(decades == key).sum() for key in keys]
        pairs = d.agg({"birth": ["mean"]}, by=["region", "decade"], bounds=(1900, 2000), eps=SURE * 1000,
                      keys={"region": regions, "decade": keys[:2]})  # fmt: skip
        assert pairs.index.names == ["column", "statistic", "region", "decade"]
        assert [key[2:] for key in pairs.index] == [(region, key) for region in regions for key in keys[:2]]
        assert pairs.index.get_level_values("decade").dtype == np.int64
        for (region, decade), value in zip((key[2:] for key in pairs.index), pairs["value"], strict=True):
            mine = (FRAME["region"] == region) & (decades == decade)
            assert value == pytest.approx(FRAME["birth"][mine].mean(), abs=0.01)
        for others in ([1950.0, 1960], [1950, 2**60], [1950, None], "observed"):
            assert d.count(by="decade", keys=others, eps=SURE).index.dtype != np.int64

    def test_one_after_the_other(self):
        d = (
            Dataset(FRAME)
            .assign(age="2020 - birth")
            .assign(half="age / 2", birth="birth - 1900")
            .assign(twice="birth * 2")
        )
        means = [d.mean(column, eps=SURE * 100, bounds=(0, 300)).value for column in ("age", "half", "birth", "twice")]
        birth = FRAME["birth"].mean()
        assert means == pytest.approx([2020 - birth, 1010 - birth / 2, birth - 1900, 2 * birth - 3800], abs=0.01)

    def test_replaced_again(self):
        d = Dataset(FRAME).assign(birth="birth - 1900").assign(birth="birth * 2").assign(birth="birth + 1")
        found = d.query("birth > 101").mean("birth", eps=SURE * 100, bounds=(0, 300)).value
        expected = (FRAME["birth"] - 1900) * 2 + 1
        assert found == pytest.approx(expected[expected > 101].mean(), abs=0.01)

    def test_what_was_selected_before(self):
        """``query`` and ``assign`` in either order, and functions that see the new column."""
        first = Dataset(FRAME).query("sex == 1").assign(decade="birth // 10")
        then = Dataset(FRAME).assign(decade="birth // 10").query("sex == 1")
        mine = FRAME["birth"][FRAME["sex"] == 1] // 10 > 196
        for d in (first, then):
            found = [d.query("decade > 196").count(eps=SURE), d.count(eps=SURE, where=lambda df: df["decade"] > 196)]
            assert [each.value for each in found] == pytest.approx([mine.sum()] * 2, abs=0.01)

    def test_the_curators_views(self):
        d, frame = Dataset(FRAME).assign(age="2020 - birth"), FRAME.assign(age=2020.0 - FRAME["birth"])
        asks = [
            lambda a: a.assess("age", bounds=(0, 100)), lambda a: a.individual_risk("age", eps=1, bounds=(0, 100)),
            lambda a: a.epsilon_for("age", risk=0.7, metric="two_worlds", bounds=(0, 100)),
            lambda a: a.identifiability("age", eps=1, bounds=(0, 100)).exact,
            lambda a: a.query("age > 40").assess("age", bounds=(0, 100)) if a is d else
            a.assess("age", bounds=(0, 100), where="age > 40"),
        ]  # fmt: skip
        for ask in asks:
            one, other = ask(d), ask(frame.dprisk)
            assert one.equals(other) if hasattr(one, "equals") else one == other

    def test_suggested_bounds(self):
        frame = pd.DataFrame({"x": [42.0] * 500 + [7.0] * 500})
        d = Dataset(frame).assign(double="x * 2").query("double > 20")
        found = [tuple(d.suggest_bounds("double", eps=9)) for _ in range(9)]  # one in 150 is wider, by its noise
        assert found.count((64, 128)) >= 5

    def test_the_frame_stays(self):
        Dataset(FRAME).assign(birth="birth - 1900").mean("birth", eps=1, bounds=(0, 100))
        assert FRAME["birth"].min() == 1950


class TestDeclarations:
    """What was declared of a column does not hold for what replaces it."""

    def test_dropped(self):
        d = Dataset(FRAME, bounds={"birth": (1950, 2000), "hours": (0, 9)}, missing={"code": [-1]})
        assert d.assign(age="2020 - birth").mean("birth", eps=SURE).bounds == (1950, 2000)
        new = d.assign(birth="2020 - birth", code="code * 1")
        with pytest.raises(pdrisk.ParameterError, match="needs bounds"):
            new.mean("birth", eps=1)
        assert new.mean("hours", eps=SURE).bounds == (0, 9)
        assert new.count("code", eps=SURE).value == pytest.approx((FRAME["code"] != -1).sum(), abs=0.01)
        assert new.count(eps=SURE, where="code == -1").value == pytest.approx(0, abs=0.01)
        assert d.mean("birth", eps=SURE).bounds == (1950, 2000)
        with pytest.raises(pdrisk.ParameterError, match="needs bounds"):
            Dataset(FRAME, bounds={"birth": (1950, 2000)}).assign(birth="2020 - birth").mean("birth", eps=1)

    def test_by_a_pattern(self):
        pa = pytest.importorskip("pandera.pandas")
        schema = pa.DataFrameSchema({"bir.*": pa.Column(int, pa.Check.in_range(1900, 2020), regex=True)})
        d = Dataset(FRAME, schema=schema)
        assert d.assign(age="2020 - birth").mean("birth", eps=SURE).bounds == (1900, 2020)
        with pytest.raises(pdrisk.ParameterError, match="columns like 'birthday'"):
            d.assign(birthday="birth * 1000")


REFUSED = {
    "a mean": ("birth - birth.mean()", "may look at other records"),
    "a shift": ("birth.shift(1)", "may look at other records"),
    "the index": ("index + 1", "is the index"),
    "text": ("region", "derived columns hold numbers or truth values"),
    "text and numbers": ("region * 2", "arithmetic takes numbers"),
    "a constant": ("3", "names no column"),
    "a variable": ("birth + @limit", "no variable"),
    "nothing": ("", "it is empty"),
    "an unknown column": ("birht + 1", "Did you mean 'birth'"),
    "division by zero": ("birth / 0", "divides by zero"),
    "a function": (lambda df: df["birth"], "must be an expression as text"),
    "a column": (FRAME["birth"], "must be an expression as text"),
    "a number": (3, "must be an expression as text"),
}


class TestWhatIsRefused:
    """Whatever is not row-wise, and what would change people or a selection."""

    @pytest.mark.parametrize(("expression", "words"), REFUSED.values(), ids=REFUSED)
    def test_expressions(self, expression, words):
        limit = 3
        with pytest.raises(pdrisk.PdriskError, match=words) as caught:
            Dataset(FRAME).assign(new=expression)
        assert limit and "where" not in str(caught.value).partition(":")[0]

    def test_names(self, book):
        d = Dataset(FRAME, person="pid", per_person="one").query("sex == 1")
        for name in ("pid", "sex"):
            with pytest.raises(pdrisk.ParameterError, match=f"'{name}' says who a person is, or which records"):
                d.assign(**{name: "birth * 2"})
        levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
        with pytest.raises(pdrisk.ParameterError, match="columns of one level"):
            Dataset(levels).assign(b="1")
        with pytest.raises(pdrisk.ParameterError, match=r"without what query\(\) and assign\(\) made"):
            Dataset(FRAME).assign(age="2020 - birth").sql("SELECT COUNT(*) FROM data", eps=1)


class TestUnderALedger:
    """What is asked is part of the question, and what is read are the columns that it is made of."""

    def test_remembered(self, book):
        d = Dataset(FRAME, ledger=book())
        ledger, found = d.ledger, []
        for expression in ("2020 - birth", "2021 - birth", "2020-birth", "hours * 5"):
            found.append(asked(ledger, lambda _, e=expression: d.assign(a=e).mean("a", eps=1, bounds=(0, 100))))
        assert [cost for _, cost in found] == [1, 1, 0, 1] and found[0][0] == found[2][0]
        asks = [
            lambda _: d.assign(b="2020 - birth").assign(a="b * 2").count("a", eps=1),
            lambda _: d.assign(b="2022 - birth").assign(a="b * 2").count("a", eps=1),
            lambda _: d.assign(a="2020 - birth").assign(a="a * 2").count("a", eps=1),
            lambda _: d.assign(b="2020 - birth").assign(a="b * 2", c="hours").count("a", eps=1),
        ]
        assert [asked(ledger, ask)[1] for ask in asks] == [1, 1, 1, 0]
        unused = d.assign(a="hours * 5")
        assert [asked(ledger, lambda _, e=e: e.count("birth", eps=1))[1] for e in (d, unused, d)] == [1, 0, 0]
        assert ledger.history()["query"].notna().sum() and ledger.verify()

    def test_with_codes(self, book):
        """Of other missing codes it is another question."""
        ledger = book()
        costs = [
            asked(ledger, lambda led, codes=codes: Dataset(FRAME, missing={"code": codes}, ledger=led)
                  .assign(a="code * 2").count("a", eps=1))[1]
            for codes in ([-1], [-2], [-1])
        ]  # fmt: skip
        assert costs == [1, 1, 0]

    @pytest.mark.slow
    def test_columns_that_the_owner_refuses(self, book):
        d = Dataset(FRAME, ledger=book(policy={"refuse_columns": ["birth"]}))
        part = d.assign(age="2020 - birth").assign(old="age > 50", birth="hours * 2")
        asks = [
            lambda: part.count("age", eps=1), lambda: part.count(eps=1, where="old"),
            lambda: part.query("old").count(eps=1), lambda: part.count(eps=1, by="old", keys=[True, False]),
        ]  # fmt: skip
        for ask in asks:
            with pytest.raises(pdrisk.PolicyError, match="'birth'"):
                ask()
        part.count("birth", eps=1)  # which is made of hours
        assert events(d.ledger).count("paid") == 1

    def test_nothing_is_computed_at_once(self, book, monkeypatch):
        d = Dataset(FRAME, ledger=book(eps=1))
        with monkeypatch.context() as patched:
            patched.setattr("pdrisk.engines.numpy.derived._values", lambda *_: pytest.fail("it was computed"))
            part = d.assign(age="2020 - birth").query("age > 50")
            with pytest.raises(pdrisk.BudgetExceededError):
                part.mean("age", eps=2, bounds=(0, 100))
        assert part.mean("age", eps=1, bounds=(0, 100))

    def test_losses(self, book):
        d = Dataset(FRAME, ledger=book(policy={"curators": ["ann"]}), person="pid", per_person="one")
        d.assign(old="2020 - birth > 50").count(eps=0.5, where="old")
        assert d.ledger.odometer(FRAME)["loss"].tolist() == [0.5 * (2020 - birth > 50) for birth in FRAME["birth"]]
