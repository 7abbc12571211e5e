"""A ``where`` that is no expression is taken at the caller's word, if it is boolean and fits the frame."""

import types

import numpy as np
import pandas as pd
import pytest

from pdrisk._model.rowwise import judged
from pdrisk.errors import ColumnTypeError
from rowwise_people import mask_of, names, refusal, says_nothing


def flags(dtype: str) -> pd.Series:
    return pd.Series([True, False, None] if dtype != "bool" else [True, False, False], dtype=dtype)


class TestMasks:
    """Masks and callables are taken at the caller's word, if they are boolean and fit the frame."""

    frame = pd.DataFrame({"x": [987654321, 2, 3]})

    @pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]"])
    @pytest.mark.parametrize("form", [lambda s: s, lambda s: s.array, lambda s: lambda frame: s])
    def test_missing_is_not_selected(self, dtype, form):
        where = form(flags(dtype))
        found = judged(where, self.frame, names)
        assert (found.text, found.trusted, found.columns) == (None, True, ())
        mask = mask_of(where, self.frame)
        assert type(mask) is np.ndarray
        assert mask.dtype == bool
        assert mask.tolist() == [True, False, False]

    def test_arrays_and_lists(self):
        pa = pytest.importorskip("pyarrow")
        for mask in ([True, False, False], np.array([True, False, False]), pa.array([True, False, None])):
            assert mask_of(mask, self.frame).tolist() == [True, False, False]
        assert mask_of([], self.frame.iloc[:0]).tolist() == []

    @pytest.mark.parametrize(
        ("mask", "words"),
        [
            (pd.Series([1, 0, 1]), "a mask must be boolean (bool, boolean or bool[pyarrow]), not int64"),
            (pd.Series([True, None, False], dtype=object), "not object. Convert it with .astype('boolean')"),
            (np.array(["SENTINEL"] * 3), "a mask must be boolean"),
            (pd.Series(["SENTINEL"] * 3), "a mask must be boolean"),
            (pd.Series([True, False, True], dtype="category"), "not category"),
            ([True, None, False], "every element of a list"),
            ([1, 0, 1], "every element of a list"),
            (np.ones((3, 1), dtype=bool), "one dimension"),
            (np.array(True), "one dimension"),
            (pd.DataFrame({"a": [True] * 3}), "one dimension"),
            (np.ma.array([True] * 3, mask=[True] * 3), "where cannot be of type MaskedArray"),
            (True, "where cannot be of type bool; it takes a query string, a pd.col expression"),
            (np.True_, "where cannot be of type bool"),
            (987654322, "where cannot be of type int"),
            ({"x": 1}, "where cannot be of type dict"),
            ((True, False, True), "where cannot be of type tuple"),
            (list, "where cannot be of type type"),
            (types.SimpleNamespace(), "where cannot be of type SimpleNamespace"),
        ],
    )
    def test_kinds(self, mask, words):
        with pytest.raises(ColumnTypeError) as caught:
            judged(mask, self.frame, names)
        assert words in str(caught.value)
        says_nothing(caught.value)

    @pytest.mark.parametrize(
        ("mask", "words"),
        [
            (pd.Series([True] * 3, index=[1, 2, 3]), "another index"),
            (pd.Series([True] * 2), "another index"),
            (np.ones(4, dtype=bool), "another length"),
            ([True] * 2, "another length"),
        ],
    )
    def test_fit(self, mask, words):
        error = refusal(mask, self.frame)
        assert words in str(error)
        assert not any(digit in str(error) for digit in "0123456789")
        says_nothing(error)

    def test_a_callable_is_called_with_the_data_only(self):
        calls = []

        def where(frame):
            return calls.append(1) or frame["x"] > 2

        found = judged(where, self.frame, names)
        assert calls == []
        assert mask_of(where, self.frame).tolist() == [True, False, True]
        assert "987654321" not in repr(found)
