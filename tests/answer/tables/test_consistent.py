"""Consistent tables: what is already out, adjusted by least squares, against dense matrices; and what is refused."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import pdrisk
from margin_tables import matrix, variance
from pdrisk._ledger import Ledger

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

KEYS = {"region": ["north", "south", "west"], "sex": ["f", "m"], "age": [1, 2, 3]}
RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {name: RANDOM.choice(keys, 2000) for name, keys in KEYS.items()} | {"hours": RANDOM.normal(30, 8, 2000)}
).astype({"region": "string", "sex": "string"})


def counts(*by, frame=FRAME, eps=1.0, **options):
    listed = {"by": list(by), "keys": {each: KEYS[each] for each in by}} if by else {}
    return frame.dprisk.count(eps=eps, **listed, **options)


def means(*by, frame=FRAME, eps=1.0, **options):
    return frame.dprisk.mean("hours", eps=eps, by=list(by), keys=KEYS, bounds=(0, 60), **options)


class TestLeastSquares:
    """Adjusted numbers are those of least squares over all that was measured."""

    def test_counts_against_dense_matrices(self):
        tables = [
            counts("region", "sex", eps=0.5),
            counts("sex", "age"),
            counts("age", eps=2.0),
            counts("age"),
            counts(),
        ]
        found = pdrisk.consistent(tables, same_data=True)
        sizes, axes = (3, 2, 3), [(0, 1), (1, 2), (2,), (2,), ()]
        rows, seen = [], []
        for table, own, eps in zip(tables, axes, [0.5, 1, 2, 1, 1], strict=True):
            uncut = [table.measured.numbers[0]] if isinstance(table, pdrisk.Release) else table["value"]
            deviation = math.sqrt(variance(1 / eps))
            rows.append(matrix(sizes, own) / deviation)
            seen.append(np.array(list(map(float, uncut))) / deviation)
        cells = np.linalg.pinv(np.vstack(rows)) @ np.concatenate(seen)
        for table, own in zip(found, axes, strict=True):
            assert table["value"].to_numpy() == pytest.approx(matrix(sizes, own) @ cells, abs=1e-9)

    def test_they_add_up(self):
        cells, regions, total = pdrisk.consistent([counts("region", "sex"), counts("region"), counts()], same_data=True)
        assert cells["value"].groupby(level=0).sum().to_numpy() == pytest.approx(regions["value"].to_numpy())
        assert regions["value"].sum() == pytest.approx(total["value"].item())

    def test_whole_numbers(self):
        tables = [counts("region", "sex", "age", eps=0.05), counts("sex"), counts("age", "region"), counts()]
        cells, sexes, pairs, total = (each["value"] for each in pdrisk.consistent(tables, whole=True, same_data=True))
        assert cells.dtype == np.int64
        assert cells.min() >= 0
        assert (cells.groupby(level="sex").sum() == sexes).all()
        assert (cells.groupby(level=["age", "region"]).sum() == pairs).all()
        assert cells.sum() == total.item()

    def test_columns_in_any_order(self):
        one, other = counts("region", "sex"), counts("sex", "region")
        found, turned = pdrisk.consistent([one, other], same_data=True)
        assert found.index.equals(one.index)
        assert turned["value"].swaplevel().loc[one.index].to_numpy() == pytest.approx(found["value"].to_numpy())
        assert found["value"].to_numpy() == pytest.approx(
            (one["value"] + other["value"].swaplevel().loc[one.index]).to_numpy() / 2
        )

    @pytest.mark.parametrize("ask", [counts, means], ids=["counts", "means"])
    def test_of_a_table_with_margins_alone_they_are_its_estimates(self, ask):
        options = {"margins": True, "allot": {("sex", "region"): 0.5, ("region",): 0.25, (): 0.25}}
        table = ask("sex", "region", **options, **({"whole": False} if ask is counts else {}))
        found, _ = pdrisk.consistent([table, table], same_data=True)
        columns = ["value", "low", "high"]
        assert found[columns].to_numpy() == pytest.approx(table[columns].to_numpy(), abs=1 if ask is counts else 1e-6)
        assert found["value"].to_numpy() == pytest.approx(table["value"].to_numpy())

    def test_tables_with_margins_that_overlap(self):
        """Against dense least squares over all that was measured of both."""
        tables = [
            counts("region", "sex", margins=True, allot="even", whole=False),
            counts("sex", "age", margins=[["age"]], allot="even", whole=False),
        ]
        sizes, rows, seen = (3, 2, 3), [], []
        for table, columns in zip(tables, [(0, 1), (1, 2)], strict=True):
            said = pdrisk._answer.answers.answer.Answer.from_attrs(table.attrs).measured_tables
            for axes, own in zip(said["axes"], pdrisk._answer.arithmetic.measured.unpacked(said), strict=True):
                deviation = math.sqrt(variance(float(own.law.scale)))
                rows.append(matrix(sizes, tuple(columns[axis] for axis in axes)) / deviation)
                seen.append(own.numbers[0] / deviation)
        cells = np.linalg.pinv(np.vstack(rows)) @ np.concatenate(seen)
        first, second = pdrisk.consistent(tables, same_data=True)
        assert first["value"].iloc[:6].to_numpy() == pytest.approx(matrix(sizes, (0, 1)) @ cells)
        assert first["value"].iloc[-1] == pytest.approx(cells.sum())
        assert second["value"].iloc[-3:].to_numpy() == pytest.approx(matrix(sizes, (2,)) @ cells)
        assert second.index.equals(tables[1].index)

    def test_the_same_numbers_once_more_tell_nothing_new(self):
        table, total = counts("region"), counts()
        once = pdrisk.consistent([table, total], same_data=True)
        for more in ([table, table, total], [table, total, total]):
            twice = pdrisk.consistent(more, same_data=True)
            assert twice[0]["low"].to_numpy() == pytest.approx(once[0]["low"].to_numpy())

    @pytest.mark.parametrize("ask", [counts, pytest.param(means, marks=pytest.mark.slow)], ids=["counts", "means"])
    def test_coverage_and_accuracy(self, ask):
        exact, held, before, after = {}, [], [], []
        for by in (("region", "sex"), ("region",)):
            groups = FRAME.groupby(list(by))
            exact[by] = groups.size() if ask is counts else groups["hours"].mean()
        for _ in range(150):
            tables = [ask("region", "sex", eps=0.5), ask("region", eps=1.0)]
            for table, own, wanted in zip(
                tables, pdrisk.consistent(tables, same_data=True), exact.values(), strict=True
            ):
                wanted = wanted.loc[own.index]
                held.append(((own["low"] <= wanted) & (wanted <= own["high"])).mean())
                before.append(np.square(table["value"] - wanted).mean())
                after.append(np.square(own["value"] - wanted).mean())
        assert 0.94 - 0.02 < np.mean(held) < 0.98
        assert np.mean(after[::2]) < 0.9 * np.mean(before[::2])

    def test_of_nobody_a_mean_is_anywhere(self):
        for _ in range(20):
            self.check_of_nobody()

    def check_of_nobody(self):
        tables = [means("region", "sex", where="age > 9"), means("region", where="age > 9")]
        for table in pdrisk.consistent(tables, same_data=True):
            assert ((table["low"] <= 0) | table["value"].notna()).all()
            assert (table["high"] <= 60).all()


class TestOneState:
    """Tables are adjusted only if they are said to be of the same data."""

    def test_without_a_word(self):
        with pytest.raises(pdrisk.ParameterError, match="Pass same_data=True"):
            pdrisk.consistent([counts("region"), counts()])

    def test_by_the_callers_word(self):
        found = pdrisk.consistent([counts("region"), counts()], same_data=True)
        for table in found:
            text = " ".join(pdrisk.explain(table, "publication").split())
            assert "adjusted by least squares to what was published before, the table by region and the total" in text
            assert "assumes that everybody has a listed key in each" in text
            assert "by the word of whoever asked, that all are about the same data" in text

    def test_by_the_owners_version(self, tmp_path):
        book = {"dataset": "survey", "eps": 9}
        owned = {
            version: pdrisk.Dataset(
                FRAME, name="survey", keys=KEYS, version=version, ledger=Ledger(tmp_path / "budget.db", **book)
            )
            for version in ("first", "second")
        }
        tables = [owned["first"].count(eps=1, by="region"), owned["first"].count(eps=1, by="sex")]
        text = " ".join(pdrisk.explain(pdrisk.consistent(tables)[0], "publication").split())
        assert "that all are about the same data: survey, first" in text
        with pytest.raises(pdrisk.ParameterError, match="different states"):
            pdrisk.consistent([tables[0], owned["second"].count(eps=1, by="sex")])

    def test_columns_of_another_meaning(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="survey", eps=9)
        data = pdrisk.Dataset(FRAME, name="survey", keys=KEYS, version="first", ledger=ledger)
        listed = {"k": [True, False]}
        first = data.assign(k="hours > 30").count(eps=1, by="k", keys=listed)
        same = data.assign(k="hours > 30").count(eps=1, by=["k", "sex"], keys=listed)
        other = data.assign(k="hours > 29.9").count(eps=1, by=["k", "sex"], keys=listed)
        assert len(pdrisk.consistent([first, same])) == 2
        with pytest.raises(pdrisk.ParameterError, match="column k of table 1 is computed otherwise in table 2"):
            pdrisk.consistent([first, other])

    def test_other_codes_for_missing_values(self, tmp_path):
        ledger = Ledger(tmp_path / "budget.db", dataset="survey", eps=9)
        options = {"name": "survey", "keys": KEYS, "version": "first", "ledger": ledger}
        some = pdrisk.Dataset(FRAME, **options, missing={"sex": [KEYS["sex"][0]]})
        tables = [some.count("sex", eps=1, by="region"), pdrisk.Dataset(FRAME, **options).count("sex", eps=1)]
        with pytest.raises(pdrisk.ParameterError, match=r"column sex of table 1 .* other codes"):
            pdrisk.consistent(tables)

    def test_one_draw_in_two_orders_counts_once(self):
        table = FRAME.dprisk.count(eps=1, by=["region", "sex"], keys=KEYS, measured=True)
        widths = [
            (found["high"] - found["low"]).mean()
            for other in (table.copy(), table.iloc[::-1], table.sort_values("value"))
            for found in pdrisk.consistent([table, other], same_data=True)
        ]
        assert widths == pytest.approx([widths[0]] * 6)

    def test_tables_with_margins_in_another_order(self):
        table = FRAME.dprisk.count(eps=1, by=["region", "sex"], keys=KEYS, margins=True, measured=True)
        with pytest.raises(pdrisk.ParameterError, match=r"as it was returned\.$"):
            pdrisk.consistent([table.sort_values("value"), FRAME.dprisk.count(eps=1)], same_data=True)

    def test_nothing_is_read_or_paid(self, tmp_path, monkeypatch):
        ledger = Ledger(tmp_path / "budget.db", dataset="survey", eps=2)
        with ledger:
            tables = [counts("region"), counts("sex")]
            monkeypatch.setattr("pdrisk.engines.numpy.frame.FrameEngine.read", lambda *_: pytest.fail("reads"))
            pdrisk.consistent(tables, same_data=True)
        assert ledger.remaining().spent == 2

    def test_the_same_from_a_file(self, tmp_path):
        """What is published is enough."""
        tables = [counts("region", "sex"), counts("region")]
        for at, table in enumerate(tables):
            table.to_parquet(tmp_path / f"{at}.parquet")
        stored = [pd.read_parquet(tmp_path / f"{at}.parquet") for at in range(2)]
        for one, other in zip(
            pdrisk.consistent(tables, same_data=True), pdrisk.consistent(stored, same_data=True), strict=True
        ):
            pd.testing.assert_frame_equal(one, other, check_index_type=False)


class TestDoubt:
    """Tables that lose different people to missing keys are told from those that do not."""

    def test_five_percent_missing(self):
        frame = FRAME.assign(sex=FRAME["sex"].where(np.arange(len(FRAME)) % 20 > 0))
        with pytest.warns(pdrisk.DoubtfulReleaseWarning, match="no listed key in another"):
            pdrisk.consistent([counts("region", "sex", frame=frame), counts("region", frame=frame)], same_data=True)

    def test_standard_deviations_are_what_they_are_called(self, monkeypatch):
        """What a warning is about varies by 1 without differences; Laplace noise has long tails."""
        found = []
        monkeypatch.setattr(
            "pdrisk._answer.tables.consistent._warn_of_difference", lambda own: found.append(own.surprise)
        )
        for _ in range(200):
            pdrisk.consistent([counts("region", "sex"), counts("region"), counts("sex")], same_data=True)
        assert abs(np.mean(found)) < 0.3
        assert 0.7 < np.std(found) < 1.3

    @pytest.mark.slow
    def test_no_false_alarm(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", pdrisk.DoubtfulReleaseWarning)
            for _ in range(100):
                tables = [counts("region", "sex", eps=0.3), counts("region"), counts("sex", "age"), counts()]
                pdrisk.consistent(tables, same_data=True)


def edited(table):
    return table.iloc[::-1]


REFUSED = {
    "one table": (lambda: [counts("region")], {}, "takes 2 to 100 tables"),
    "a table alone": (lambda: counts("region"), {}, "takes a list of tables"),
    "something else": (lambda: [counts("region"), 3], {}, "table 2 is no answer"),
    "other filters": (lambda: [counts("region"), counts(where="age > 1")], {}, "different filters"),
    "a mask": (
        lambda: [counts("region"), counts("sex", where=lambda frame: frame["age"] > 1)],
        {},
        "mask, a function",
    ),
    "other statistics": (lambda: [counts("region"), means("sex")], {}, "by different bounds or mechanisms"),
    "other keys": (
        lambda: [counts("region"), FRAME.dprisk.count(eps=1, by="region", keys=["north", "east"])],
        {},
        "other keys of region",
    ),
    "some keys": (
        lambda: [counts("region"), FRAME.dprisk.count(eps=1, by=["sex", "age"], keys=[("f", 1), ("m", 2)])],
        {},
        "all combinations",
    ),
    "medians": (
        lambda: [FRAME.dprisk.median("hours", eps=1, by=by, keys=KEYS, bounds=(0, 60)) for by in ("sex", "age")],
        {},
        "no sums with noise",
    ),
    "shares": (lambda: [counts("region", normalize="all"), counts("sex")], {}, "has shares"),
    "adjusted tables": (
        lambda: pdrisk.consistent([counts("region"), counts("sex")], same_data=True),
        {},
        "numbers that were adjusted already",
    ),
    "edited rows of margins": (lambda: [edited(counts("region", margins=True)), counts("sex")], {}, "were edited"),
    "several statistics": (
        lambda: [counts("sex"), FRAME.dprisk.agg({"hours": ["mean", "sum"]}, eps=1, bounds=(0, 60))],
        {},
        "several statistics",
    ),
    "edited rows": (lambda: [edited(counts("region")), counts("sex")], {}, "measured=True"),
    "whole sums": (lambda: [means("region"), means("sex")], {"whole": True}, "whole=True is for numbers of records"),
    "whole without cells": (lambda: [counts("region"), counts("sex")], {"whole": True}, "needs a table by all columns"),
    "a crosstab": (
        lambda: [FRAME.dprisk.crosstab("region", "sex", eps=1, keys=KEYS), counts("sex")],
        {},
        "not those of crosstab",
    ),
    "people in several groups": (
        lambda: [
            FRAME.assign(pid=FRAME.index % 500).dprisk.count(eps=1, person="pid", groups=2, by=by, keys=KEYS)
            for by in ("sex", "age")
        ],
        {},
        "not about the same records",
    ),
    "a word that is none": (lambda: [counts("region"), counts()], {"same_data": "yes"}, "same_data"),
}


@pytest.mark.parametrize(("tables", "options", "said"), REFUSED.values(), ids=REFUSED)
def test_refused(tables, options, said):
    """What cannot be adjusted is told, with what to write instead."""
    with pytest.raises(pdrisk.ParameterError, match=said):
        pdrisk.consistent(tables(), **{"same_data": True} | options)


def test_beyond_a_million_cells(monkeypatch):
    """A warning, and the estimates as they are."""
    monkeypatch.setattr("pdrisk._answer.tables.consistent.MOST_WHOLE", 17)
    tables = [counts("region", "sex", "age"), counts("sex")]
    with pytest.warns(pdrisk.DoubtfulReleaseWarning, match="found for 17 cells at most"):
        (cells, _) = pdrisk.consistent(tables, whole=True, same_data=True)
    assert cells["value"].dtype == np.float64
    assert "whole numbers" not in pdrisk.explain(cells, "publication")


def test_components_that_no_table_measured_are_not_asked_for():
    """Each published table is measured itself, also where no table has all columns."""
    tables = [counts(*pair) for pair in itertools.combinations(KEYS, 2)]
    for table, own in zip(tables, pdrisk.consistent(tables, same_data=True), strict=True):
        assert (own["high"] - own["low"]).max() < (table["high"] - table["low"]).max() + 1
