"""``keys="private"``: groups of enough people are shown, by chance, and nothing of an answer tells of the others."""

import itertools
import json
import math
from collections import Counter
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

import pdrisk
from ledgers import typed
from pdrisk import Dataset, ParameterError
from pdrisk._answer import releasing
from pdrisk._answer.answers.answer import Answer
from pdrisk._core.risks.risk import success_bound
from pdrisk._mechanisms.partition_selection import PartitionSelection
from pdrisk.errors import ColumnTypeError

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

DELTA = 1e-6
PRIVATE = {"keys": "private", "delta": DELTA}
SHOWN, HIDDEN = ["north", "south"], ["Utsira", "Fedje"]


def with_delta(*eps):
    """How often an attacker is right by counts at these eps, and by what delta tells: squares of m add up."""
    m = math.hypot(*(2 * ndtri(1 / (1 + math.exp(each))) for each in eps))
    return DELTA + (1 - DELTA) * ndtr(m / 2)


def people():
    """Two groups of hundreds, which are shown in any case at eps 1, two of one person each, and some of nowhere."""
    towns = ["south"] * 300 + HIDDEN[:1] + ["north"] * 200 + HIDDEN[1:] + [None] * 9
    at = np.arange(len(towns))
    return typed(pd.DataFrame({"town": towns, "age": 20.0 + at % 50, "sex": np.where(at % 2, "f", "m"), "pid": at}))


@pytest.fixture
def sizes(monkeypatch):
    """What groups were chosen from: the rule, the numbers of people and which were shown."""
    found, own = [], releasing.drawn_once

    def drawn_once(mechanism, summary):
        drawn = own(mechanism, summary)
        if isinstance(mechanism, PartitionSelection):
            found.append((mechanism, summary.n.tolist(), drawn.tolist()))
        return drawn

    monkeypatch.setattr(releasing, "drawn_once", drawn_once)
    return found


