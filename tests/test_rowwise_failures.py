"""What fails while a ``where`` reads the data tells nothing about them."""

import traceback
import warnings

import numpy as np
import pytest

from pdrisk._model.rowwise import judged
from pdrisk.errors import QueryFailedError
from rowwise_people import FRAME, SECRETS, names, says_nothing


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
        found = judged(where, FRAME, names)
        with pytest.raises(QueryFailedError) as caught:
            found.mask(FRAME)
        says_nothing(caught.value)
        assert str(caught.value) == self.SENTENCE
        assert not any(s in "".join(traceback.format_exception(caught.value)) for s in SECRETS[:3] if s != "SENTINEL")

    def test_an_interrupt_passes(self):
        def interrupted(frame):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            judged(interrupted, FRAME, names).mask(FRAME)

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
        assert judged(where, FRAME, names).mask(FRAME).shape == (43,)
