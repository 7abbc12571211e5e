"""Private keys in statements of several queries: each SELECT with groups chooses its own."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import Dataset, ParameterError
from pdrisk._answer import releasing
from pdrisk._answer.answers.answer import Answer
from pdrisk._mechanisms.partition_selection import PartitionSelection

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

DELTA, HIDDEN = 1e-6, "Fedje"
PRIVATE = {"keys": "private", "delta": DELTA}


def people():
    """Two towns of hundreds, and one of one person, who is of the rarer sex of its own."""
    at = np.arange(601)
    town, sex = np.where(at < 400, "south", "north").astype(object), np.where(at % 4, "f", "m").astype(object)
    town[600], sex[600] = HIDDEN, "x"
    return pd.DataFrame({"town": town, "sex": sex, "age": at % 50, "pid": at})


COUNTS = "SELECT town, COUNT(*) AS n FROM t GROUP BY town"
UNION = f"{COUNTS} UNION ALL SELECT sex, COUNT(*) FROM t GROUP BY sex"
# Each query with the numbers of people of the groups that each list is chosen from, and the number of its releases.
FORMS = {
    "union": (UNION, [[1, 200, 400], [150, 450, 1]], 2),
    "union with a total": (f"{COUNTS} UNION ALL SELECT 'all', COUNT(*) FROM t", [[1, 200, 400]], 2),
    "union of groups alone": (
        "SELECT DISTINCT town FROM t UNION SELECT DISTINCT sex FROM t", [[1, 200, 400], [450, 150, 1]], 2
    ),
    "rollup": ("SELECT town, COUNT(*) AS n FROM t GROUP BY ROLLUP (town)", [[1, 200, 400]], 2),
    "cube": (
        "SELECT town, sex, COUNT(*) AS n FROM t GROUP BY CUBE (town, sex)",
        [[1, 200, 400], [150, 450, 1], [1, 50, 150, 100, 300]],
        4,
    ),
    "share of a scalar": (
        "SELECT town, COUNT(*) / (SELECT COUNT(*) FROM t) AS share FROM t GROUP BY town", [[1, 200, 400]], 2
    ),
    "scalar of groups": (
        f"SELECT COUNT(*) AS n FROM t WHERE age < (SELECT MAX(n) FROM ({COUNTS}))",
        [[1, 200, 400]],
        2,
    ),
}  # fmt: skip
forms = pytest.mark.parametrize(("query", "lists", "releases"), FORMS.values(), ids=FORMS.keys())


@pytest.fixture
def drawn(monkeypatch):
    """All that was drawn: mechanisms, numbers of people or records."""
    found, own = [], releasing.drawn_once
    monkeypatch.setattr(
        releasing,
        "drawn_once",
        lambda mechanism, summary: found.append((mechanism, summary.n.tolist())) or own(mechanism, summary),
    )
    return found


def chosen(drawn):
    return [(mechanism, n) for mechanism, n in drawn if isinstance(mechanism, PartitionSelection)]


@pytest.mark.sampled(7)
@forms
class TestEachList:
    """Each list is chosen once, from its own groups, with an even share of delta; shares never exceed the total."""

    def test_shares(self, query, lists, releases, drawn):
        answer = pdrisk.sql(query, eps=3, t=people(), **PRIVATE)
        found = chosen(drawn)
        assert sorted(sorted(n) for _, n in found) == sorted(map(sorted, lists))
        deltas = [rule.delta for rule, _ in found]
        assert len(set(deltas)) == 1 and 0 <= Fraction(1, 10**6) - sum(deltas) < Fraction(1, 10**38)
        each = Fraction(3, releases)  # of a query, of which half chooses its groups
        assert [rule.eps for rule, _ in found] == [each / 2] * len(found)
        others = [mechanism.eps for mechanism, _ in drawn if not isinstance(mechanism, PartitionSelection)]
        assert sum(others) + sum(rule.eps for rule, _ in found) == 3
        said = Answer.from_attrs(answer.attrs)
        assert (said.eps, said.delta, said.eps_groups) == pytest.approx((3, DELTA, float(each / 2 * len(found))))
        assert sorted(line.eps for line in said.lines) == pytest.approx([float(each)] * releases)

    def test_small_groups_are_never_seen(self, query, lists, releases):
        for _ in range(3):
            answer = pdrisk.sql(query, eps=8, t=people(), **PRIVATE)
            assert HIDDEN not in answer.to_string() + json.dumps(answer.attrs)

    def test_a_ledger_pays_all_of_both(self, query, lists, releases, tmp_path):
        """Thirds, too: no share is rounded up beyond a budget that is just enough."""
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=1, delta=7e-7)
        with pytest.raises(pdrisk.BudgetExceededError, match="asks for delta"):
            pdrisk.sql(query, eps=1, ledger=ledger, t=people(), **PRIVATE)
        assert (ledger.remaining().spent, ledger.remaining().delta_spent) == (0, 0)
        own = pdrisk.Ledger(tmp_path / "other.db", dataset="people", eps=7, delta=DELTA)
        pdrisk.sql(query, eps=7, ledger=own, t=people(), **PRIVATE)
        left = own.remaining()
        assert (left.spent, left.delta_spent) == pytest.approx((7, DELTA)) and left.eps < 1e-30 and left.delta < 1e-30
        own.verify()

    def test_a_dataset_remembers(self, query, lists, releases, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=9, delta=1e-4)
        data = Dataset({"t": people()}, ledger=ledger, version="1")
        first, again = (data.sql(query, eps=3, **PRIVATE) for _ in range(2))
        pd.testing.assert_frame_equal(first, again)
        assert ledger.remaining().spent == 3

    def test_what_it_says(self, query, lists, releases):
        answer = pdrisk.sql(query, eps=3, t=people(), **PRIVATE)
        said = " ".join(pdrisk.explain(answer, "publication").split())
        groups = f"{3 / releases / 2 * len(lists):g}"
        assert f"{groups} of it to choose the groups that are shown" in said and "delta 1e-06" in said
        rule = PartitionSelection(Fraction(3, 2 * releases), Fraction(1, 10**6) / len(lists))
        least, half, surely = rule.sizes_shown
        assert f"of {surely} people in any case, of {half} at least half of the time" in said and least == 1


class TestAnswers:
    """With hardly any noise they are those of the same query on the groups that are shown."""

    EPS = 10**4

    def test_union(self):
        answer = pdrisk.sql(UNION, eps=self.EPS, t=people(), **PRIVATE)
        assert answer.to_numpy().tolist() == [["north", 200], ["south", 400], ["f", 450], ["m", 150]]

    def test_cube(self):
        answer = pdrisk.sql(FORMS["cube"][0], eps=self.EPS, t=people(), **PRIVATE)
        found = {tuple(None if pd.isna(part) else part for part in row) for row in answer.to_numpy().tolist()}
        assert found == {
            ("north", None, 200), ("south", None, 400), (None, "f", 450), (None, "m", 150), (None, None, 601),
            ("north", "f", 150), ("north", "m", 50), ("south", "f", 300), ("south", "m", 100),
        }  # fmt: skip

    def test_selects_over_noisy_rows(self):
        ask = f"WITH c AS ({COUNTS}) SELECT town, n / SUM(n) OVER () AS share FROM c WHERE n > 250"
        answer = pdrisk.sql(ask, eps=self.EPS, t=people(), **PRIVATE)
        assert answer.to_numpy().tolist() == [["south", 1.0]]
        over = f"SELECT COUNT(*) AS k, SUM(n) AS n FROM ({UNION})"
        assert pdrisk.sql(over, eps=self.EPS, t=people(), **PRIVATE).to_numpy().tolist() == [[4, 1200]]

    def test_scalars(self):
        answer = pdrisk.sql(FORMS["share of a scalar"][0], eps=self.EPS, t=people(), **PRIVATE, risk_columns=True)
        assert answer["share"].tolist() == pytest.approx([200 / 601, 400 / 601])
        alone = pdrisk.sql(FORMS["scalar of groups"][0], eps=self.EPS, t=people(), **PRIVATE)
        assert alone["n"].tolist() == [601]

    def test_people_of_several_tables(self):
        frame = people()
        tables = {"t": frame[["pid", "town"]], "other": frame[["pid", "sex"]]}
        data = Dataset(tables, person={"t": "pid", "other": "pid"}, per_person="one")
        ask = "SELECT town, COUNT(*) AS n FROM t JOIN other USING (pid) GROUP BY ROLLUP (town)"
        answer = data.sql(ask, eps=self.EPS, **PRIVATE)
        assert sorted(answer["n"]) == [200, 400, 601]

    @pytest.mark.parametrize("none", ["town", "both"])
    def test_nobody_is_shown(self, none):
        query = UNION.replace("t GROUP BY town", "t WHERE age > 99 GROUP BY town")
        if none == "both":
            query = query.replace("t GROUP BY sex", "t WHERE age > 99 GROUP BY sex")
        answer = pdrisk.sql(query, eps=self.EPS, t=people(), **PRIVATE)
        assert answer.columns.tolist() == ["town", "n"]
        assert answer["town"].tolist() == ([] if none == "both" else ["f", "m"])
        assert "no value is shown" in pdrisk.explain(answer, "analyst")

    def test_explicit_eps(self, drawn):
        query = UNION.replace("COUNT(*) FROM t GROUP BY sex", "dp_count(*, eps := 1) FROM t GROUP BY sex")
        pdrisk.sql(query, eps=6, t=people(), **PRIVATE)
        assert [rule.eps for rule, _ in chosen(drawn)] == [2, 1]
        assert [mechanism.eps for mechanism, _ in drawn if not isinstance(mechanism, PartitionSelection)] == [2, 1]


class TestRefusals:
    """Whatever is wrong with a share is said before the first is paid."""

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"delta": 1.5e-30}, "delta must be between 1e-30 and"),
            ({"eps": 2e-4}, "only groups of more than 131,072 people would be sure to be shown"),
            ({"risk_columns": True}, "risk columns belong to single noisy values"),
        ],
    )
    def test_shares_that_are_too_small(self, options, said, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=9, delta=1e-4)
        scalars = "WHERE age < (SELECT COUNT(*) FROM t) AND age < (SELECT COUNT(age) FROM t)"
        for query in (UNION, UNION.replace("GROUP BY sex", f"{scalars} GROUP BY sex")):
            with pytest.raises(ParameterError, match=said):
                pdrisk.sql(query, ledger=ledger, t=people(), **({"eps": 1, **PRIVATE} | options))
        assert ledger.remaining().spent == 0

    def test_without_groups(self):
        with pytest.raises(ParameterError, match="GROUP BY, which is missing"):
            pdrisk.sql("SELECT COUNT(*) FROM t UNION ALL SELECT COUNT(age) FROM t", eps=1, t=people(), **PRIVATE)


@pytest.mark.parametrize("parts", [2, 3])
def test_a_budget_that_is_just_enough_pays_a_union(parts, tmp_path):
    """Of what is spent in parts, no part is checked as if it cost the total, nor rounded up."""
    ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=0.001)
    query = " UNION ALL ".join(["SELECT COUNT(*) AS n FROM t"] * (parts - 1) + ["SELECT COUNT(age) FROM t"])
    pdrisk.sql(query, eps=0.001, ledger=ledger, t=people())
    assert ledger.remaining().eps < 1e-30
