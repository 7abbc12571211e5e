"""Answers about many groups: what is kept of them is shorter and made faster, and says the same."""

import base64
import json
import pickle
import zlib
from hashlib import blake2b

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from pdrisk._answer.arithmetic import measured
from pdrisk._answer.arithmetic.measured import WITHHELD, digest_of
from pdrisk._answer.arithmetic.packed_arrays import MANY, packed_array, unpacked_array
from pdrisk._answer.tables.measured_tables import measurements_of
from pdrisk._core.lattice import PlaceGrid
from pdrisk._core.summary import Needs
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.laws.fieller import interval_of_one, mean_interval
from pdrisk._mechanisms.two_sums import _critical
from pdrisk._model.asked_groups import Groups, SingleKeys, values_at
from pdrisk._model.groups.frame_keys import checked_keys, key_codes, key_index
from pdrisk.engines.numpy import grouped

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")

RNG = np.random.default_rng(1)
GROUPS = 20_000
FRAME = pd.DataFrame({"g": RNG.integers(-1, GROUPS + 1, 60_000), "x": RNG.exponential(60, 60_000)})
ASKED = {"by": "g", "keys": list(range(GROUPS)), "eps": 1}
ARRAYS = {
    "sums": RNG.integers(0, 2**33, MANY),
    "noise around 0": np.rint(RNG.laplace(0, 3, MANY)).astype(np.int64),
    "all bits": RNG.integers(-(2**63), 2**63 - 1, MANY),
    "withheld": np.where(RNG.random(MANY) < 0.3, WITHHELD, RNG.integers(-5, 900, MANY)),
    "the same": np.full(MANY, -7),
    "two rows": RNG.integers(0, 2**35, (2, MANY)),
    "reals": RNG.normal(0, 1, MANY),
    "multiples": np.where(RNG.random(MANY) < 0.1, np.nan, np.rint(RNG.normal(0, 99, MANY)) * 5),
}


def as_before(array, dtype):
    """The one text that all arrays were kept as."""
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array, dtype=dtype).tobytes(), 1)).decode()


class TestPackedArrays:
    @pytest.mark.parametrize("name", ARRAYS)
    def test_many_come_back_from_less(self, name):
        array = ARRAYS[name]
        dtype, before = f"<{array.dtype.kind}8", array.tobytes()
        packed = packed_array(array, dtype)
        found = unpacked_array(json.loads(json.dumps(packed)), dtype)
        assert found.tobytes() == array.tobytes() == before
        assert found.dtype == array.dtype
        assert sum(map(len, packed)) < 1.01 * len(as_before(array, dtype)) + 999

    @pytest.mark.parametrize("size", [0, 1, 5, MANY - 1])
    def test_few_are_kept_as_before(self, size):
        few = RNG.integers(0, 2**33, size)
        assert packed_array(few, "<i8") == as_before(few, "<i8")
        assert unpacked_array(packed_array(few, "<i8"), "<i8").tolist() == few.tolist()

    def test_many_that_were_kept_before_are_read(self):
        assert (unpacked_array(as_before(ARRAYS["sums"], "<i8"), "<i8") == ARRAYS["sums"]).all()


class TestDigest:
    LABELS = (
        pd.Index([], dtype=np.int64), pd.Index([0]), pd.Index([9, 10, 11]), pd.Index([0, 10, 100, 99]),
        pd.Index([5, 5, 5]), pd.Index([1, 1, 2]), pd.Index([-1, 3]), pd.Index([2**63 - 1, 1]),
        pd.Index([2**64 - 1, 0, 7], dtype=np.uint64), pd.Index(np.arange(120, dtype=np.int8)), pd.RangeIndex(40_000),
        pd.RangeIndex(40_000, 0, -7), pd.Index(RNG.integers(0, 2**62, 40_000)), pd.Index([1, 2], dtype="Int64"),
        pd.Index([1, None]), pd.Index(["1", "a\0b", "ü"]), pd.Index([True, False]), pd.Index([1.5, 2.0]),
        pd.CategoricalIndex([11, 2]), pd.MultiIndex.from_product([range(3), ["a", "b"]]),
    )  # fmt: skip

    @staticmethod
    def by_definition(index):
        digest = blake2b(digest_size=16)
        for at in range(index.nlevels):
            codes, labels = pd.factorize(index.get_level_values(at), use_na_sentinel=False)
            digest.update("\0".join(map(str, labels.tolist())).encode())
            digest.update(codes.astype("<i8").tobytes())
        return digest.hexdigest()

    @pytest.mark.parametrize("few", [0, measured.FEW])
    @pytest.mark.parametrize("index", LABELS, ids=repr)
    def test_it_is_that_of_texts_and_places(self, index, few, monkeypatch):
        monkeypatch.setattr(measured, "FEW", few)
        assert digest_of(index) == self.by_definition(index)

    @given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 99), max_size=30), st.sampled_from([2, 2**14]))
    def test_any_whole_numbers(self, labels, piece):
        index = pd.Index(np.array(labels, dtype=np.uint64))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measured, "FEW", 0)
            patch.setattr(measured, "PIECE", piece)
            assert digest_of(index) == self.by_definition(index)


