"""People with several rows: which count, what they become, and what each answer then costs a person."""

import itertools
import math
import re
import warnings
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from ledgers import typed
from pdrisk import Dataset, ParameterError
from pdrisk._core import contributions
from pdrisk._core.universe import Universe
from pdrisk._model.groups.integer_keys import places_of_integers
from pdrisk._model.unit import Unit
from pdrisk.engines.numpy import person_records as people
from pdrisk.engines.numpy.person_records import Persons
from pdrisk.engines.numpy.smallest_hashes import copies, perhaps_repeated, smallest_of_each
from pdrisk.risk import exact_identifiability

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = (0, 10)
WAYS = {
    "mean": lambda x: x.mean(), "sum": lambda x: x.sum(), "min": lambda x: x.min(), "max": lambda x: x.max(),
    "count": lambda x: len(x),
}  # fmt: skip


def panel(people=40, seed=0):
    """From one to nine rows a person, in several groups; some values are equal, missing or outside the bounds."""
    draw = np.random.default_rng(seed)
    pid = np.repeat(np.arange(people), draw.integers(1, 10, people))
    frame = pd.DataFrame({"pid": pid, "g": draw.choice(list("abcd"), len(pid))})
    frame["x"] = draw.choice([-3, 0, 0.5, 1.25, 4, 4, 9.5, 12, math.nan], len(pid))
    frame["sex"] = np.where(frame["pid"] % 2, "f", "m")
    return frame.sample(frac=1, random_state=seed, ignore_index=True)


FRAME = typed(panel())
LISTED = {"by": "g", "keys": list("abc")}
KEYS = [("a",), ("b",), ("c",), ("d",)]


def kept(frame, unit, *, codes=None, groups=1, secret=b"s" * 32):
    """The rows of a frame that count, as records of the column x."""
    persons = Persons(frame, unit, lambda: secret)
    values = frame["x"].to_numpy()
    keys = None if codes is None else KEYS[:groups]
    return persons.records((values, None), Universe(*map(float, BOUNDS)), None, codes, keys)


def content(frame, found):
    """Which contents of whom count, how often: rows have no other name."""
    columns = ["pid", "x"] if found.codes is None else ["pid", "x", "g"]
    return frame[found.selected].value_counts(columns).to_dict()


def codes_of(frame):
    return frame["g"].map({"a": 0, "b": 1, "c": 2, "d": 3}).to_numpy(np.int32)


