"""Classical output rules: a verdict for each cell of a table, roundings, suppression, and a record of it all."""

import json
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from pdrisk._core.rounding import controlled_rounding, nearest_multiple, with_margins
from pdrisk.errors import ColumnTypeError, ParameterError, PolicyError

seeds = st.integers(0, 10_000)


def survey(seed: int, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "west"], n),
            "sex": rng.choice(["f", "m"], n),
            "wage": np.where(rng.random(n) < 0.1, np.nan, rng.choice([1.0, 2.0, 3.0, 50.0], n)),
            "pid": rng.integers(0, max(2, n // 2), n),
        }
    )


def contributions(frame: pd.DataFrame, person: str | None) -> dict[tuple, dict]:
    """Of each cell: what each person contributes, and their single values."""
    cells: dict = defaultdict(lambda: defaultdict(list))
    for at, row in enumerate(frame.to_dict("records")):
        if not np.isnan(row["wage"]):
            cells[row["region"], row["sex"]][at if person is None else row[person]].append(row["wage"])
    return cells


class TestVerdicts:
    """Each rule says of a cell what its definition says, by hand."""

    @given(seeds, st.integers(1, 60), st.sampled_from(["sum", "mean", "min", "max"]), st.sampled_from([None, "pid"]))
    def test_equal_the_definitions(self, seed, n, statistic, person):
        frame = survey(seed, n)
        if frame["wage"].isna().all():
            return
        rules = {"least_count": 3, "dominance": (2, 0.75), "p_percent": 20}
        found = frame.dprisk.output_rules(
            "region", "sex", values="wage", statistic=statistic, rules=rules, person=person
        )
        for key, people in contributions(frame, person).items():
            own = sorted((sum(values) for values in people.values()), reverse=True)
            values = [value for each in people.values() for value in each]
            wanted = set()
            if len(own) < 3:
                wanted.add("least_count")
            if statistic in ("sum", "mean"):
                if sum(own[:2]) > 0.75 * sum(own):
                    wanted.add("dominance")
                if sum(own[2:]) < 0.2 * own[0]:
                    wanted.add("p_percent")
                shown = sum(values) / (len(values) if statistic == "mean" else 1)
            else:
                shown = min(values) if statistic == "min" else max(values)
                if sum(shown in each for each in people.values()) < 3:
                    wanted.add("p_percent")
            assert set(filter(None, found.reasons.loc[key].split(", "))) == wanted
            assert found.verdicts.loc[key] == ("fail" if wanted else "pass")
            assert found.table.loc[key] == pytest.approx(shown) and found.people.loc[key] == len(own)

    @given(seeds, st.integers(1, 80), st.sampled_from([None, "pid"]))
    def test_counts(self, seed, n, person):
        frame = survey(seed, n)
        found = frame.dprisk.output_rules("region", "sex", rules={"least_count": 5}, person=person)
        once = frame if person is None else frame.drop_duplicates(["region", "sex", person])
        counts = once.groupby(["region", "sex"]).size()
        assert {key: found.table.loc[key] for key in counts.index} == counts.to_dict()
        assert found.table.to_numpy().sum() == counts.sum()
        assert {key for key in counts.index if found.verdicts.loc[key] == "fail"} == set(counts[counts < 5].index)

    def test_a_maximum_is_one_persons_income(self):
        """ACRO passes the maximum of ten incomes, which is one person's, exactly."""
        frame = pd.DataFrame({"region": ["north"] * 10, "sex": ["f"] * 10, "wage": np.arange(10.0) + 1})
        ask = frame.dprisk.output_rules
        for statistic in ("max", "min"):
            found = ask("region", "sex", values="wage", statistic=statistic)
            assert found.status == "fail" and found.reasons.iloc[0, 0] == "p_percent"
        assert ask("region", "sex", values="wage", statistic="mean").status == "pass"
        assert ask("region", "sex", values="wage", statistic="max", rules={"p_percent": None}).status == "pass"
        level = frame.assign(wage=7.0).dprisk.output_rules("region", "sex", values="wage", statistic="max")
        assert level.status == "pass"  # all ten have it

    def test_the_rules_at_their_limits(self):
        """Nine tenths from two pass; all but two at a tenth of the largest pass; less or more does not."""

        def status(values, rules):
            frame = pd.DataFrame({"a": 1, "b": 1, "x": values})
            return frame.dprisk.output_rules("a", "b", values="x", statistic="sum", rules=rules).status

        only = {"least_count": None, "dominance": None, "p_percent": None}
        assert status([45, 45, 10], only | {"dominance": (2, 0.9)}) == "pass"
        assert status([45, 46, 10], only | {"dominance": (2, 0.9)}) == "fail"
        assert status([100, 50, 10], only | {"p_percent": 10}) == "pass"
        assert status([100, 50, 9], only | {"p_percent": 10}) == "fail"
        assert status([1], only) == "pass"
        assert status([1] * 9, only | {"least_count": 10}) == "fail"
        assert status([1] * 10, only | {"least_count": 10}) == "pass"
        assert status([0, 0], only | {"p_percent": 10, "dominance": (1, 0.5)}) == "pass"

    def test_negative_contributions_are_for_people_to_look_at(self):
        frame = pd.DataFrame({"a": [1] * 12, "b": [1] * 12, "x": [-95.0, 100.0] + [1.0] * 10})
        found = frame.dprisk.output_rules("a", "b", values="x", statistic="sum")
        assert found.status == "review" and found.reasons.iloc[0, 0] == "negative"

    def test_a_mean_is_that_of_rows_and_its_contributors_are_people(self):
        frame = pd.DataFrame({"a": [1] * 4, "b": [1] * 4, "x": [1.0, 2.0, 3.0, 6.0], "pid": [1, 1, 1, 2]})
        found = frame.dprisk.output_rules("a", "b", values="x", statistic="mean", person="pid")
        assert found.table.iloc[0, 0] == 3 and found.people.iloc[0, 0] == 2
        assert found.reasons.iloc[0, 0] == "least_count, dominance, p_percent"

    def test_missing_codes_contribute_nothing(self):
        frame = pd.DataFrame({"a": [1] * 3, "b": [1] * 3, "x": [5, 6, -8]}).dprisk.declare(missing={"x": [-8]})
        found = frame.dprisk.output_rules("a", "b", values="x", statistic="sum")
        assert (
            found.table.iloc[0, 0] == 11 and found.people.iloc[0, 0] == 2 and "negative" not in found.reasons.iloc[0, 0]
        )

    def test_missing_keys_have_a_row_and_cells_of_nobody_pass(self):
        frame = pd.DataFrame({"a": ["x", None, None], "b": ["u", "u", "v"]})
        found = frame.dprisk.output_rules("a", "b", rules={"least_count": 1})
        assert found.table.to_numpy().tolist() == [[1, 1], [1, 0]] and pd.isna(found.table.index[0])
        assert (found.verdicts == "pass").all(axis=None)