BOUNDS = {"bounds": (0, 100)}
ASKED = {
    "count": lambda d, **by: d.count(**by),
    "count(age)": lambda d, **by: d.count("age", **by),
    "mean": lambda d, **by: d.mean("age", **by, **BOUNDS),
    "sum": lambda d, **by: d.sum("age", step=1, **by, **BOUNDS),
    "laplace": lambda d, **by: d.sum("age", mechanism="laplace", **by, **BOUNDS),
    "median": lambda d, **by: d.median("age", interval=True, **by, **BOUNDS),
    "max": lambda d, **by: d.max("age", **by, **BOUNDS),
    "std": lambda d, **by: d.std("age", **by, **BOUNDS),
    "nunique": lambda d, **by: d.nunique("sex", **by),
    "proportion": lambda d, **by: d.proportion("age > 30", **by),
    "clipped": lambda d, **by: d.mean("age", clip="private", **by, **BOUNDS),
    "corr": lambda d, **by: d.corr("age", "pid", **by, bounds={"age": (0, 100), "pid": (0, 600)}),
    "describe": lambda d, **by: d.describe("age", **by, **BOUNDS),
    "agg": lambda d, **by: d.agg({"age": ["mean", "max"], None: "count"}, **by, **BOUNDS),
    "quantiles": lambda d, **by: d.quantile("age", q=[0.1, 0.5, 0.9], **by, **BOUNDS),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", ASKED)
class TestEveryStatistic:
    """The table is that of the keys shown, as if these had been listed; of none, a table without rows."""

    def test_as_if_listed(self, name):
        found = ASKED[name](people().dprisk, eps=10, by="town", **PRIVATE)
        listed = ASKED[name](people().dprisk, eps=5, by="town", keys=SHOWN)
        pd.testing.assert_index_equal(found.index, listed.index)
        assert found.columns.tolist() == [
            other for column in listed for other in (["delta", "success"] if column == "worst_case" else [column])
        ]
        assert found["value"].dtype == listed["value"].dtype
        assert not any(town in f"{found.to_string()}{found.attrs}" for town in HIDDEN)

    def test_nobody_is_shown(self, name):
        table = ASKED[name](people().dprisk, eps=1, by="town", where="age > 1000", **PRIVATE)
        full = ASKED[name](people().dprisk, eps=10, by="town", **PRIVATE)
        assert len(table) == 0 and table.columns.tolist() == full.columns.tolist()
        assert table.dtypes.tolist() == full.dtypes.tolist() and table.index.names == full.index.names
        for audience in ("participant", "analyst", "publication"):
            assert "delta" in pdrisk.explain(table, audience) or audience == "participant"
        assert pdrisk.public(table).equals(table)


class TestGroupsShown:
    """Which groups can be shown, and in what order."""

    def test_the_order_is_no_order_of_the_data(self):
        frame = people()
        for own in (frame, frame.iloc[::-1], frame.sample(frac=1, random_state=1)):
            assert own.dprisk.count(eps=5, by="town", **PRIVATE).index.tolist() == SHOWN

    def test_several_columns(self):
        table = people().dprisk.count(eps=5, by=["town", "sex"], **PRIVATE)
        assert table.index.tolist() == [*itertools.product(SHOWN, ["f", "m"])]
        assert not set(HIDDEN) & set(table.index.levels[0])

    def test_categories_that_are_not_shown(self):
        frame = people().assign(town=lambda own: own["town"].astype("category"))
        table = frame.dprisk.count(eps=5, by="town", **PRIVATE)
        assert table.index.categories.tolist() == table.index.tolist() == SHOWN

    def test_ordered_categories_stand_in_their_order(self):
        sizes = pd.Categorical(["small"] * 300 + ["large"] * 200, categories=["small", "medium", "large"], ordered=True)
        frame = pd.DataFrame({"size": sizes, "sex": ["m", "f"] * 250})
        assert frame.dprisk.count(eps=10, by="size", **PRIVATE).index.tolist() == ["small", "large"]
        assert frame.dprisk.count(eps=1, by="size", keys="observed").index.tolist() == ["small", "large"]
        both = frame.dprisk.count(eps=10, by=["size", "sex"], **PRIVATE).index.tolist()
        assert both == [("small", "f"), ("small", "m"), ("large", "f"), ("large", "m")]
        listed = frame.assign(size=sizes.as_unordered()).dprisk.count(eps=10, by="size", **PRIVATE)
        assert listed.index.tolist() == ["large", "small"]

    @pytest.mark.parametrize("kind", ["UBIGINT", "BIGINT", "UTINYINT"])
    def test_whole_numbers_of_a_table_stand_in_their_order(self, kind):
        con = duckdb.connect()
        con.execute(f"CREATE TABLE people AS SELECT CAST(2 + range % 3 * 9 AS {kind}) AS k FROM range(900)")
        data = Dataset((con, "people"))
        assert data.count(eps=10, by="k", **PRIVATE).index.tolist() == [2, 11, 20]
        assert data.count(eps=1, by="k", keys="observed").index.tolist() == [2, 11, 20]
        assert data.count(eps=1, by="k", keys=[20, 3, 2], curator=True)["n"].tolist() == [300, 0, 300]

    def test_crosstab(self):
        frame = people()
        frame = frame[(frame["town"] != "north") | (frame["sex"] == "f")]
        table = frame.dprisk.crosstab("town", "sex", eps=5, **PRIVATE)
        assert table.index.tolist() == SHOWN and table.columns.tolist() == ["f", "m"]
        assert table.isna().to_numpy().tolist() == [[False, True], [False, False]]
        assert set(table.dtypes) == {pd.Int64Dtype()}

    def test_value_counts(self):
        table = people().dprisk.value_counts("town", eps=5, **PRIVATE)
        assert table.index.tolist() == SHOWN[::-1]

    def test_least_group(self, sizes):
        table = people().dprisk.count(eps=5, by="town", least_group=250, **PRIVATE)
        assert table.index.tolist() == ["south"]
        ((rule, *_),) = sizes
        assert (rule.least, rule.probability(249)) == (250, 0)
        assert float(rule.probability(250)) == pytest.approx(1e-6)

    def test_missing_codes_are_no_key(self):
        frame = people().fillna({"town": "nowhere"})
        frame = pd.concat([frame, frame[frame["town"] == "nowhere"].loc[lambda own: own.index.repeat(90)]])
        frame = frame.dprisk.declare(missing={"town": ["nowhere"]})
        assert frame.dprisk.count(eps=5, by="town", **PRIVATE).index.tolist() == SHOWN

    def test_half_of_eps_chooses(self, sizes):
        """The values share the other half as they share eps without it; a line costs what is told of it."""
        table = people().dprisk.agg({"age": ["mean", "max"]}, eps=3, by="town", **PRIVATE, **BOUNDS)
        ((rule, *_),) = sizes
        assert (rule.eps, rule.delta) == (Fraction(3, 2), Fraction(1, 10**6))
        assert table["eps"].tolist() == [2.25] * 4  # 3/2 for the groups and 3/4 for the line
        assert json.loads(table.attrs["dprisk"])["answer"]["eps"] == 3
        listed = people().dprisk.agg({"age": ["mean"]}, eps=0.75, by="town", keys=SHOWN, **BOUNDS)
        width = (table["high"] - table["low"]).to_numpy()[:2]
        assert width == pytest.approx((listed["high"] - listed["low"]).to_numpy(), rel=0.1)


class TestNumbersOfPeople:
    """A group is as large as people have a row in it that is selected, whatever rows they have."""

    def rows(self):
        """Ann has a thousand rows in `a`; in `b` are 300 people with two rows each, 50 of them in `c`, too."""
        frame = pd.DataFrame({"pid": ["ann"] * 1000, "g": "a"})
        several = pd.DataFrame({"pid": [f"p{at // 2}" for at in range(600)], "g": "b"})
        both = pd.DataFrame({"pid": [f"p{at}" for at in range(50)], "g": "c"})
        nobody = pd.DataFrame({"pid": [None] * 500, "g": "d"})
        return pd.concat([frame, several, both, nobody], ignore_index=True).assign(x=1.0)

    @pytest.mark.parametrize(
        "counted",
        [{"rows": 7}, {"rows": 1}, {"per_person": "mean"}, {"per_person": "count"}, {"per_person": "one"}],
        ids=str,
    )
    def test_each_person_once(self, sizes, counted):
        frame, bounds = self.rows(), {"bounds": (0, 10)}
        groups = {} if counted == {"per_person": "one"} else {"groups": 2}
        frame.dprisk.sum("x", eps=4, by="g", person="pid", **groups, **counted, **PRIVATE, **bounds)
        query = "SELECT g, SUM(x) AS s FROM t GROUP BY g"
        pdrisk.sql(query, eps=4, person="pid", t=frame, **groups, **counted, **PRIVATE, **bounds)
        for rule, n, _ in sizes:
            if groups:
                assert n == [1, 300, 50, 0] if len(n) == 4 else [1, 300, 50]
                assert rule._each == (Fraction(1), Fraction(1, 2 * 10**6))
            else:  # each of the 50 is in one of their two groups
                assert n[0] == 1 and n[1] + n[2] == 300 and n[2] < 50

    def test_count_of_people(self):
        table = self.rows().dprisk.count(eps=6, by="g", person="pid", groups=2, **PRIVATE)
        assert "b" in table.index and not {"a", "d"} & set(table.index)

    def test_rows_by_the_callers_word(self, sizes):
        self.rows().dprisk.count(eps=2, by="g", person="pid", unit="row", **PRIVATE)
        assert sizes[0][1] == [1000, 600, 50, 500]

    def test_only_selected_rows(self, sizes):
        frame = people()
        frame.dprisk.count(eps=1, by="town", where="sex == 'f'", **PRIVATE)
        pdrisk.sql("SELECT town, COUNT(*) AS n FROM t WHERE sex = 'f' GROUP BY town", eps=1, t=frame, **PRIVATE)
        wanted = frame[frame["sex"] == "f"].groupby("town").size()
        for _, n, _ in sizes:
            assert sorted(each for each in n if each) == sorted(wanted)

    def test_a_value_is_not_needed(self, sizes):
        """Who is in a group decides, not who answered: both engines alike."""
        frame = people().assign(age=np.nan)
        frame.dprisk.mean("age", eps=1, by="town", **BOUNDS, **PRIVATE)
        pdrisk.sql("SELECT town, AVG(age) AS a FROM t GROUP BY town", eps=1, t=frame, **BOUNDS, **PRIVATE)
        assert sizes[0][1] == sizes[1][1] == [1, 1, 200, 300]


class TestSQL:
    """The same in SQL, on the same keys."""

    QUERY = "SELECT town, COUNT(*) AS n, AVG(age) AS age FROM t GROUP BY town"

    def test_answer(self):
        answer = pdrisk.sql(self.QUERY, eps=5, t=people(), risk_columns=True, **BOUNDS, **PRIVATE)
        assert answer["town"].tolist() == SHOWN
        assert answer["n"].tolist() == pytest.approx([200, 300], abs=60)
        expected = [DELTA, pytest.approx(with_delta(1.25, 2.5))]
        assert answer[["n_delta", "n_success"]].to_numpy().tolist() == [expected] * 2
        assert not any(name.endswith("worst_case") for name in answer)

    def test_nobody_is_shown(self):
        answer = pdrisk.sql(
            self.QUERY.replace("GROUP", "WHERE age > 1000 GROUP"), eps=1, t=people(), **BOUNDS, **PRIVATE
        )
        assert answer.columns.tolist() == ["town", "n", "age"] and len(answer) == 0

    @pytest.mark.parametrize("query", ["SELECT DISTINCT town FROM t", "SELECT town FROM t GROUP BY town"])
    def test_groups_alone(self, query):
        assert pdrisk.sql(query, eps=5, t=people(), **PRIVATE)["town"].tolist() == SHOWN

    def test_computed_and_several_groups(self):
        query = "SELECT age // 50 AS half, sex, COUNT(*) AS n FROM t GROUP BY half, sex HAVING n > 50 ORDER BY n DESC"
        answer = pdrisk.sql(query, eps=8, t=people(), **PRIVATE)
        assert Counter(zip(answer["half"], answer["sex"], strict=True)).keys() <= {*itertools.product([0, 1], "fm")}
        assert len(answer) == 4 and answer["n"].is_monotonic_decreasing

    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            ("BIGINT", [2**53 + 1, -(2**53) - 1]), ("HUGEINT", [2**53 + 1, 2**70]), ("BOOLEAN", [True, False]),
            ("DATE", ["2020-01-01", "1999-12-31"]), ("TIMESTAMP", ["2020-01-01 01:02:03.000004"]),
            ("DOUBLE", [0.1, -2.5]), ("FLOAT", [0.1]), ("DECIMAL(9, 2)", [1.25]), ("VARCHAR", ["a", "ä", ""]),
        ],
    )  # fmt: skip
    def test_types(self, kind, values):
        """Keys of every type find their rows again; whole numbers that no key can be are none."""
        with duckdb.connect() as con:
            con.execute(f"CREATE TABLE t (g {kind})")
            con.executemany(f"INSERT INTO t SELECT CAST(? AS {kind}) FROM range(300)", [[each] for each in values])
            con.execute("INSERT INTO t SELECT NULL FROM range(300)")
            key = "TRY_CAST(g AS BIGINT)" if kind == "HUGEINT" else "g"
            answer = pdrisk.sql(f"SELECT {key} AS g, COUNT(*) AS n FROM t GROUP BY {key}", con, eps=4, **PRIVATE)
            fits = [each for each in values if each != 2**70]
            assert answer["n"].tolist() == pytest.approx([300] * len(fits), abs=40)
            known = con.execute(f"SELECT DISTINCT {key} AS g FROM t WHERE {key} IS NOT NULL ORDER BY g").df()["g"]
            assert answer["g"].astype(str).tolist() == known.astype(str).tolist()

    def test_two_tables(self):
        one = pd.DataFrame({"pid": range(500), "g": ["a"] * 499 + ["b"]})
        other = pd.DataFrame({"pid": range(500), "x": 1.0})
        d = Dataset({"one": one, "other": other}, person={"one": "pid", "other": "pid"}, per_person="one")
        query = "SELECT g, SUM(x) AS s FROM one JOIN other USING (pid) GROUP BY g"
        assert d.sql(query, eps=4, bounds=(0, 1), **PRIVATE)["g"].tolist() == ["a"]

    def test_the_same_bits_choose_the_same_groups(self, monkeypatch):
        """Both engines hand the same numbers of people, in the same order, to the same rule."""
        groups = [f"g{at:02}" for at in range(40)]
        frame = pd.DataFrame({"g": np.repeat(groups, np.arange(40))})
        words = np.random.default_rng(5).integers(0, 2**64, size=3 * 39, dtype=np.uint64)
        own = releasing.drawn_once

        def drawn_once(mechanism, summary):
            if isinstance(mechanism, PartitionSelection):
                return mechanism.draw(summary, bits=lambda size: words[:size])
            return own(mechanism, summary)

        monkeypatch.setattr(releasing, "drawn_once", drawn_once)
        found = frame.dprisk.count(eps=1, by="g", **PRIVATE).index.tolist()
        answer = pdrisk.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", eps=1, t=frame, **PRIVATE)
        assert answer["g"].tolist() == found and 5 < len(found) < 35