class TestWhichRowsCount:
    """Whoever else is in the data, and in whatever order they stand, the same rows of a person count."""

    @pytest.mark.parametrize(("rows", "groups"), [(1, 1), (2, 1), (2, 2), (3, 4), (1, 3)])
    def test_never_more(self, rows, groups):
        found = kept(FRAME, Unit(("pid",), rows=rows, groups=groups), codes=codes_of(FRAME), groups=4)
        own = FRAME[found.selected]
        assert own.groupby(["pid", "g"]).size().max() <= rows
        assert own.groupby("pid")["g"].nunique().max() <= groups
        present = FRAME[FRAME["x"].notna()]
        expected = present.groupby(["pid", "g"]).size().clip(upper=rows).unstack(fill_value=0).to_numpy()
        inside = np.sort(np.where(expected > 0, expected, 99), axis=1)[:, :groups]
        least, most = np.where(inside < 99, inside, 0).sum(axis=1), np.sort(expected, axis=1)[:, -groups:].sum(axis=1)
        counted = own.groupby("pid").size()
        assert (counted <= most).all() and (counted >= least).all()

    @pytest.mark.parametrize("rows", [1, 2, 5])
    @pytest.mark.parametrize("listed", [1, 3])
    def test_in_all_groups_together(self, rows, listed):
        """At most so many of the rows in listed groups; if there are fewer, all."""
        unit = Unit(("pid",), rows=rows, groups=min(rows, listed), overall=True)
        codes = np.minimum(codes_of(FRAME), listed).astype(np.int32)
        found = kept(FRAME, unit, codes=codes, groups=listed)
        present = FRAME[FRAME["x"].notna() & (codes < listed)]
        expected = present.groupby("pid").size().clip(upper=rows)
        assert FRAME[found.selected].groupby("pid").size().to_dict() == expected.to_dict()

    def test_each_row_of_all_groups_is_as_likely(self):
        """Equal rows in two groups among them, and rows that are only counted."""
        frame = pd.DataFrame({"pid": 1, "g": list("aabc"), "x": [2.0, 2.0, 2.0, 5.0]})
        unit, draws = Unit(("pid",), rows=1, overall=True), 700
        secrets = np.random.default_rng(5).bytes(32 * draws)
        for values in (frame["x"].to_numpy(), None):
            n = np.zeros(4)
            for at in range(draws):
                persons = Persons(frame, unit, lambda at=at: secrets[32 * at : 32 * at + 32])
                n += persons.records((values, None), Universe(0.0, 10.0), None, codes_of(frame), KEYS).selected
            share = frame.assign(n=n / draws).groupby("g")["n"].sum()
            np.testing.assert_allclose(share, [0.5, 0.25, 0.25], atol=5 * math.sqrt(0.25 / draws))

    @pytest.mark.parametrize(
        "unit",
        [
            Unit(("pid",), rows=2),
            Unit(("pid",), rows=1, groups=2),
            Unit(("pid",), rows=2, groups=2, overall=True),
        ],
    )
    def test_order_and_others_do_not_matter(self, unit):
        codes = codes_of(FRAME) if unit.groups > 1 else None
        whole = content(FRAME, kept(FRAME, unit, codes=codes, groups=4 if unit.groups > 1 else 1))
        draw = np.random.default_rng(1)
        for pid in [*FRAME["pid"].unique()[:8], None]:
            rest = FRAME[FRAME["pid"] != pid].iloc[draw.permutation((FRAME["pid"] != pid).sum())]
            own = content(
                rest,
                kept(
                    rest,
                    unit,
                    codes=None if codes is None else codes_of(rest),
                    groups=len(set("abcd")) if unit.groups > 1 else 1,
                ),
            )
            assert own == {key: n for key, n in whole.items() if key[0] != pid}

    def test_another_secret_chooses_others(self):
        unit = Unit(("pid",), rows=1)
        chosen = [content(FRAME, kept(FRAME, unit, secret=bytes([at]) * 32)) for at in range(3)]
        assert chosen[0] != chosen[1] != chosen[2]

    def test_each_row_is_as_likely(self):
        """Over secrets: each of four rows, two of them equal, counts a quarter of the time."""
        frame = pd.DataFrame({"pid": 1, "g": "a", "x": [1.0, 2.0, 2.0, 5.0]})
        unit, draws = Unit(("pid",), rows=1), 700
        secrets = np.random.default_rng(5).bytes(32 * draws)
        chosen = [kept(frame, unit, secret=secrets[32 * at : 32 * at + 32]).selected for at in range(draws)]
        share = frame.assign(n=np.sum(chosen, axis=0)).groupby("x")["n"].sum() / draws
        np.testing.assert_allclose(share, [0.25, 0.5, 0.25], atol=5 * math.sqrt(0.25 / draws))

    def test_values_are_chosen_alike_of_everybody(self):
        """The hash covers the person, too: else everybody would count with the same of equal values."""
        frame = pd.DataFrame({"pid": np.repeat(np.arange(2000), 2), "g": "a", "x": np.tile([1.0, 2.0], 2000)})
        assert 0.45 < frame["x"][kept(frame, Unit(("pid",), rows=1)).selected].eq(1).mean() < 0.55

    @pytest.mark.parametrize("ids", [
        lambda pid: pid.astype(float), lambda pid: "p" + pid.astype(str), lambda pid: pd.Categorical(pid),
        lambda pid: pd.array(pid, dtype="Int64"), lambda pid: pd.Timestamp("2020-01-01") + pd.to_timedelta(pid, "D"),
        lambda pid: [(f"{each}" if each % 2 else each) for each in pid],
    ])  # fmt: skip
    def test_ids_of_any_kind(self, ids):
        frame = FRAME.assign(pid=ids(FRAME["pid"]))
        own = frame[kept(frame, Unit(("pid",), rows=2)).selected]
        assert own.groupby(FRAME["pid"]).size().tolist() == (
            FRAME[FRAME["x"].notna()].groupby("pid").size().clip(upper=2).tolist()
        )

    @pytest.mark.parametrize("ids", [
        np.asarray, lambda pid: pid * 10**15, lambda pid: pid.astype(float).where(pid != 3), lambda pid: pid % 2 == 0,
        lambda pid: pd.array(pid.where(pid != 3), dtype="Int64"), lambda pid: "p" + pid.astype(str),
    ])  # fmt: skip
    @pytest.mark.parametrize("per_person", [None, "mean", "one"])
    def test_a_count_is_that_of_different_people(self, ids, per_person):
        """Those with a row that is selected, and holds a value of the column if one is named."""
        frame = FRAME.assign(pid=ids(FRAME["pid"]))
        d = Dataset(frame, person="pid", per_person=per_person)
        known = frame[frame["pid"].notna()]
        for where, column in ((None, None), ("g == 'a'", None), (None, "x"), ("x > 2", "x"), ("x > 1e9", None)):
            rows = known if where is None else known.query(where)
            rows = rows if column is None else rows[rows[column].notna()]
            release = d.count(column, eps=1, where=where, rows=1 if column and per_person is None else None)
            assert release.curator.n == len({*rows["pid"]})
            unlisted = frame["pid"].isna() if where is None else frame["pid"].isna() & frame.eval(where)
            assert release.curator.unlisted == unlisted.sum()

    def test_without_an_id_nobody_is_known(self):
        frame = FRAME.astype({"pid": float})
        frame.loc[frame["pid"] == 3, "pid"] = math.nan
        d = Dataset(frame, person="pid")
        release = d.count(eps=100)
        assert abs(release.value - 39) <= 1
        assert release.curator.unlisted == (FRAME["pid"] == 3).sum()

    def test_a_persons_day(self):
        """Of two columns together each combination is somebody; where one is missing nobody is known."""
        frame = pd.DataFrame({"pid": [1, 1, 1, 2, 2, None], "day": [1, 1, 2, 1, None, 1], "x": 1.0})
        release = Dataset(frame, person=["pid", "day"]).count(eps=100)
        assert (release.value, release.curator.n, release.curator.unlisted, release.unit) == (3, 3, 2, "pid, day")


def chosen_of(frame, rows, groups=None):
    """The values of x that count, in order, of all groups g together where a person may be in so many."""
    keys = None if groups is None else [(key,) for key in range(3)]
    codes = None if groups is None else frame["g"].to_numpy().astype(np.int32)
    unit = Unit(("pid",), None, rows, 1 if groups is None else groups)
    persons = Persons(frame, unit, lambda: b"q" * 32)
    records = persons.records((frame["x"].to_numpy(dtype=float), None), None, None, codes, keys)
    return sorted(frame["x"].to_numpy()[records.selected].tolist())


