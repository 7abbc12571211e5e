"""Whether and how a ``where`` fails tells nothing about the data, and no record decides it for the others."""

import traceback
import warnings

import numexpr
import numpy as np
import pandas as pd
import pytest

from pdrisk._model.rowwise import judged
from pdrisk.errors import ParameterError, QueryFailedError
from rowwise_people import FRAME, SECRETS, mask_of, names, says_nothing


class TestOnData:
    """What fails on the data only is one fixed sentence; warnings, too, would be an output."""

    SENTENCE = (
        "the request failed while the data was read; it stays paid. "
        "Its cause is not shown because it could reveal a record."
    )

    @pytest.mark.parametrize(
        "where",
        [
            lambda frame: 1 / 0,
            lambda frame: frame["SENTINEL"],
            lambda frame: frame["age"],
            lambda frame: True,
            lambda frame: [True],
            lambda frame: frame["member"].iloc[1:],
            lambda frame: frame["member"].reset_index(drop=True),
            lambda frame: frame["mixed"] == np.arange(3),
            lambda frame: frame[["member"]],
            lambda frame: None,
        ],
    )
    def test_failures(self, where):
        judged(where, FRAME, names)  # which looks at no record
        with pytest.raises(QueryFailedError) as caught:
            mask_of(where)
        says_nothing(caught.value)
        assert str(caught.value) == self.SENTENCE
        assert not any(s in "".join(traceback.format_exception(caught.value)) for s in SECRETS[:3] if s != "SENTINEL")

    def test_an_interrupt_passes(self):
        def interrupted(frame):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            mask_of(interrupted)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize(
        "where",
        [
            "income / height > 1",
            "height ** 300.5 > 1",
            "small * 100 > 1",
            lambda frame: warnings.warn("SENTINEL", stacklevel=1) or frame["member"],
            lambda frame: np.log(-frame["age"]) > 0,
        ],
    )
    def test_no_warnings(self, where):
        assert mask_of(where).shape == (43,)


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
        decided = [few.iloc[[row]].dprisk.count(eps=1, where=where).curator.n for row in (0, 1)]
        assert many.dprisk.count(eps=1, where=where).curator.n == sum(decided) * (MANY // 2 + 1)

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