class TestRounding:
    """Rounded tables hold multiples of the base; controlled ones still add up."""

    @given(seeds, st.integers(1, 7), st.integers(1, 7), st.integers(2, 12))
    def test_controlled(self, seed, rows, columns, base):
        table = np.random.default_rng(seed).integers(0, 40, (rows, columns))
        rounded = controlled_rounding(table, base)
        assert (rounded % base == 0).all()
        # Every number and every margin is one of the two multiples next to the true one.
        assert (np.abs(with_margins(rounded) - with_margins(table)) < base).all()
        assert (rounded[table % base == 0] == table[table % base == 0]).all()

    def test_controlled_moves_as_little_as_it_can(self):
        for table in ([[4, 1], [1, 4]], [[1, 4], [4, 1]]):
            assert controlled_rounding(np.array(table), 5).tolist() == nearest_multiple(np.array(table), 5).tolist()

    @given(st.lists(st.integers(0, 1000), min_size=1), st.integers(2, 12))
    def test_nearest(self, numbers, base):
        for number, rounded in zip(numbers, nearest_multiple(np.array([numbers]), base)[0].tolist(), strict=True):
            assert rounded % base == 0 and 2 * abs(rounded - number) <= base
            assert 2 * (number - rounded) != base  # halves upwards

    def test_tables(self):
        frame = pd.DataFrame({"a": list("xxxy"), "b": list("uuvv")})
        found = frame.dprisk.output_rules("a", "b", rules={"least_count": 2})
        assert found.table.to_numpy().tolist() == [[2, 1], [0, 1]]
        assert found.rounded(2).to_numpy().tolist() == [[2, 2, 4], [0, 2, 2], [2, 2, 4]]
        assert found.rounded(2).index.tolist() == ["x", "y", "total"]
        controlled = found.controlled_rounding(2)
        assert controlled.loc["total"].tolist() == controlled.iloc[:-1].sum().tolist()
        assert controlled["total"].tolist() == controlled.iloc[:, :-1].sum(axis=1).tolist()
        assert found.suppressed().isna().to_numpy().tolist() == [[False, True], [False, True]]

    def test_said(self):
        frame = pd.DataFrame({"a": [1, 1], "b": [1, 1], "x": [0.5, 1.0]})
        of = frame.dprisk.output_rules
        with pytest.raises(ParameterError, match="whole numbers"):
            of("a", "b", values="x", statistic="sum").rounded()
        with pytest.raises(ParameterError, match="no margins that are sums"):
            of("a", "b", values="x", statistic="mean").controlled_rounding()
        with pytest.raises(ParameterError, match="2 or more"):
            of("a", "b").rounded(1)
        with pytest.raises(ColumnTypeError, match="base is a whole number"):
            of("a", "b").rounded(2.5)