class TestSmallestHashes:
    """The rows that count are those that come first when owners and whole hashes are sorted."""

    @pytest.mark.parametrize("bits", [64, 63, 20, 1])
    @pytest.mark.parametrize("owners", [1, 2, 5, 300])
    @pytest.mark.parametrize("most", [1, 2, 7])
    def test_definition(self, bits, owners, most):
        draw = np.random.default_rng(bits + owners)
        of = np.append(np.arange(owners), draw.integers(0, owners, 400))
        hashes = draw.integers(0, 2**64, len(of), dtype=np.uint64) >> np.uint64(64 - bits)  # the first bits are alike
        if bits < 63:
            hashes = np.unique(hashes)[draw.permutation(len(of)) % len(np.unique(hashes))]
        found = smallest_of_each(of, hashes, most)
        for owner in range(owners):
            own = of == owner
            assert np.sort(hashes[own & found]).tolist() == np.sort(hashes[own])[:most].tolist()

    def test_owners_without_anything(self):
        of, hashes = np.array([4, 4, 1, 4]), np.array([9, 2, 5, 2**63], dtype=np.uint64)
        assert smallest_of_each(of, hashes, 2).tolist() == [True, True, True, False]

    @pytest.mark.parametrize("different", [1, 3, 200, 2**64])
    def test_copies(self, different):
        draw = np.random.default_rng(different % 1000)
        for size, owners in itertools.product((0, 1, 2, 500, 70_000), (1, 40)):
            of = draw.integers(0, owners, size)
            contents = draw.integers(0, different, size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            again, number = copies(of, contents)
            found = pd.Series(np.zeros(size, dtype=np.int64))
            found[again] = number
            grouped = found.groupby([of, contents])
            assert grouped.transform("size").sub(1).equals(grouped.transform("max"))  # so many beside the first
            assert not pd.DataFrame({"of": of, "content": contents, "number": found}).duplicated().any()
            assert set(again) <= set(perhaps_repeated(contents))

    def test_few_that_do_not_repeat_are_looked_at(self):
        contents = np.random.default_rng(1).integers(0, 2**64, 100_000, dtype=np.uint64)
        assert len(perhaps_repeated(contents)) < 10_000

    @pytest.mark.parametrize("ids", [lambda i: i, lambda i: i * 10**9, lambda i: f"person {i}", lambda i: i % 7 + 0.5])
    def test_as_many_copies_as_likely(self, ids):
        """Of nine equal rows and another, each is chosen as often: by whole ids, near or far apart, and by others."""
        people = [10_000, 7][ids(8) == 1.5]
        frame = pd.DataFrame(
            {"pid": [ids(i) for i in range(people) for _ in range(10)], "x": ([0.0] * 9 + [1]) * people}
        )
        share = np.mean(chosen_of(frame, 1))
        assert abs(share - 0.1) < 5 * (0.09 / people) ** 0.5

    @pytest.mark.parametrize("last", [9, 10**6])
    @pytest.mark.parametrize("rows", [1, 2])
    def test_ids_of_the_other_byte_order(self, last, rows):
        frame = pd.DataFrame({"pid": np.append(np.arange(59) // 6, last).astype(">i4"), "x": np.arange(60.0)})
        found, native = (chosen_of(own, rows) for own in (frame, frame.assign(pid=frame["pid"].astype("int32"))))
        assert found == native

    @pytest.mark.parametrize(
        ("dtype", "least"), [("int8", -128), ("int64", -40), ("int64", -(2**63)), ("uint64", 2**64 - 256), ("int32", 0)]
    )
    def test_places_of_ids(self, dtype, least):
        """An id below 0 is somebody, and the distance of any two may need one bit more than an id has."""
        ids = [least + int(place) for place in np.random.default_rng(1).integers(0, 256, 200)]
        places = places_of_integers(np.array(ids, dtype=dtype))
        assert places.tolist() == [number - min(ids) for number in ids]
        assert places_of_integers(np.array([least, least + 199], dtype="O").astype(dtype)) is None
        frame = pd.DataFrame({"pid": np.array(ids, dtype=dtype), "x": np.arange(200.0)})
        assert len(chosen_of(frame, 1)) == len(set(ids))

    def test_half_a_pair_of_surrogates(self):
        """Whether a question fails must not tell of an id or a text; pandas 2.2 may take two such texts for one."""
        ids = pd.Series(["a", "a", "b", "b", "c", "\ud800"], dtype=object)
        number = len(chosen_of(pd.DataFrame({"pid": ids, "x": np.arange(6.0)}), 1))  # no text that pytest would show
        texts = pd.DataFrame({"pid": [1] * 6, "x": ids})
        different = texts.dprisk.nunique("x", eps=10**6, person="pid", rows=2).value
        assert number == 4 and 0 < different <= 2

    def test_equal_ids_of_several_types(self):
        """1, True and 1.0 are one person, with the same rows in the same group in whatever order."""
        ids = pd.Series([1, True, 1.0, 2, "2"] * 6, dtype=object)
        frame = pd.DataFrame({"pid": ids, "x": np.arange(30.0), "g": np.arange(30) % 3})
        orders = [frame, *(frame.sample(frac=1, random_state=seed) for seed in range(8))]
        assert len({tuple(chosen_of(own, 1, groups=1)) for own in orders}) == 1

    @pytest.mark.parametrize("rows", [1, 3, 8])
    @pytest.mark.parametrize("ids", [lambda i: i, lambda i: i * 10**9, lambda i: f"person {i}"])
    def test_others_do_not_matter(self, ids, rows):
        """Nor do their ids, their rows or the order: the same rows of everybody else count."""
        draw = np.random.default_rng(rows)
        frame = pd.DataFrame({"pid": draw.integers(0, 30, 400), "x": draw.integers(0, 6, 400) / 1.0})
        frame["pid"] = frame["pid"].map(ids)

        def chosen(frame):
            asked = Dataset(frame, person="pid", bounds={"x": (0, 6)})
            object.__setattr__(asked._known_people, "secret", lambda: b"q" * 32)
            sums = asked.sum("x", eps=10**9, rows=rows, by="pid_too", keys=kept)
            return sums["value"].round(6).tolist()

        kept = [ids(i) for i in range(5, 30)]
        frame["pid_too"] = frame["pid"]
        others = frame[frame["pid"].isin(kept)].sample(frac=1, random_state=1)
        assert chosen(frame) == chosen(others)


class TestPairs:
    """However the pairs of a person and a group are looked up, each that occurs is found once."""

    PAIRS = st.lists(st.integers(0, 30), max_size=20)

    @pytest.mark.parametrize("dense", [0, 4, 100])
    @given(pairs=PAIRS)
    def test_numbers(self, dense, pairs):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(contributions, "DENSE", dense)
            numbers = contributions.numbered(np.array(pairs, dtype=np.int64), 31)
        assert numbers.tolist() == [sorted(set(pairs)).index(pair) for pair in pairs]

    @pytest.mark.parametrize("dense", [0, 4, 100])
    @given(pairs=PAIRS)
    def test_one_row_of_each(self, dense, pairs):
        rows = np.arange(len(pairs)) * 3 + 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(people, "DENSE", dense)
            found = people._one_of_each(np.array(pairs, dtype=np.int64), rows, 31)
        assert sorted(pairs[(row - 1) // 3] for row in found.tolist()) == sorted(set(pairs))


class TestOneNumberAPerson:
    """`per_person`: the numbers are those of groupby, whatever the order of rows, to the last digit."""

    @pytest.mark.parametrize("way", WAYS)
    def test_definition(self, way):
        found = kept(FRAME, Unit(("pid",), per_person=way))
        own = FRAME[FRAME["x"].notna()].groupby("pid")["x"].agg(WAYS[way])
        np.testing.assert_allclose(np.sort(found.values), np.sort(own), rtol=1e-8)
        if way in ("sum", "count", "min", "max"):  # of numbers with few digits: exactly
            assert np.sort(found.values).tolist() == np.sort(own).tolist()

    @pytest.mark.parametrize("way", WAYS)
    def test_no_order_changes_a_digit(self, way):
        frame = FRAME.assign(x=np.random.default_rng(3).normal(5, 3, len(FRAME)))
        unit = Unit(("pid",), per_person=way)
        shuffled = frame.sample(frac=1, random_state=8)
        assert np.sort(kept(frame, unit).values).tolist() == np.sort(kept(shuffled, unit).values).tolist()

    def test_in_each_group(self):
        codes = codes_of(FRAME)
        found = kept(FRAME, Unit(("pid",), per_person="mean", groups=4), codes=codes, groups=4)
        own = FRAME[FRAME["x"].notna()].groupby(["g", "pid"])["x"].mean()
        for code, g in enumerate("abcd"):
            np.testing.assert_allclose(np.sort(found.values[found.codes == code]), np.sort(own[g]), rtol=1e-8)

    def test_far_outside_the_bounds(self):
        """Rows count as far as a thousand times the bounds, so that no infinity or sentinel decides a mean."""
        frame = pd.DataFrame({"pid": [1, 1, 2], "g": "a", "x": [math.inf, 5.0, 5.0]})
        found = kept(frame, Unit(("pid",), per_person="mean"))
        assert sorted(found.values) == [5.0, (0 + 10240 + 5) / 2]

    @pytest.mark.parametrize(("way", "share"), [("any", 1.0), ("all", 0.5), ("mean", 0.75)])
    def test_conditions(self, way, share):
        frame = pd.DataFrame({"pid": [1, 1, 2, 2], "x": [1, 9, 9, 9]})
        release = Dataset(frame, person="pid").proportion("x > 5", eps=10**6, per_person=way)
        assert release.value == pytest.approx(share, abs=1e-4)


class TestNoise:
    """The noise is that of everything a person has, and the answer says so."""

    def test_counts(self):
        d = Dataset(FRAME, person="pid")
        assert (d.count(eps=1).scale, d.count(eps=1, rows=3).scale) == (1, 3)
        table = d.count(eps=1, rows=3, by="g", keys=list("abcd"), groups=2, curator=True)
        assert np.unique(table["high"] - table["low"]).max() == pytest.approx(2 * 6 * math.log(20), abs=3)

    def test_rows_of_all_groups_together(self):
        """Three rows move a table of counts by 3, however many groups it has; extremes by one a group that is left."""
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS})
        by = {"by": "g", "keys": list("abcd"), "eps": 1, "rows": 3}

        def scale(ask, **asked):
            return pdrisk._answer.answers.answer.Answer.from_attrs(ask(**by | asked).attrs).lines[0].scale

        assert scale(d.count) == 3
        assert scale(d.count, keys=["a"]) == 3
        assert scale(d.count, groups=3) == 9
        assert scale(lambda **asked: d.sum("x", mechanism="laplace", **asked)) == 30
        ends = [
            scale(lambda **asked: d.max("x", mechanism="laplace", **asked), keys=list("abcd")[:n]) for n in (1, 2, 3)
        ]
        assert ends == [10, 20, 30]
        means = [
            scale(lambda **asked: d.mean("x", mechanism="laplace", **asked), keys=list("abc")[:n]) for n in (1, 2, 3)
        ]
        assert means == pytest.approx([7.5, 5 * (4 / 3 + 1), 15], rel=1e-8)

    @pytest.mark.parametrize(("options", "times"), [({"rows": 3}, 3), ({"per_person": "mean"}, 1), ({"rows": 1}, 1)])
    def test_means(self, options, times):
        release = Dataset(FRAME, person="pid", bounds={"x": BOUNDS}).mean("x", eps=1, **options)
        assert release.noisy.mechanism.eps * times == 1 == release.eps
        assert release.risk.worst_case == pytest.approx(1 / (1 + math.exp(-1)))
        assert release.risk.success == pytest.approx(1 - math.exp(-0.5) / 2)

    def test_laplace_noise_knows_what_a_person_can_change(self):
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS})
        scales = [d.mean("x", eps=1, rows=k, mechanism="laplace").scale for k in (1, 2, 3)]
        assert scales == pytest.approx([5, 20 / 3, 7.5], rel=1e-8)
        assert d.max("x", eps=1, rows=7, mechanism="laplace").scale == 10

    def test_a_ledger_pays_once_for_all_rows(self, book):
        ledger = book(eps=1)
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS}, ledger=ledger)
        d.mean("x", eps=0.5, rows=4)
        d.count(eps=0.5, by="g", keys=list("abcd"), groups=3)
        assert ledger.remaining().eps == 0

    def test_attackers_do_no_better(self):
        """The best attacker on a count of rows, who knows everybody else: right as often as promised, no more."""
        draws = 4000  # groups of their own, with a person of three rows and one of a single row in each
        of_three, single = (pd.DataFrame({"pid": np.arange(draws) + start, "g": range(draws)}) for start in (0, draws))
        data = [pd.concat([of_three] * 3 + [single]), single]
        with_person, others = (
            Dataset(each, person="pid").count(eps=1, rows=3, groups=1, by="g", keys=range(draws))["value"]
            for each in data
        )
        claimed = Dataset(data[0], person="pid").count(eps=1, rows=3).risk.success
        best = max(((with_person >= t).mean() + (others < t).mean()) / 2 for t in range(-5, 10))
        assert claimed - 0.03 < best < claimed + 0.03


