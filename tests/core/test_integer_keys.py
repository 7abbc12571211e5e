"""What a table tells of whole numbers is what a dict or a set tells, whatever the width of the column."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrisk._model.groups import integer_keys
from pdrisk._model.groups.integer_keys import codes_of_integers, different_integers

WIDTHS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", WIDTHS)
@given(data=st.data())
def test_any_keys_and_values(dtype, data):
    limits = np.iinfo(dtype)
    first = data.draw(st.sampled_from([limits.min, limits.max - 40]) | st.integers(limits.min, limits.max - 40))
    near = st.integers(first, first + 40)
    keys = data.draw(st.lists(near, min_size=1, max_size=9, unique=True))
    ends = st.sampled_from([limits.min, limits.min + 1, limits.max - 1, limits.max, *keys])
    values = data.draw(st.lists(near | ends | st.integers(limits.min, limits.max), min_size=41, max_size=60))
    place = np.array([*np.random.default_rng(len(keys)).permutation(len(keys)), len(keys)], dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integer_keys, "PIECE", 16)
        codes = codes_of_integers(pd.Index(np.array(keys, dtype=dtype)), place, np.array(values, dtype=dtype))
    expected = dict(zip(keys, place.tolist(), strict=False))
    assert codes.dtype == np.int32
    assert codes.tolist() == [expected.get(value, len(keys)) for value in values]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_number_of_a_width_is_a_key(dtype):
    every = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)
    values = np.tile(every, 2)
    codes = codes_of_integers(pd.Index(every), np.arange(257, dtype=np.int32), values)
    assert codes.tolist() == [*range(256), *range(256)]


@pytest.mark.parametrize(
    ("keys", "rows"), [([0, 2**62], 10), ([-(2**63), 2**63 - 1], 10), ([0, 9], 9), ([0, integer_keys.TABLE], 2**21)]
)
def test_keys_too_far_apart_are_left_to_others(keys, rows):
    place = np.arange(3, dtype=np.int32)
    assert codes_of_integers(pd.Index(np.array(keys)), place, np.zeros(rows, dtype=np.int64)) is None


@pytest.mark.parametrize("dtype", WIDTHS)
@given(data=st.data())
def test_different_numbers_are_those_of_a_set(dtype, data):
    limits = np.iinfo(dtype)
    first = data.draw(st.integers(limits.min, limits.max - 40))
    near, ends = st.integers(first, first + 40), st.sampled_from([limits.min, limits.max])
    values = data.draw(st.lists(near, max_size=60) | st.lists(near | ends, max_size=9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integer_keys, "PIECE", 16)
        assert different_integers(np.array(values, dtype=dtype)) == len(set(values))