class TestRisk:
    """Of an (eps, delta) answer there is a success of attackers, and no worst case."""

    def test_table(self):
        table = people().dprisk.count(eps=1, by="town", **PRIVATE)
        assert table["success"].tolist() == pytest.approx([with_delta(0.5, 0.5)] * 2)
        assert with_delta(0.5, 0.5) < success_bound(1.0, DELTA)
        assert set(table["delta"]) == {DELTA}
        said = Answer.from_attrs(table.attrs)
        assert said.delta == DELTA and math.isnan(said.lines[0].worst_case)

    def test_the_curators_columns(self):
        table = people().dprisk.count(eps=1, by="town", curator=True, **PRIVATE)
        assert table.columns[6:].tolist() == ["n", "local_sensitivity", "clamped"]
        assert table["n"].tolist() == [200, 300]
        assert "n" not in pdrisk.public(table)
        query = "SELECT town, COUNT(*) AS c, AVG(age) AS a FROM t GROUP BY town"
        answer = pdrisk.sql(query, eps=1, t=people(), curator=True, **BOUNDS, **PRIVATE)
        for own in (table, answer):
            with pytest.raises(ParameterError, match="no such bound"):
                pdrisk.explain(own, "curator")
        assert answer["c_n"].tolist() == [200, 300] and "c_two_worlds" not in answer
        assert "c_n" not in pdrisk.public(answer)

    def test_explained(self):
        table = people().dprisk.count(eps=1, by="town", **PRIVATE)
        said = " ".join(pdrisk.explain(table, "publication").split())
        assert (
            "delta 1e-06" in said and "0.5 of it to choose the groups" in said and "right 50 times out of 100" in said
        )
        rule = PartitionSelection(Fraction(1, 2), Fraction(1, 10**6))
        half, surely = (rule.size_shown(Fraction(share)) for share in ("1/2", "1"))
        assert f"of {surely} people in any case, of {half} at least half of the time, of nobody never" in said
        assert "nor of fewer" not in said
        table = people().dprisk.count(eps=1, by="town", least_group=20, **PRIVATE)
        said = " ".join(pdrisk.explain(table, "publication").split())
        assert f"of {surely + 19} people in any case" in said and "of nobody never, nor of fewer than 20" in said
        assert "At most one such list in 1,000,000 shows that you took part" in pdrisk.explain(table)
        with pytest.raises(ParameterError, match="no such bound"):
            pdrisk.explain(table, prior=0.01)
        with pytest.raises(ParameterError, match="the ledger that paid"):
            pdrisk.explain(table, so_far=3)

    def test_no_group_is_shown(self):
        table = people().dprisk.agg(
            {"age": ["mean", "median"]}, eps=1, by="town", where="age > 1000", **PRIVATE, **BOUNDS
        )
        for audience in ("analyst", "publication"):
            said = pdrisk.explain(table, audience)
            assert "mean(age)    no value is shown, for eps 0.25" in said and "nan" not in said

    @pytest.mark.parametrize("where", ["age > 0", "age > 1000"])
    def test_attrs_are_strict_json(self, where):
        table = people().dprisk.describe("age", eps=10, by="town", where=where, **PRIVATE, **BOUNDS)
        said = json.loads(table.attrs["dprisk"], parse_constant=pytest.fail)
        assert said["answer"]["lines"][0]["worst_case"] == {"float": "nan"}
        known = Answer.from_attrs(table.attrs)
        assert known.text == table.attrs["dprisk"] and all(math.isnan(line.worst_case) for line in known.lines)

    def test_what_is_left_of_a_budget_of_delta(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=5)
        listed = people().dprisk.count(eps=1, by="town", keys=SHOWN, ledger=ledger)
        assert "left      eps 4 of the budget\n" in pdrisk.explain(listed, "analyst", ledger)
        ledger.amend(delta=1e-5)
        table = people().dprisk.count(eps=1, by="town", ledger=ledger, **PRIVATE)
        assert "left      eps 3 of the budget; delta 9e-06 of its budget\n" in pdrisk.explain(table, "analyst", ledger)