@pytest.mark.filterwarnings("ignore::pdrisk.DoubtfulReleaseWarning")
class TestLeftOut:
    """Every text says by which rule rows or groups are left out; how much that is, curators alone are told."""

    LIMITS = (
        (lambda d, **how: d.mean("x", rows=2, **how), "at most 2 rows of each pid count;"),
        (lambda d, **how: d.mean("x", rows=1, **how), "one row of each pid counts;"),
        (lambda d, **how: d.count(rows=2, where="x > 1", **how), "at most 2 rows of each pid count;"),
        (lambda d, **how: d.nunique("g", rows=3, **how), "at most 3 rows of each pid count;"),
        (
            lambda d, **how: d.mean("x", rows=2, **LISTED, **how),
            "at most 2 rows of each pid count in all groups",
        ),
        (
            lambda d, **how: d.mean("x", rows=2, groups=1, **LISTED, **how),
            "at most 2 rows of each pid count in each group, each pid counts in one group;",
        ),
        (lambda d, **how: d.count(groups=1, **LISTED, **how), "each pid counts in one group;"),
        (
            lambda d, **how: d.count("x", rows=1, **LISTED, **how),
            "one row of each pid counts in all groups together",
        ),
        (
            lambda d, **how: d.median("x", per_person="mean", groups=2, **LISTED, **how),
            "each pid counts in at most 2 groups;",
        ),
    )
    NOTHING = (
        lambda d, **how: d.count(**how),
        lambda d, **how: d.count("x", rows=1, **how),
        lambda d, **how: d.mean("x", per_person="mean", **how),
        lambda d, **how: d.count(groups=3, **LISTED, **how),
        lambda d, **how: d.mean("x", per_person="max", by="sex", keys=["f", "m"], **how),
        lambda d, **how: d.mean("x", unit="row", **how),
    )

    @staticmethod
    def data(frame=FRAME):
        return Dataset(frame, person="pid", bounds={"x": BOUNDS}, constant="sex")

    @pytest.mark.whole
    @pytest.mark.parametrize(("ask", "rule"), LIMITS)
    def test_rules_are_said(self, ask, rule):
        """The same of data in which nothing is left out; the interval is that of the truncated answer."""
        for frame in (FRAME, FRAME.drop_duplicates("pid")):
            answer = ask(self.data(frame), eps=1)
            label, analysts = (" ".join(pdrisk.explain(answer, to).split()) for to in ("publication", "analyst"))
            assert f"; {rule}" in label.partition("asked of")[2] and "asked of all records unit" not in label
            assert f"left out {rule}" in analysts
            for text in (label, analysts):
                assert "how much that leaves out is not known" in text
                assert "the interval is that of the truncated answer" in text or "rank asked for" in text
        assert "0 to 10" not in repr(answer) or ("the others are left out" in repr(answer)) == ("row" in rule)

    @pytest.mark.whole
    @pytest.mark.parametrize("ask", NOTHING)
    def test_nothing_is_left_out(self, ask):
        label = pdrisk.explain(ask(self.data(), eps=1), "publication")
        assert "truncated" not in label and "how much that leaves out" not in label

    @pytest.mark.parametrize("stored", ["frame", "table"])
    @pytest.mark.parametrize("rows", [1, 2, 9])
    def test_the_share(self, stored, rows):
        data = FRAME
        if stored == "table":
            con = duckdb.connect()
            con.execute("CREATE TABLE people AS SELECT * FROM FRAME")
            data = con, "people"
        d, known = self.data(data), FRAME[FRAME["x"].notna()]
        share = 1 - known.groupby("pid").size().clip(upper=rows).sum() / len(known)
        for ask in (d.mean, d.median, d.nunique):
            assert ask("x", eps=1, rows=rows).curator.left_out == pytest.approx(share)
        assert d.count("x", eps=1, rows=1).curator.left_out == d.count(eps=1).curator.left_out == 0
        assert d.mean("x", eps=1, per_person="mean").curator.left_out == 0

        def warned(ask, **how):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                ask(eps=1, curator=True, **how)
            said = [str(each.message) for each in caught if each.category is pdrisk.DoubtfulReleaseWarning]
            return [float(re.search(r"leave out ([0-9.]+) %", each)[1]) / 100 for each in said]

        listed = known[known["g"].isin(list("abc"))]
        share = 1 - listed.groupby("pid").size().clip(upper=rows).sum() / len(listed)
        assert warned(partial(d.mean, "x"), rows=rows, **LISTED) == pytest.approx(
            [share] * bool(share > 0.01), abs=6e-4
        )
        inside = listed.groupby(["pid", "g"]).size().clip(upper=rows)
        share = 1 - inside.sum() / len(listed)
        found = warned(partial(d.mean, "x"), rows=rows, groups=3, **LISTED)
        assert found == pytest.approx([share] * bool(share > 0.01), abs=6e-4)
        pairs = FRAME[FRAME["g"].isin(list("abc"))].drop_duplicates(["pid", "g"])
        share = 1 - pairs["pid"].nunique() / len(pairs)
        assert warned(d.count, groups=1, **LISTED) == pytest.approx([share], abs=6e-4)

    def test_nobody_else_is_warned(self, book):
        """Nor somebody who asks without a ledger, and does not ask for the curator's numbers."""
        warnings.simplefilter("error", pdrisk.DoubtfulReleaseWarning)
        ledger = book(eps=9)
        for how in ({"ledger": ledger}, {}):
            d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS}, **how)
            for ask, _ in self.LIMITS:
                ask(d, eps=0.9)
        with pytest.raises(pdrisk.DoubtfulReleaseWarning, match="This comes from the data: do not publish it"):
            self.data().mean("x", eps=1, rows=1, curator=True)

    def test_nobody_has_more_rows_than_a_join(self):
        d = self.data(FRAME.drop_duplicates("pid")).join(pd.DataFrame({"g": list("abcd"), "h": [1, 1, 2, 2]}), on="g")
        assert "truncated" not in pdrisk.explain(Dataset.count(d, eps=1), "publication")


