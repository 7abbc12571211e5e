"""What people are told of answers with several numbers: frames of ``by=``, ``agg`` and SQL."""

import math
import pickle

import numpy as np
import pandas as pd
import pyarrow as arrow
import pytest

import pdrisk
from pdrisk import ParameterError
from pdrisk._answer.words import AUDIENCES
from pdrisk._core.risks.risk import posterior
from test_explain import BOUNDS, FORBIDDEN, FRAME, OUT_OF, flat, release

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
SQL = "SELECT g, COUNT(*) AS people, SUM(x) AS total FROM t GROUP BY g"


class TestFrames:
    """Several numbers of one release: their eps adds up, but groups cost it once."""

    def test_a_release_is_told_as_by_itself(self) -> None:
        assert pdrisk.explain(release(), "analyst", 2) == release().explain("analyst", so_far=2)

    def test_several_statistics(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["sum", "count"], "y": ["count"]}, eps=3, **BOUNDS)
        said = flat(pdrisk.explain(answer, "publication"))
        assert "eps 3; sum(x), count(x) come from one release and cost its eps once, together" in said
        assert "sum(x), count(x), count(y), as published" in said
        assert "sum(x) bounds 0 to 20, declared" in said
        other = FRAME.dprisk.agg({"x": ["sum", "max"]}, eps=3, curator=True, **BOUNDS)
        curators = flat(pdrisk.explain(other, "curator"))
        assert "sum(x) global sensitivity 20" in curators and "exposed group" not in curators
        counted = (
            "count(y) bounds none needed; discrete Laplace noise, scale 0.666667; global sensitivity of the statistic 1"
        )
        assert f"{counted}; eps 1.5" in said
        assert "at most 96 times out of 100" in said  # posterior(3) = .9526
        assert "one group" not in said
        assert "With all these numbers they are right at most 96" in pdrisk.explain(answer)

    @pytest.mark.parametrize("by", ["g", ["g"]])
    def test_groups_cost_once(self, by: object) -> None:
        answer = FRAME.dprisk.count(eps=1, by=by, keys=["a", "b", "c"])
        assert "at most 74 times out of 100" in pdrisk.explain(answer)
        said = flat(pdrisk.explain(answer, "publication"))
        assert "eps 1; assuming one record per person, everybody is in at most one group: all groups cost" in said
        assert "groups declared by the publisher" in said

    def test_group_keys_from_the_data(self) -> None:
        answer = FRAME.dprisk.count(eps=1, by="g", keys="observed")
        assert "groups those that occur in the data" in flat(pdrisk.explain(answer, "publication"))

    def test_the_most_exposed_group(self) -> None:
        asked = {"eps": 8, "bounds": (0, 20), "by": "g", "keys": ["a", "b"], "curator": True, "mechanism": "laplace"}
        answer = FRAME.dprisk.agg({"x": ["max", "count"]}, **asked)
        # a holds 3 and 10, so max can move by 10; b holds 1 and 17: by 16
        said = flat(pdrisk.explain(answer, "curator"))
        assert "max(x), most exposed group: b global sensitivity 20" in said
        assert "local sensitivity 16: the most in these data, at most 0.8 of that records used 2" in said
        exposed = float(posterior(4 * 16 / 20))
        assert f"at most {math.ceil(exposed * 1e4) / 1e4:g} with it" in said

    @pytest.mark.parametrize("keys", [["nobody", "a", "b", "c"], ["c", "b", "a", "nobody"]])
    def test_of_counts_it_is_the_smallest_that_holds_somebody(self, keys: list[str]) -> None:
        frame = pd.DataFrame({"x": [1.0] * 9, "g": [*"aaaaabbbc"]})
        for answer in (
            frame.dprisk.count(eps=1, by="g", keys=keys, curator=True),
            pdrisk.sql("SELECT COUNT(*) AS n, g FROM t GROUP BY g", eps=1, keys=keys, t=frame, curator=True),
        ):
            said = flat(pdrisk.explain(answer, "curator"))
            assert "most exposed group: c " in said
            assert "records used 1" in said
        unnamed = pdrisk.sql("SELECT COUNT(*) AS n FROM t GROUP BY g", eps=1, keys=keys, t=frame, curator=True)
        assert f"most exposed group: row {keys.index('c') + 1} " in flat(pdrisk.explain(unnamed, "curator"))

    def test_sql_groups_of_several_keys(self) -> None:
        frame = pd.DataFrame({"g": [*"aab"], "h": [1, 2, 2]})
        query = "SELECT h, COUNT(*) AS n, g FROM t WHERE h > 1 GROUP BY g, h"
        answer = pdrisk.sql(query, eps=1, keys=[("a", 1), ("b", 2)], t=frame, curator=True)
        assert "most exposed group: 2, b " in flat(pdrisk.explain(answer, "curator"))

    def test_columns_instead_of_an_index(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["sum", "count"]}, eps=9, bounds=(0, 20), curator=True)
        for audience in AUDIENCES:
            assert pdrisk.explain(answer.reset_index(), audience) == pdrisk.explain(answer, audience)

    def test_rows_taken_out_stay_paid(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["sum", "count"]}, eps=1, bounds=(0, 20))
        rest = answer.xs("count", level="statistic", drop_level=False)
        assert pdrisk.explain(rest).count("74 times out of 100") == 1
        assert "sum(x)" in pdrisk.explain(rest, "analyst")  # it was paid for, and said

    def test_after_publishing(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["sum", "count"]}, eps=9, bounds=(0, 20))
        for audience in ("participant", "analyst", "publication"):
            assert pdrisk.explain(pdrisk.public(answer), audience) == pdrisk.explain(answer, audience)

    def test_sql(self) -> None:
        options = {"eps": 2, "bounds": {"x": (0, 20)}, "keys": {"g": ["a", "b"]}, "t": FRAME}
        answer = pdrisk.sql(SQL, **options)
        assert "at most 89 times out of 100" in pdrisk.explain(answer)  # posterior(2) = .8808
        assert "total bounds 0 to 20" in flat(pdrisk.explain(answer, "publication"))
        with pytest.raises(ParameterError, match="ask with curator=True"):
            pdrisk.explain(answer, "curator")
        curator = flat(pdrisk.explain(pdrisk.sql(SQL, curator=True, **options), "curator"))
        # The sum of either can move by 20, and both hold two people; 1 and 17 are farther apart than 3 and 10.
        assert "total, most exposed group: b global sensitivity 20: " in curator
        assert "records used 2" in curator

    def test_sql_of_one_number(self) -> None:
        answer = pdrisk.sql("SELECT COUNT(*) AS people FROM t", eps=1, t=FRAME, curator=True)
        assert "Without this number" in pdrisk.explain(answer)
        assert "people with noise: ±3, 95 % sure" in flat(pdrisk.explain(answer, "analyst"))
        assert "records used 4" in flat(pdrisk.explain(answer, "curator"))

    @pytest.mark.parametrize("audience", AUDIENCES)
    @pytest.mark.parametrize("eps", [0.03, 1, 9])
    def test_the_rules_hold(self, audience: str, eps: float) -> None:
        answer = FRAME.dprisk.agg(
            {"x": ["sum", "count"]}, eps=eps, bounds=(0, 20), by="g", keys=["a", "b"], curator=True
        )
        said = flat(pdrisk.explain(answer, audience, so_far=2 * eps))
        assert not FORBIDDEN.search(said)
        assert len(set(OUT_OF.findall(said))) == 1
        assert "toss a coin" in said


