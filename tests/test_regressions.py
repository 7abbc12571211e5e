"""What reviews found after all other tests passed: each a way in which one record could have decided too much."""

import numexpr
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pdrisk
from pdrisk import ColumnTypeError, ParameterError

MANY = 1_000_001  # from here on pandas hands arithmetic to numexpr, which rounds and overflows differently


class TestOneRecordMore:
    """A row-wise filter decides a record whatever the number of the others."""

    @pytest.mark.parametrize(
        ("values", "where"),
        [
            (np.float32([0.1, 0.2]), "x > 0.1"),
            (np.float32([0.1, 0.2]), "x == 0.1"),
            (np.int32([2**31 - 1, 5]), "x + 1 > 0"),
            (np.int32([2**16, 1]), "x ** 2 > 10"),
            (np.int64([2**32, 1]), "x ** 2 > 10"),
        ],
    )
    def test_a_large_frame_is_filtered_like_a_small_one(self, values, where):
        assert numexpr  # part of the test extra: without it this proves nothing
        few = pd.DataFrame({"x": values})
        many = pd.DataFrame({"x": np.tile(values, MANY // 2 + 1)})
        decided = [few.iloc[[row]].dprisk.count(eps=1, where=where).n for row in (0, 1)]
        assert many.dprisk.count(eps=1, where=where).n == sum(decided) * (MANY // 2 + 1)

    def test_text_against_a_number_is_refused_before_a_text_is_met(self):
        for dtype in (object, "string", pd.Series(["a"]).dtype):
            for values in (["10115", None], [None, None]):
                frame = pd.DataFrame({"code": pd.Series(values, dtype=dtype)})
                if frame["code"].isna().all() and pd.api.types.is_object_dtype(dtype):
                    continue  # a column of nothing is no text
                with pytest.raises(ParameterError, match="one kind"):
                    frame.dprisk.count(eps=1, where="code > 50000")

    def test_objects_of_several_kinds_cannot_be_ordered(self):
        frame = pd.DataFrame({"mixed": [1, "SENTINEL", None]})
        with pytest.raises(ParameterError, match="objects of several kinds") as caught:
            frame.dprisk.count(eps=1, where="mixed > 3")
        assert "SENTINEL" not in str(caught.value)


class TestObservedKeys:
    """One missing or far value does not make the others fail."""

    def test_integer_categories_with_a_missing_row(self):
        frame = pd.DataFrame({"g": pd.Categorical([3, 1, None, 3])})
        assert frame.dprisk.count(eps=1, by="g", keys="observed")["n"].to_dict() == {1: 1, 3: 2}

    def test_a_date_that_nanoseconds_cannot_hold(self):
        column = pd.array(pa.array([0, 253_402_214_400_000_000], pa.timestamp("us")), dtype="timestamp[us][pyarrow]")
        frame = pd.DataFrame({"g": column})
        assert frame.dprisk.count(eps=1, by="g", keys="observed")["n"].tolist() == [1, 1]
        assert frame.dprisk.count(eps=1, by="g", keys=[pd.Timestamp("1970-01-01")])["n"].tolist() == [1]


class TestKeysInTheColumnsPrecision:
    @pytest.mark.parametrize("dtype", ["float32", "Float32", "float[pyarrow]", "float64", "Float64"])
    def test_decimals_find_their_rows(self, dtype):
        frame = pd.DataFrame({"g": pd.Series([0.1, 0.2, 0.2], dtype=dtype)})
        assert frame.dprisk.count(eps=1, by="g", keys=[0.2, 0.1])["n"].tolist() == [2, 1]

    def test_keys_that_fall_together_are_refused(self):
        frame = pd.DataFrame({"g": np.float32([0.1])})
        with pytest.raises(ParameterError, match="the same number"):
            frame.dprisk.count(eps=1, by="g", keys=[0.1, 0.1 + 1e-12])

    def test_wider_floats_are_refused(self):
        frame = pd.DataFrame({"g": np.array([0.5], dtype=np.longdouble)})
        if frame["g"].dtype.itemsize > 8:
            with pytest.raises(ColumnTypeError, match="float64"):
                frame.dprisk.count(eps=1, by="g", keys=[0.5])


class TestPublic:
    """Nothing of the curator's comes out, in columns or in the index."""

    TABLE = pd.DataFrame({"x": [1.0, 2, 3], "sex": ["f", "m", "m"]}).dprisk.mean(
        "x", eps=5, bounds=(0, 9), by="sex", keys=["f", "m"]
    )

    @pytest.mark.parametrize("column", ["n", "local_sensitivity", "two_worlds"])
    @pytest.mark.parametrize("append", [False, True])
    def test_curator_columns_in_the_index_are_refused(self, column, append):
        moved = self.TABLE.set_index(column, append=append)
        for frame in (moved, moved.rename_axis(index=lambda _: None)):
            with pytest.raises(ParameterError, match="index"):
                pdrisk.public(frame)

    def test_keys_may_be_index_or_column(self):
        assert pdrisk.public(self.TABLE).index.tolist() == ["f", "m"]
        assert pdrisk.public(self.TABLE.reset_index())["sex"].tolist() == ["f", "m"]

    def test_a_release_too(self):
        release = pd.DataFrame({"x": [1.0]}).dprisk.count(eps=1)
        assert pdrisk.public(release) == release.public()
        assert f"{release:.1f}" == f"{release.value:.1f}"


class TestColumnNames:
    def test_half_a_label_of_several_levels_names_no_column(self):
        frame = pd.DataFrame({("a", "b"): [1.0], ("a", "c"): [2.0]})
        for ask in (frame.dprisk.mean, frame.dprisk.assess, frame.dprisk.individual_risk):
            with pytest.raises(ParameterError, match="several columns named 'a'"):
                ask("a", eps=1, bounds=(0, 9))
        assert frame.dprisk.mean(("a", "c"), eps=3, bounds=(0, 9)).n == 1


class TestLabels:
    def test_close_quantiles_keep_apart(self):
        specs = [("quantile", {"q": 0.123456789}), ("quantile", {"q": 0.12345678}), ("quantile", {"q": 1})]
        table = pd.DataFrame({"x": [1.0]}).dprisk.assess("x", specs, eps=1, bounds=(0, 9))
        assert table["statistic"].tolist() == ["quantile(0.123456789)", "quantile(0.12345678)", "quantile(1)"]