class TestRisk:
    def test_of_each_person(self):
        """Who has more of the rows that count loses more, up to eps; the rows of a person all say the same."""
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS})
        risk = d.individual_risk("x", "mean", eps=1, rows=3)
        present = FRAME[FRAME["x"].notna()]
        expected = present.groupby("pid").size().clip(upper=3) / 3
        counted = risk.groupby(FRAME["pid"]).max().reindex(expected.index)
        np.testing.assert_allclose(counted, 1 / (1 + np.exp(-expected)))

    def test_of_numbers_of_people_it_is_that_of_the_people(self):
        people = FRAME[FRAME["x"].notna()].groupby("pid", as_index=False)["x"].mean()
        d, plain = Dataset(FRAME, person="pid", bounds={"x": BOUNDS}), people.dprisk
        for name in ("mean", "median", "var"):
            own = getattr(d, name)("x", eps=1, per_person="mean", mechanism="laplace").curator
            direct = getattr(plain, name)("x", eps=1, bounds=BOUNDS, mechanism="laplace").curator
            assert own.n == direct.n
            assert own.local_sensitivity == pytest.approx(direct.local_sensitivity, rel=1e-6)
            assert own.identifiability == pytest.approx(direct.identifiability, rel=1e-6)

    @pytest.mark.parametrize("statistic", ["mean", "median", "min", "var", "sum", "count"])
    def test_worlds_lack_all_rows_of_one_person(self, statistic):
        """Lee & Clifton 2011 with people for records: nobody has more than 9 rows, so that all count."""
        d, known = Dataset(FRAME, person="pid", bounds={"x": BOUNDS}), FRAME[FRAME["pid"].notna() & FRAME["x"].notna()]
        clipped = known.assign(x=known["x"].clip(*BOUNDS))
        k = int(known.groupby("pid").size().max())
        found = d.identifiability("x", statistic, eps=2, rows=k, mechanism="laplace")
        worlds = [clipped.loc[clipped["pid"] != pid, "x"].agg(statistic) for pid in clipped["pid"].unique()]
        width, far = BOUNDS[1] - BOUNDS[0], max(map(abs, BOUNDS))
        # docs/numbers.md, "People with several records": GS_k, of ddof 1 that of one record.
        largest = {"mean": width * k / (k + 1), "median": width * min(1, k / 2), "min": width, "var": width**2 / 2}
        scale = (largest | {"sum": k * far, "count": k})[statistic]
        assert found.worlds == len(worlds)
        assert found.sensitivity == pytest.approx(scale, rel=1e-8)
        assert found.sensitive_range == pytest.approx(max(worlds) - min(worlds), rel=1e-9)
        assert found.exact == pytest.approx(exact_identifiability(worlds, scale / 2), rel=1e-6)

    def test_of_a_bin_there_may_be_so_few_people(self):
        """Nobody is told apart in a bin: its n records are those of n/3 people at least, one of whom is missing."""
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS})
        table = d.hist("x", eps=1, bins=3, rows=3, curator=True)
        assert table["n"].min() > 3
        people = -(-table["n"] // 3)
        np.testing.assert_allclose(table["many_worlds"], 1 / (1 + (people - 1) * math.exp(-1)))

    def test_worlds_that_are_no_points_on_a_line_are_refused(self):
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS})
        with pytest.raises(ParameterError, match=r'by exponential .* one may have 2: ask with mechanism="laplace"'):
            d.identifiability("x", "median", eps=1, rows=2)
        with pytest.raises(ParameterError, match="is one number, the belief about one person"):
            d.identifiability("x", eps=1, rows=2, mechanism="laplace", prior=np.ones(len(FRAME)))
        assert d.identifiability("x", eps=1, rows=2, mechanism="laplace", prior=0.5).prior == 0.5

    @pytest.mark.parametrize("rows", [1, 3])
    def test_compare_tells_what_each_release_means(self, rows):
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS})
        table = d.compare("x", "mean", eps=1, rows=rows).set_index("mechanism")
        for name in ("laplace", "two_sums"):
            release = d.mean("x", eps=1, rows=rows, mechanism=name, curator=True)
            own = table.loc[name]
            assert own["success"] == release.risk.success and own["worst_case"] == release.risk.worst_case
            assert own["noise95"] == pytest.approx(release.noise95, rel=0.3)  # two_sums: of the exact sums, here
            for risk in ("two_worlds", "many_worlds", "identifiability"):
                assert own[risk] == pytest.approx(getattr(release.curator, risk)), (name, risk)

    @pytest.mark.parametrize("metric", ["two_worlds", "many_worlds", "identifiability"])
    @pytest.mark.parametrize("mechanism", ["laplace", "two_sums"])
    def test_epsilon_for_reaches_the_risk_at_the_earliest(self, metric, mechanism):
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS})
        asked = {"rows": 3, "mechanism": mechanism}
        eps = d.epsilon_for("x", "mean", risk=0.8, metric=metric, **asked)
        reached = d.assess("x", "mean", eps=eps, **asked)[metric].iloc[0]
        assert reached == pytest.approx(0.8, abs=1e-6)