class TestSingleKeys:
    def test_they_are_a_tuple_of_tuples(self):
        keys, pairs = SingleKeys(["a", None, 2]), (("a",), (None,), (2,))
        assert keys == pairs
        assert pairs == keys
        assert keys == SingleKeys(("a", None, 2))
        assert keys != SingleKeys(["a"])
        assert keys != list(pairs)
        assert (hash(keys), repr(keys), len(keys)) == (hash(pairs), repr(pairs), 3)
        assert (list(keys), keys[1], keys[-1], keys[1:]) == (list(pairs), (None,), (2,), pairs[1:])
        assert (None,) in keys
        assert ("b",) not in keys
        assert not SingleKeys([])
        assert pickle.loads(pickle.dumps(keys)) == pairs
        assert values_at(keys, 0) == ("a", None, 2)
        assert values_at((("a", 1), ("b", 2)), 1) == [1, 2]

    def test_groups_are_equal_however_their_keys_are_kept(self):
        listed, made = (Groups(("g",), keys, "given") for keys in (((1,), (None,)), SingleKeys([1, None])))
        assert listed == made
        assert hash(listed) == hash(made)
        assert (made.has_missing, made.without_missing, made.combinations) == (True, (), 0)

    def test_a_change_of_the_callers_list_does_not_reach_them(self):
        own = [1, 2]
        keys = checked_keys(FRAME, ("g",), own)
        own[0] = 3
        assert keys == ((1,), (2,))

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "Int64", "float64", "object"])
    @pytest.mark.parametrize("keys", [[3, 1, 2], [1, 300, -1], [2**64 - 1, 1], [None, 1], [2**70, 1]], ids=repr)
    def test_rows_find_their_keys(self, dtype, keys):
        frame = pd.DataFrame({"g": pd.Series([1, 2, 3, 1, 44], dtype=dtype)})
        listed = checked_keys(frame, ("g",), keys)
        expected = [keys.index(value) if value in keys else len(keys) for value in (1, 2, 3, 1, 44)]
        assert key_codes(frame, ("g",), listed).tolist() == expected
        index = key_index(frame, ("g",), listed)
        assert [None if pd.isna(label) else int(label) for label in index] == keys or dtype == "float64"


class TestSums:
    @pytest.mark.parametrize("rows", [1, 2, 10**6])
    def test_numbers_and_places_are_exact(self, monkeypatch, rows):
        bins, universe = grouped.MANY_GROUPS + 1, Universe(1.0, 675.0)
        monkeypatch.setattr(grouped, "EXACT_ROWS", grouped.SIZE + rows)
        codes = np.where(RNG.random(100_000) < 0.5, 7, RNG.integers(0, bins, 100_000)).astype(np.int32)
        values = np.where(RNG.random(100_000) < 0.1, np.nan, RNG.exponential(60, 100_000))
        found = grouped.summary_of_groups(values, codes, bins - 1, universe, Needs(places=True))
        there = ~np.isnan(values)
        places = PlaceGrid.of(universe).placed(np.clip(values[there], 1, 675)).astype(np.int64)
        expected = np.zeros(bins, dtype=np.int64)
        np.add.at(expected, codes[there], places)
        assert (found.places == expected[:-1]).all()
        assert (found.n == np.bincount(codes[there], minlength=bins)[:-1]).all()

    @pytest.mark.slow
    def test_the_largest_places_of_more_rows_than_floats_add_up(self):
        """Twelve million odd numbers just below 2**30, all in one group: more than 2**53 together."""
        placed, places = grouped._Placed(3), np.full(grouped.SIZE, 2.0**30 - 1)
        pieces = 12_000_000 // grouped.SIZE
        for _ in range(pieces):
            placed.add(np.ones(grouped.SIZE, dtype=np.intp), places)
        n, sums = placed.result()
        assert n.tolist() == [0, pieces * grouped.SIZE, 0]
        assert sums.tolist() == [0, pieces * grouped.SIZE * (2**30 - 1), 0]
        assert PlaceGrid.of(Universe(1.0, 675.0)).placed(np.array([675.0]), np.empty(1)) <= 2**30


def test_intervals_of_many_are_those_of_each():
    a, b = RNG.normal(3, 3, 3000), RNG.normal(3, 3, 3000)
    low, high = mean_interval(a, b, 1.0, _critical(0.95))
    assert list(zip(low, high, strict=True)) == [
        interval_of_one(*each, _critical(0.95)) for each in zip(a.tolist(), b.tolist(), strict=True)
    ]


class TestTables:
    @pytest.mark.parametrize("statistic", ["mean", "sum", "count", "var"])
    def test_what_was_drawn_is_the_same_however_often_it_was_kept(self, statistic):
        column = () if statistic == "count" else ("x",)
        table = getattr(FRAME.dprisk, statistic)(*column, **ASKED, **({"bounds": (1, 675)} if column else {}))
        copy = pickle.loads(pickle.dumps(table))  # before anybody looked
        (drawn,) = measurements_of(table)
        again = pickle.loads(pickle.dumps(table))
        for other in (copy, again, table.copy()):
            pd.testing.assert_frame_equal(other, table)
            assert other.attrs == table.attrs
            (kept,) = measurements_of(other)
            assert (kept.drawn == drawn.drawn).all()
            assert (kept.draw, kept.law) == (drawn.draw, drawn.law)
        assert repr(copy) == repr(table)

    def test_rows_in_another_order_are_refused(self):
        table = FRAME.dprisk.count(**ASKED)
        with pytest.raises(pdrisk.ParameterError, match="edited"):
            measurements_of(table.iloc[::-1])
        assert measurements_of(table.iloc[::-1].iloc[::-1])

    def test_largest_first(self):
        table = FRAME.dprisk.count(**ASKED)
        sorted_counts = FRAME.dprisk.value_counts("g", keys=list(range(GROUPS)), eps=1)
        (drawn,) = measurements_of(sorted_counts)
        assert (drawn.cells == sorted_counts.index).all()
        assert (np.maximum(drawn.drawn[0], 0) == sorted_counts["value"]).all()
        assert len(table) == len(sorted_counts)
