"""43 people with every kind of column and secrets, the variables of whoever asks about them, and how filters answer."""

import datetime
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from pdrisk._model.rowwise import given_of, judged
from pdrisk.engines.numpy.selected import selected_rows
from pdrisk.errors import ParameterError

SECRETS = ("987654321", "SENTINEL", "1987-06-05", "43")  # 43: the frame's length


def people() -> pd.DataFrame:
    """43 records, every kind of column, with missing values."""
    n = np.arange(43)
    gap = n % 5 == 0
    frame = pd.DataFrame(
        {
            "age": np.where(n == 7, 987654321, n % 23),
            "small": (n % 7).astype("int8"),
            "height": np.where(gap, np.nan, n * 0.5 - 8),
            "narrow": (n * 0.1).astype("float32"),
            "children": pd.array(np.where(gap, None, n % 4), dtype="Int64"),
            "income": pd.array(np.where(gap, None, n * 1.5), dtype="Float64"),
            "visits": pd.array(np.where(gap, None, n % 6), dtype="int64[pyarrow]"),
            "region": np.where(gap, None, np.where(n == 7, "SENTINEL", np.where(n % 2, "north", "south"))),
            "town": pd.array(np.where(gap, None, np.where(n % 3, "A", "B")), dtype="string"),
            "code": pd.array(np.where(gap, None, np.where(n % 3, "x", "y")), dtype="string[pyarrow]"),
            "level": pd.Categorical(np.where(gap, None, np.where(n % 3, "lo", "hi")), ["lo", "hi"], ordered=True),
            "member": n % 3 == 0,
            "consent": pd.array(np.where(gap, None, n % 2 == 0), dtype="boolean"),
            "arrow": pd.array(np.where(gap, None, n % 2 == 0), dtype="bool[pyarrow]"),
            "day": pd.to_datetime("1987-06-05") + pd.to_timedelta(n * 200, unit="D"),
            "full name": n,
            "it's `odd`": n,
            "class": n,
        }
    )
    frame.loc[gap, "day"] = pd.NaT
    frame["zoned"] = frame["day"].dt.tz_localize("UTC")
    frame["mixed"] = pd.Series([*range(42), "SENTINEL"], dtype=object)
    frame.index = pd.Index(n[::-1] * 1000 + 987654321, name="person")
    return frame


FRAME = people()
limit, towns, nobody, day, stamp, none = (
    9,
    ["A", "C"],
    frozenset(),
    datetime.date(1999, 1, 1),
    pd.Timestamp("1999"),
    None,
)
column, array, unknown_nan, function = FRAME["age"], np.arange(43), math.nan, len


class Weird(int):
    """An int that brings operators of its own."""


weird = Weird(3)


def names() -> dict[str, object]:
    return globals()


def selected(where: object, frame: pd.DataFrame = FRAME) -> list[bool]:
    return mask_of(where, frame).tolist()


def mask_of(where: object, frame: pd.DataFrame = FRAME) -> np.ndarray:
    return selected_rows(frame, judged(where, frame, names), given_of(where, frame))


def by_pandas(text: str, frame: pd.DataFrame = FRAME) -> list[bool]:
    """``DataFrame.query`` on a frame with a position instead of an index."""
    plain = frame.reset_index(drop=True)
    return plain.index.isin(plain.query(text, engine="python", global_dict=names()).index).tolist()


def refusal(where: object, frame: pd.DataFrame = FRAME) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        judged(where, frame, names)
    return caught.value


def says_nothing(error: BaseException) -> None:
    """Neither the text nor a chained error tells about the data, and it survives pickling."""
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not any(secret in str(error) for secret in SECRETS)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