UNDECIDED = r'several rows, and the question does not say how they count. Pass one of per_person="mean"'


@pytest.mark.parametrize("ask", [lambda r: r.attack(), lambda r: r.interval(kind="sampling")], ids=["attack", "sample"])
def test_what_holds_for_one_record_each_is_refused(ask):
    d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS})
    for how in ({"rows": 3}, {"unit": "row"}):
        with pytest.raises(ParameterError, match="one person may have several: ask with per_person="):
            ask(d.mean("x", eps=1, **how))
    ask(d.mean("x", eps=1, per_person="mean"))


class TestRefusals:
    @pytest.mark.whole
    @pytest.mark.parametrize(
        ("ask", "says"),
        [
            (lambda d: d.mean("x", eps=1), UNDECIDED),
            (lambda d: d.nunique("g", eps=1), UNDECIDED),
            (lambda d: d.hist("x", eps=1, bins=3), UNDECIDED),
            (lambda d: d.mean("x", eps=1, rows=2, per_person="mean"), "pass one of them"),
            (lambda d: d.mean("x", eps=1, rows=0), "rows must be between 1 and"),
            (lambda d: d.mean("x", eps=1, rows=2.5), "rows is a whole number, not of type float"),
            (lambda d: d.mean("x", eps=1, per_person="average"), "per_person is one of one, mean, sum"),
            (lambda d: d.mean("x", eps=1, per_person="sum"), "bounds of that number of a person"),
            (
                lambda d: d.mean("x", eps=1, per_person="mean", by="g", keys=list("ab")),
                "a person may be in several groups of by=g",
            ),
            (lambda d: d.nunique("pid", eps=1, rows=2, by="g", keys=list("ab")), "in several groups of by=g"),
            (lambda d: d.count(eps=1, rows=2, by="g", keys="private", delta=1e-6), "pass groups=g as well"),
            (
                lambda d: d.sql("SELECT g, COUNT(DISTINCT pid) AS n FROM data GROUP BY g", eps=1, keys=list("ab")),
                "or rows=k without per_person=",
            ),
            (lambda d: d.count(eps=1, by="g", keys=list("ab")), "a person may be in several groups of by=g"),
            (lambda d: d.mean("x", eps=1, rows=2, groups=2), "pass by= as well"),
            (lambda d: d.mean("x", eps=1, unit="rows"), 'unit is "row"'),
            (lambda d: d.mean("x", eps=1, unit="row", rows=2), "rows= means nothing"),
            (lambda d: d.nunique("g", eps=1, per_person="mean"), "pass rows= instead"),
            (lambda d: d.mean("x", eps=1, rows=2, person="sex"), "losses of different units do not add up"),
            (lambda d: d.mean("x", eps=1, rows=2, neighbours="replace-one"), "leave it out, or leave out person="),
        ],
    )
    def test_in_words(self, ask, says):
        with pytest.raises((ParameterError, pdrisk.ColumnTypeError), match=says):
            ask(Dataset(FRAME, person="pid", bounds={"x": BOUNDS}, constant="sex"))

    @pytest.mark.parametrize("option", [{"per_person": "mean"}, {"rows": 2}, {"groups": 2}, {"unit": "row"}])
    def test_without_a_person(self, option):
        with pytest.raises(ParameterError, match="no column of ids is declared: pass person= as well"):
            FRAME.dprisk.mean("x", eps=1, bounds=BOUNDS, **option)

    def test_one_of_two_columns_differs_within_a_person(self):
        """Then a person has several rows of both, whatever is declared of the other."""
        born = Dataset(FRAME.assign(born=FRAME["pid"] / 4), person="pid", bounds={"x": BOUNDS, "born": BOUNDS})
        with pytest.raises(ParameterError, match=UNDECIDED):
            born.corr("x", "born", eps=1, constant=["born"])
        assert born.corr("x", "born", eps=1, constant=["x", "born"]).unit == "pid"

    def test_two_units_in_one_budget(self, book):
        ledger = book()
        Dataset(FRAME, person="pid", ledger=ledger).count(eps=0.1)
        with ledger, pytest.raises(ParameterError, match="told apart by column 'pid', not 'sex'"):
            FRAME.dprisk.count(eps=0.1, person="sex")
        with ledger, pytest.raises(ParameterError, match="promises something else for its eps"):
            FRAME.dprisk.count(eps=0.1, person="pid", unit="row")
        assert ledger.remaining().spent == pytest.approx(0.1)

    def test_a_unit_comes_into_a_ledger_with_the_first_answer(self, book):
        ledger = book()
        with ledger:
            FRAME.dprisk.count(eps=0.1, person="pid")
        with pytest.raises(ParameterError, match="declare person='pid'"):
            Dataset(FRAME, person="sex", ledger=ledger)