class TestAttacks:
    """What each rule does not stop."""

    def test_suppression_with_totals(self):
        """Primary suppression: one total gives a cell back that is alone in its row."""
        frame = pd.DataFrame({"a": ["x"] * 30 + ["y"] * 13, "b": ["u"] * 15 + ["v"] * 15 + ["u"] * 10 + ["v"] * 3})
        found = frame.dprisk.output_rules("a", "b")
        shown, total = found.suppressed().loc["y"], 13
        assert shown.isna().sum() == 1 and total - shown.sum() == 3

    def test_counts_that_pass_differ_by_one_person(self):
        """Least count: two tables, each of which passes, one person apart."""
        frame = pd.DataFrame({"a": ["x"] * 12, "b": ["u"] * 12, "x": range(12)})
        everybody, without = (
            each.dprisk.output_rules("a", "b", values="x", statistic="sum") for each in (frame, frame[:-1])
        )
        assert everybody.status == without.status == "pass"
        assert (everybody.table - without.table).iloc[0, 0] == 11  # the last person's value

    def test_roundings_of_several_tables(self):
        """Rounding: a table, and the same with k more people who are known, tell the exact count."""
        true = 7
        shifts = np.arange(5)
        rounded = nearest_multiple(true + shifts[:, None], 5)[:, 0]
        jump = int(np.flatnonzero(np.diff(rounded))[0]) + 1  # the first shift that rounds higher
        assert rounded[jump] - 2 - jump == true  # a count that just rounds up ends in 3 or 8


class TestRecord:
    """An ACRO-style record names each rule as ACRO does, with its cells."""

    FRAME = pd.DataFrame({"a": ["x"] * 12 + ["y"], "b": ["u"] * 13, "x": [1.0] * 13})

    def test_record(self):
        record = json.loads(self.FRAME.dprisk.output_rules("a", "b").to_json())["results"]["output_0"]
        assert record["status"] == "fail" and record["summary"] == "fail; threshold: 1 cells"
        wanted = {"suppressed": False, "missing": 0, "threshold": 1, "p-ratio": 0, "nk-rule": 0, "negative": 0}
        assert record["sdc"]["summary"] == wanted
        assert record["sdc"]["cells"]["threshold"] == [[1, 0]]
        assert record["outcome"] == [["ok"], ["least_count"]]
        assert (record["index"], record["columns"]) == (["x", "y"], ["u"])
        assert record["rules"] == {"least_count": 10, "dominance": [2, 0.9], "p_percent": 10.0}

    def test_shown(self):
        found = self.FRAME.dprisk.crosstab("a", "b", rules=True)
        assert repr(found) == (
            "output rules: count\n  -- curator only: these come from the data, do not publish --\n"
            "  cells               1 pass, 1 fail\n  least_count         1 cells\n"
            "b       u\na        \nx      12\ny  1 fail"
        )
        assert "1 fail" in found._repr_html_()
        with pytest.raises(pdrisk.NotPublicError):
            pdrisk.public(found.table)

    def test_dates_and_bins_are_keys(self):
        frame = pd.DataFrame({"a": pd.to_datetime(["2020-01-01"]), "b": pd.cut([1], [0, 5])})
        record = frame.dprisk.output_rules("a", "b").record()
        assert record["columns"] == ["(0, 5]"] and "2020" in json.dumps(record["index"])


class TestRefusals:
    """What is asked wrongly is said in words, and only curators of a ledger may ask."""

    FRAME = pd.DataFrame({"a": [1, 1], "b": [1, 2], "x": [1.0, np.inf], "t": ["u", "v"], "nobody": [None, None]})

    @pytest.mark.whole
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"statistic": "median", "values": "x"}, "rules judge count, sum"),
            ({"statistic": "sum"}, "needs values="),
            ({"values": "x"}, "pass statistic= as well"),
            ({"values": "x", "statistic": "sum"}, "holds infinities"),
            ({"person": "nobody"}, "nobody is in the table"),
            ({"values": "t", "statistic": "sum"}, "holds no numbers"),
            ({"rules": "strict"}, "rules is True"),
            ({"rules": {"least_cuont": 3}}, "Did you mean 'least_count'"),
            ({"rules": {"least_count": 0}}, "1 or more"),
            ({"rules": {"dominance": (2, 1.5)}}, "between 0 and 1"),
            ({"rules": {"p_percent": 0}}, "above 0"),
        ],
    )
    def test_said(self, options, said):
        with pytest.raises(ParameterError, match=said):
            self.FRAME.dprisk.output_rules("a", "b", **options)

    @pytest.mark.parametrize("keys", [(), ("a",)])
    def test_two_keys(self, keys):
        with pytest.raises(ParameterError, match="a table by two keys, of its rows and its columns"):
            self.FRAME.dprisk.output_rules(*keys)
        one = self.FRAME.assign(all="all").dprisk.output_rules("b", "all")
        assert one.people.to_numpy().tolist() == [[1], [1]]

    def test_crosstab_is_noisy_or_judged(self):
        with pytest.raises(ParameterError, match="takes no eps="):
            self.FRAME.dprisk.crosstab("a", "b", rules=True, eps=1)

    def test_curators_only(self, tmp_path):
        with (
            pdrisk.Ledger(tmp_path / "budget.db", dataset="survey", eps=1, policy={}),
            pytest.raises(PolicyError, match="not one of the curators"),
        ):
            self.FRAME.dprisk.crosstab("a", "b", rules=True)