class TestRefusals:
    """What does not fit together is refused before anything is read, with what to write."""

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"keys": "private"}, "needs delta=.*far below 1/number of people"),
            ({"keys": SHOWN, "delta": 1e-6}, 'delta= is for keys="private"'),
            ({"keys": "observed", "least_group": 5}, 'least_group= is for keys="private"'),
            (PRIVATE | {"delta": 0.01}, "between 1e-30 and 0.001, but is 0.01"),
            (PRIVATE | {"delta": 0}, "between 1e-30 and 0.001"),
            (PRIVATE | {"delta": math.nan}, "between 1e-30 and 0.001"),
            (PRIVATE | {"least_group": 0}, "least_group must be between 1"),
            (PRIVATE | {"eps": 1e-5}, "larger eps\\.$"),
        ],
    )
    def test_options(self, options, said):
        options = {"eps": 1} | options
        with pytest.raises(ParameterError, match=said):
            people().dprisk.count(by="town", **options)
        with pytest.raises(ParameterError, match=said):
            pdrisk.sql("SELECT town, COUNT(*) AS n FROM t GROUP BY town", t=people(), **options)

    @pytest.mark.parametrize("options", [{"delta": "1e-6"}, {"delta": True}, {"delta": 1e-6, "least_group": 2.5}])
    def test_types(self, options):
        with pytest.raises(ColumnTypeError):
            people().dprisk.count(eps=1, by="town", keys="private", **options)

    @pytest.mark.parametrize("word", ["private", "observed"])
    def test_words_of_one_column(self, word):
        ask = [
            lambda keys: people().dprisk.count(eps=1, by=["town", "sex"], keys=keys),
            lambda keys: people().dprisk.count(eps=1, by=["town", "sex"], keys=keys, delta=DELTA),
            lambda keys: people().dprisk.assess("age", **BOUNDS, by=["town", "sex"], keys=keys),
            lambda keys: pdrisk.sql(
                "SELECT COUNT(*) FROM t GROUP BY town, sex", eps=1, keys=keys, delta=DELTA, t=people()
            ),
        ]
        for one in ask:
            with pytest.raises(
                ParameterError, match=rf'^"{word}" is for all columns .* for \'town\' alone: pass keys="{word}"'
            ):
                one({"town": word, "sex": ["f", "m"]})

    @pytest.mark.parametrize(
        ("groups", "said"), [(1, "larger eps.$"), (3, "of the 3 groups .*, or a smaller groups=.$")]
    )
    def test_too_little_eps(self, groups, said):
        ask = Dataset(people(), person="pid").count
        with pytest.raises(ParameterError, match=said):
            ask(eps=1e-5, by="town", groups=groups, **PRIVATE)

    def test_all_that_is_missing(self):
        with pytest.raises(ParameterError, match=r"bounds=.*eps=.*delta="):
            people().dprisk.mean("age", by="town", keys="private")
        with pytest.raises(ParameterError, match=r"eps=.*delta="):
            pdrisk.sql("SELECT town, COUNT(*) AS n FROM t GROUP BY town", t=people(), keys="private")

    def test_no_belief_is_bounded(self):
        with pytest.raises(ParameterError, match="risk= bounds what an attacker may come to believe"):
            people().dprisk.count(risk=0.7, by="town", **PRIVATE)

    def test_without_groups(self):
        with pytest.raises(ParameterError, match="pass by= as well"):
            people().dprisk.count(eps=1, **PRIVATE)
        with pytest.raises(ParameterError, match="GROUP BY, which is missing"):
            pdrisk.sql("SELECT COUNT(*) AS n FROM t", eps=1, t=people(), **PRIVATE)
        with pytest.raises(ParameterError, match='delta= is for keys="private"'):
            people().dprisk.hist("age", eps=1, bounds=(0, 9), delta=1e-6)

    def test_exact_views(self):
        with pytest.raises(ParameterError, match="these are exact"):
            people().dprisk.assess("age", "mean", by="town", keys="private", **BOUNDS)
        with pytest.raises(ParameterError, match="these are exact"):
            people().dprisk.individual_risk("age", eps=1, by="town", keys="private", **BOUNDS)