class TestWords:
    def test_who_is_protected(self):
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS}, constant=["sex"])
        said = {
            "rows": d.mean("x", eps=1, rows=3).explain("publication"),
            "way": d.mean("x", eps=1, per_person="mean").explain("publication"),
            "row": d.mean("x", eps=1, unit="row").explain("publication"),
        }
        said = {name: " ".join(text.split()) for name, text in said.items()}
        assert "everything that one pid has in the data; at most 3 rows of each count" in said["rows"]
        assert "the rows of each become one number first, their mean" in said["way"]
        assert "one row (a pid may have several); for a person with k rows all risks are those of k" in said["row"]
        assert all("differ in all rows of one pid" in said[name] for name in ("rows", "way"))

    @pytest.mark.parametrize("audience", ["participant", "analyst", "curator", "publication"])
    def test_every_text_names_the_unit(self, audience):
        d = Dataset(FRAME, person=["pid", "g"], bounds={"x": BOUNDS})
        day, row, record = (
            " ".join(each.mean("x", eps=1, curator=True, **how).explain(audience).split())
            for each, how in ((d, {"rows": 1}), (d, {"unit": "row"}), (Dataset(FRAME, bounds={"x": BOUNDS}), {}))
        )
        assert "everything that one pid, g has in the data" in day
        several = "With several, they may be right more often" if audience == "participant" else "with k rows all risks"
        assert several in row and several not in day
        assert (several in record) == (audience == "participant")  # the only text that tells a reader of "you"
        assert "everything that one" not in row + record

    @pytest.mark.parametrize(("options", "says"), [
        ({"by": "sex", "keys": ["f", "m"], "rows": 1}, "each pid counts in one group at most, so all groups cost"),
        ({"by": "g", "keys": list("ab"), "rows": 1, "groups": 2}, "each pid counts in 2 groups at most"),
        ({"by": "g", "keys": list("ab"), "unit": "row"}, "a person with rows in k groups loses k times as much"),
    ])  # fmt: skip
    def test_groups(self, options, says):
        table = Dataset(FRAME, person="pid", bounds={"x": BOUNDS}, constant=["sex"]).mean("x", eps=1, **options)
        said = " ".join(pdrisk.explain(table, "publication").split())
        assert says in said and "everybody is in at most one group" not in said

    def test_reprs(self):
        d = Dataset(FRAME, person="pid", bounds={"x": BOUNDS})
        assert "at most 3 rows count" in repr(d.mean("x", eps=1, rows=3))
        assert "mean of the rows" in repr(d.mean("x", eps=1, per_person="mean"))


ASKED = {
    "agg": lambda d, **how: d.agg({"x": ["count", "mean", "std", "median", "max"]}, eps=9, **how),
    "describe": lambda d, **how: d.describe("x", eps=9, **how),
    "quantiles": lambda d, **how: d.quantile("x", [0.1, 0.5, 0.9], eps=9, **how),
    "nunique": lambda d, **how: d.nunique("g", eps=9, **{"rows": 2} | {k: v for k, v in how.items() if k == "rows"}),
    "hist": lambda d, **how: d.hist("x", eps=9, bins=4, **how),
    "crosstab": lambda d, **how: d.crosstab("g", "sex", eps=9, keys={"g": list("abcd"), "sex": ["f", "m"]}, groups=3),
    "corr": lambda d, **how: d.corr("x", "y", eps=9, **how),
    "sum": lambda d, **how: d.sum("x", eps=9, **how | {"bounds": (0, 50)}),
    "by": lambda d, **how: d.var("x", eps=9, by="g", keys=list("abcd"), groups=2, **how),
}


