"""Kinds of values have one name, whether pandas, SQL or a listed key is judged."""

import datetime

import duckdb
import pandas as pd
import pytest

from pdrisk._model.expressions.columns import column_kind
from pdrisk._model.expressions.kinds import kind_of_value, kind_phrase
from pdrisk._sql.syntax.pieces import kind_of_type

VALUES = {
    "numbers": 1.5,
    "truth values": True,
    "text": "north",
    "dates": datetime.date(2020, 1, 31),
    "timestamps": datetime.datetime(2020, 1, 31, 12),
    "timestamps with a time zone": datetime.datetime(2020, 1, 31, 12, tzinfo=datetime.UTC),
}


@pytest.mark.parametrize(("name", "value"), VALUES.items(), ids=VALUES)
def test_one_name(name, value):
    ((sql_type,),) = duckdb.connect().execute("SELECT typeof(?)", [value]).fetchall()
    assert column_kind(pd.Series([value])) == kind_of_type(sql_type) == kind_of_value(value) == name


@pytest.mark.parametrize("value", [pd.Period("2020-01", "M"), pd.Timedelta(days=1)])
def test_others_have_the_name_of_their_type(value):
    """So that a key of a column of periods is found to be one."""
    assert column_kind(pd.Series([value, value])) == kind_of_value(value) == type(value).__name__


def test_an_error_says_of_what_type_others_are():
    assert [kind_phrase(value) for value in (b"x", "x", 1)] == ["of type bytes", "text", "a number"]