AT = np.arange(600)
HOMES = pd.DataFrame({"hid": AT % 200, "age": AT % 90, "sex": np.where(AT % 2, "f", "m")})
DECLARED = HOMES.dprisk.declare(person="hid", unit_label="household")
LABELLED = {"person": "hid", "unit_label": "household"}
MEAN = "SELECT AVG(age) AS m FROM {}"
ASKED = {"eps": 1, "bounds": (0, 90), "rows": 2}


def by_schema():
    import pandera.pandas as pa

    schema = pa.DataFrameSchema({"age": pa.Column(int)}, metadata={"dprisk": LABELLED})
    return schema.validate(HOMES).dprisk.mean("age", **ASKED)


def of_two_tables():
    homes = HOMES[["hid"]].drop_duplicates()
    data = pdrisk.Dataset({"p": HOMES, "h": homes}, **LABELLED)
    return data.sql("SELECT AVG(age) AS m FROM p JOIN h USING (hid)", eps=1, bounds={"age": (0, 90)}, rows=2)


class TestUnitLabel:
    """Texts call a person what ``unit_label=`` says, not by the name of a column, wherever people are declared."""

    @pytest.mark.parametrize(
        "ask",
        {
            "option": lambda: HOMES.dprisk.mean("age", **ASKED, **LABELLED),
            "series of rows": lambda: HOMES.dprisk.mean("age", eps=1, bounds=(0, 90), unit="row", **LABELLED),
            "declared": lambda: DECLARED.query("age >= 0").dprisk.mean("age", **ASKED),
            "schema": by_schema,
            "dataset": lambda: pdrisk.Dataset(HOMES, **LABELLED).query("age > 3").mean("age", **ASKED),
            "dataset of a declared frame": lambda: pdrisk.Dataset(DECLARED).mean("age", **ASKED),
            "groups": lambda: pdrisk.Dataset(HOMES, **LABELLED).count(eps=1, by="sex", keys=["f", "m"], groups=1),
            "sql": lambda: pdrisk.sql(MEAN.format("t"), t=HOMES, **ASKED, **LABELLED),
            "sql of a declared frame": lambda: pdrisk.sql(MEAN.format("t"), t=DECLARED, **ASKED),
            "sql of a dataset": lambda: pdrisk.Dataset(HOMES, **LABELLED).sql(MEAN.format("data"), **ASKED),
            "two tables": of_two_tables,
            "join": lambda: (
                pdrisk.Dataset(HOMES, **LABELLED)
                .join(pd.DataFrame({"sex": ["f", "m"], "k": [1, 2]}), on="sex")
                .mean("age", **ASKED)
            ),
            "arrow": lambda: pdrisk.Dataset(arrow.Table.from_pandas(HOMES), **LABELLED).mean("age", **ASKED),
        }.items(),
        ids=lambda named: named[0],
    )
    def test_everywhere(self, ask):
        answer = ask[1]()
        texts = [pdrisk.explain(answer, audience) for audience in ("participant", "analyst", "publication")]
        if isinstance(answer, pdrisk.Release):
            assert "household" in answer.to_dict()["unit"] and "household" in pickle.loads(pickle.dumps(answer)).unit
            texts += [repr(answer)]
        else:
            texts += [pdrisk.explain(pickle.loads(pickle.dumps(answer)), "publication")]
        for text in texts[-2:]:
            assert "household" in text and "hid " not in text.replace("hid t", ""), text
        assert "household" in texts[0] or "row" in ask[0]

    def test_default_and_payment(self, tmp_path):
        """Without a label, the column; and a label changes nothing about what is asked, remembered or protected."""
        assert HOMES.dprisk.mean("age", **ASKED, person="hid").unit == "hid"
        ledger = pdrisk.Ledger(tmp_path / "b.db", dataset="d", eps=2)
        plain = pdrisk.Dataset(HOMES, person="hid", ledger=ledger).mean("age", **ASKED)
        again = pdrisk.Dataset(HOMES, **LABELLED, ledger=ledger).mean("age", **ASKED)
        assert (plain.value, ledger.remaining().eps, again.unit) == (again.value, 1, "household")

    @pytest.mark.parametrize("label", ["", " ", "a\nb", "x" * 61, 3, ["household"], "record (one per person assumed)"])
    def test_refused(self, label):
        for ask in (
            lambda: pdrisk.Dataset(HOMES, person="hid", unit_label=label),
            lambda: HOMES.dprisk.declare(person="hid", unit_label=label),
            lambda: HOMES.dprisk.mean("age", **ASKED, person="hid", unit_label=label),
            lambda: pdrisk.sql(MEAN.format("t"), t=HOMES, **ASKED, person="hid", unit_label=label),
            lambda: pdrisk.Dataset({"p": HOMES, "h": HOMES}, person="hid", unit_label=label),
        ):
            with pytest.raises(pdrisk.ParameterError, match="unit_label is a"):
                ask()

    def test_of_nobody(self):
        for ask in (
            lambda: pdrisk.Dataset(HOMES, unit_label="household"),
            lambda: HOMES.dprisk.declare(unit_label="household"),
            lambda: HOMES.dprisk.count(eps=1, unit_label="household"),
            lambda: pdrisk.sql("SELECT COUNT(*) FROM t", t=HOMES, eps=1, unit_label="household"),
            lambda: pdrisk.Dataset({"p": HOMES, "h": HOMES}, unit_label="household"),
        ):
            with pytest.raises(pdrisk.ParameterError, match=r"unit_label= .*person="):
                ask()


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
class TestArithmeticOfTables:
    """pandas keeps ``attrs`` where tables are added or subtracted: two releases must not be told as one."""

    FRAME = pd.DataFrame({"x": [1.0, 2, 3] * 300, "sex": ["f", "m", "m"] * 300})

    def tables(self):
        options = {"by": "sex", "keys": ["f", "m"], "bounds": (0, 9)}
        return [self.FRAME.dprisk.mean("x", eps=eps, **options) for eps in (1, 1, 0.5)]

    @pytest.mark.parametrize("way", [lambda a, b: b - a, lambda a, b: a + b, lambda a, _: a * 100, lambda a, b: b / a])
    @pytest.mark.parametrize(
        "use", [pdrisk.explain, pdrisk.plot, pdrisk.show, pdrisk.rounded, pdrisk.quality, pdrisk.public]
    )
    def test_computed_tables_are_refused(self, way, use):
        first, _, third = self.tables()
        with pytest.raises(pdrisk.ParameterError, match="was computed from others, and costs and tells what they do"):
            use(way(first, third))
        with pytest.raises(pdrisk.ParameterError, match="was computed from others"):
            use(first - self.tables()[1])

    @pytest.mark.parametrize(
        "same",
        [
            lambda t: t.iloc[:1], lambda t: t.sort_values("value"), lambda t: t.reset_index(), lambda t: t.round(3),
            lambda t: t[["value", "low", "high"]], lambda t: t.astype({"eps": "Float64"}), lambda t: t.copy(),
        ],
    )  # fmt: skip
    def test_others_are_explained_as_before(self, same):
        first = self.tables()[0]
        assert pdrisk.explain(same(first)) == pdrisk.explain(first)

    def test_parts_of_eps(self):
        for table in (
            self.FRAME.dprisk.agg({"x": ["mean", "median", "max"]}, eps=0.3, bounds=(0, 9)),
            self.FRAME.dprisk.count(eps=1 / 3, by="sex", keys="private", delta=1e-6),
            self.FRAME.dprisk.count(eps=0.7, by="sex", keys=["f", "m"], margins=True),
            self.FRAME.dprisk.mean("x", risk=0.7, by="sex", keys=["f", "m"], bounds=(0, 9)),
        ):
            assert pdrisk.explain(table)

    def test_values_of_others(self):
        """A column that was put in the place of the answer's; a table that was rounded stays one."""
        first, second, _ = self.tables()
        own = first.copy()
        own["value"] = first["value"] - second["value"]
        for use in (pdrisk.explain, pdrisk.plot, pdrisk.quality):
            with pytest.raises(ParameterError, match="computed from others"):
                use(own)
        third = self.FRAME.dprisk.mean("x", eps=1 / 3, by="sex", keys=["f", "m"], bounds=(0, 9))
        for same in (third.round(2), third.round(3), third.astype("float32")):
            assert pdrisk.explain(same) == pdrisk.explain(third)

    def test_a_crosstab_in_other_units(self):
        """Per cent of shares, thousands of counts: their noise is not that which the table knows."""
        frame = pd.DataFrame({"a": [0, 1] * 300, "b": [0, 0, 1] * 200})
        keys = {"a": [0, 1], "b": [0, 1]}
        shares = frame.dprisk.crosstab("a", "b", eps=1, keys=keys, normalize="index")
        counts = frame.dprisk.crosstab("a", "b", eps=1, keys=keys, margins=True)
        for table in (100 * shares, counts / 1000, (100 * shares).round(1), counts + 500):
            for use in (pdrisk.plot, pdrisk.quality, pdrisk.rounded, pdrisk.show):
                with pytest.raises(ParameterError, match="computed from others"):
                    use(table)
        again = frame.dprisk.crosstab("a", "b", eps=1, keys=keys, margins=True)
        for table in (100 * shares, counts / 1000, counts - again):
            with pytest.raises(ParameterError, match="computed from others"):
                pdrisk.explain(table)
        assert pdrisk.explain(shares) and pdrisk.quality(counts).shape == (3, 3)
        assert len(pdrisk.plot(shares.round(2)).lines) > 0