@pytest.mark.parametrize("how", [{"rows": 3}, {"per_person": "max"}], ids=str)
@pytest.mark.parametrize("name", ASKED)
def test_every_question(name, how):
    """Each is answered, within its range, and neither frame nor person shows in the answer."""
    frame = panel(400, 3).assign(y=lambda df: df["x"] / 2 + 1)
    d = Dataset(frame, person="pid", bounds={"x": BOUNDS, "y": BOUNDS}, constant=["sex"])
    answer = ASKED[name](d, **how)
    values = answer["value"] if "value" in getattr(answer, "columns", ()) else answer
    assert np.isfinite(np.asarray(getattr(values, "value", values), dtype=float)).all()


@pytest.mark.parametrize(("rows", "way"), [(2, None), (1, "mean")])
def test_what_a_person_moves_is_no_more_than_claimed(rows, way):
    """All small panels: the sums that two_sums draws from differ by what the noise is made for, at most."""
    draw = np.random.default_rng(2)
    unit = Unit(("pid",), way, rows)
    for _ in range(60):
        frame = pd.DataFrame({"pid": draw.integers(0, 4, 9), "g": "a", "x": draw.choice([-1, 0, 2.5, 10, 99], 9)})
        for pid in range(4):
            before, after = (np.array(sums(each, unit)) for each in (frame, frame[frame["pid"] != pid]))
            assert np.abs(before - after).sum() <= unit.weight * 2**30


def sums(frame, unit):
    """U and V of two_sums."""
    found = kept(frame, unit)
    values = found.values if found.selected is None else found.values[found.selected]
    places = [math.floor(min(max(x, 0), 10) * (2**30 / 10) + 0.5) for x in values]
    return sum(places), len(places) * 2**30 - sum(places)


def test_of_all_ways_the_same_answer_where_everybody_has_one_row():
    one = FRAME.drop_duplicates("pid").dropna(subset="x")
    facts = [
        Dataset(one, person="pid", bounds={"x": BOUNDS}, **declared).mean("x", eps=1, **asked).curator
        for declared, asked in [
            ({"per_person": "one"}, {}),
            ({}, {"rows": 1}),
            ({}, {"per_person": "mean"}),
            ({}, {"unit": "row"}),
        ]
    ]
    assert all(one == two for one, two in itertools.pairwise(facts))


class TestDeclared:
    """A frame or schema says once who a person is."""

    def test_of_a_frame(self):
        known = FRAME.dprisk.declare(person="pid", per_person="mean", constant="sex")
        assert known.dprisk.mean("x", eps=1, bounds=BOUNDS).answer.per_person == "mean"
        assert known.query("sex == 'f'").dprisk.count(eps=1).unit == "pid"
        assert Dataset(known, constant="g").count(eps=1, by="g", keys=["a", "b"]).attrs
        assert pdrisk.sql("SELECT COUNT(DISTINCT pid) AS n FROM t", eps=100, t=known)["n"][0] == 40
        assert known.dprisk.mean("x", rows=2, eps=1, bounds=BOUNDS).answer.rows == 2

    def test_of_a_schema(self):
        pa = pytest.importorskip("pandera.pandas")
        schema = pa.DataFrameSchema(
            {"x": pa.Column(float, pa.Check.in_range(-3, 12), nullable=True)},
            metadata={"dprisk": {"person": "pid", "per_person": "max"}},
        )
        for frame in (schema.validate(FRAME), FRAME.dprisk.declare(schema)):
            release = frame.dprisk.mean("x", eps=1)
            assert (release.unit, release.answer.per_person) == ("pid", "max")
        assert Dataset(FRAME, schema=schema).mean("x", eps=1).answer.per_person == "max"
        table = pdrisk.sql("SELECT AVG(x) AS m FROM t", eps=1, schema=schema, curator=True, t=FRAME)
        assert table["m_n"][0] == FRAME.dropna(subset="x")["pid"].nunique()

    @pytest.mark.parametrize(
        ("said", "says"),
        [
            ({"person": "nobody"}, "nobody"),
            ({"per_person": "mean"}, "needs person=, the column of ids"),
            ({"person": "pid", "per_person": "most"}, "per_person is one of"),
            ({"person": 1.5}, "the name of a column"),
        ],
    )
    def test_refused(self, said, says):
        with pytest.raises((ParameterError, pdrisk.ColumnTypeError, pdrisk.UnknownColumnError), match=says):
            FRAME.dprisk.declare(**said)


class TestSuggestedRows:
    def test_near_the_quantile(self):
        d = Dataset(panel(2000, 4), person="pid")
        found = [d.suggest_rows(eps=2, share=0.5) for _ in range(20)]
        assert set(found) <= {4, 5, 6} and type(found[0] + 1) is int
        assert found[0].eps == 2 and "rows a person: about 50 % of people" in repr(found[0])

    def test_is_paid(self, book):
        ledger = book(eps=1)
        Dataset(FRAME, person="pid", ledger=ledger).suggest_rows(eps=0.75)
        assert ledger.remaining().eps == 0.25

    @pytest.mark.parametrize(
        ("said", "says"),
        [
            ({"share": 1.5}, "share must be a probability"),
            ({"most": 1}, "most must be between 2"),
            ({"most": "9"}, "type str"),
        ],
    )
    def test_refused(self, said, says):
        with pytest.raises((ParameterError, pdrisk.ColumnTypeError), match=says):
            Dataset(FRAME, person="pid").suggest_rows(eps=1, **said)
        with pytest.raises(ParameterError, match="pass person="):
            FRAME.dprisk.suggest_rows(eps=1)


def test_lists_are_no_ids(book):
    """What the dtype tells is refused before anything is paid."""
    pa = pytest.importorskip("pyarrow")
    ids = pd.array([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))
    frame, ledger = pd.DataFrame({"pid": ids, "x": [1.0, 2.0]}), book()
    for call in (
        lambda: Dataset(frame, person="pid", ledger=ledger).count(eps=1),
        lambda: frame.dprisk.count(eps=1, person="pid", ledger=ledger),
    ):
        with pytest.raises(pdrisk.ColumnTypeError, match="column 'pid' holds lists or structures"):
            call()
    assert ledger.remaining().spent == 0


def test_bounds_are_suggested_of_people():
    """One row of each person is looked at: rows of one person that nobody shares do not show."""
    frame = pd.DataFrame({"pid": [0] * 500 + list(range(1, 501)), "x": [2.0**40] * 500 + [5.0] * 500})
    d = Dataset(frame, person="pid")
    assert min(d.suggest_bounds("x", eps=1)[1] for _ in range(5)) <= 8  # one in 150 is wider, by its noise
