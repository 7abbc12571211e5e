"""A query string that is not row-wise is refused, before data is touched and without telling anything about them."""

import pandas as pd
import pytest

from pdrisk.errors import UnknownColumnError
from rowwise_people import FRAME, refusal, says_nothing, selected

REFUSALS = {
    "": "it is empty",
    "   ": "it is empty",
    "# nothing": "it is empty",
    "age > age.mean()": "uses `mean`, which may look at other records",
    "age.rank() > 3": "uses `rank`, which may look at other records",
    "len(age) > 3": "uses `len`, which may look at other records",
    "sqrt(age) > 3": "uses `sqrt`, which filters do not have. Compute it as a column in the frame before",
    "@function(age) > 3": "uses `@function`, which may look at other records",
    "age.values > 3": "uses `values`, which may look at other records",
    "@pd.x > age": "uses `x`, which may look at other records",
    "age[0] > 3": "uses brackets",
    "@towns[0] == town": "uses brackets",
    "index < 5": "is the index",
    "person < 5": "is the index",
    "ilevel_0 < 5": "is the index",
    "columns == 'age'": "is the index",
    "age > @function": "@function is a builtin_function_or_method",
    "age > @column": "@column is a Series",
    "age in @column": "@column must be a list, tuple or set of constants",
    "age > @array": "@array is a ndarray",
    "age in @array": "@array must be a list, tuple or set of constants",
    "age > @FRAME": "@FRAME is a DataFrame",
    "age > @pd": "@pd is a module",
    "age > @weird": "@weird is a Weird",
    "age > @none": "@none is None, a missing value",
    "age > @unknown_nan": "@unknown_nan is a missing value",
    "age > @limmit": "there is no variable 'limmit' where you call. Did you mean '@limit'?",
    "town == @towns": "write `in` instead of `==`",
    "town == ['A']": "write `in` instead of `==`",
    "age in 3": "must be a list, tuple or set of constants",
    "town in 'A'": "must be a list, tuple or set of constants",
    "age in small": "must be a list, tuple or set of constants",
    "age in [small, 3]": "must be a list, tuple or set of constants",
    "age in [@limit, 3]": "must be a list, tuple or set of constants",
    "'A' in town": "must be a list, tuple or set of constants",
    "age in [[1], [2]]": "a list stands only after `in`",
    "b = age + 1": "it assigns with `=`",
    "age = 1": "it assigns with `=`",
    "age &= 1": "it assigns with `=`",
    "(b := age) > 1": "it assigns with `:=`",
    "age > 1; age < 3": "several statements",
    "age > 1\nage < 3": "several statements",
    "1 == 1": "it compares constants with each other",
    "age > 1 and 1 == 1": "it compares constants with each other",
    "3 in [3]": "it compares constants with each other",
    "not True": "it compares constants with each other",
    '"x"': "names no column",
    "True": "names no column",
    "1 + 1": "names no column",
    "age": "age (int64) is not a decision",
    "age + 1": "age + 1 (a number) is not a decision",
    "mixed": "mixed (object) is not a decision between True and False. Convert the column in the frame before",
    "age and member": "age (int64) is not a decision",
    "~age > 3": "age (int64) is not a decision",
    "member and 3": "`and` joins conditions, not constants",
    "age >": "cannot be read as an expression",
    "age > 3)": "cannot be read as an expression",
    "age > 'x": "cannot be read as an expression",
    "age > @": "cannot be read as an expression",
    "age @ small": "cannot be read as an expression",
    "`age > 3": "cannot be read as an expression",
    "age > \0": "cannot be read as an expression",
    "age > 3 && small > 2": "cannot be read as an expression",
    "for x in y": "cannot be read as an expression",
    "age > " + "9" * 5000: "cannot be read as an expression",
    "import os": "cannot be read as an expression",
    "age is 3": "Write `==`",
    "age is not 3": "Write `!=`",
    "age ^ small": "Write `!=`",
    "age << 2 > 3": "uses an operator that filters do not have",
    "age > 3 if member else True": "if ... else",
    "(lambda: age)": "lambda",
    "[a for a in age]": "comprehension",
    "{a for a in age}": "comprehension",
    "region == f'{age}'": "f-string",
    "region == {'a'}": "Write a list",
    "(age > 3, age < 5)": "a tuple stands only after `in`",
    "{'a': 1}": "something other than operators and constants",
    "age > None": "is None, a missing value",
    "age > ...": "is a ellipsis",
    "region == b'x'": "is a bytes",
    "age > 3j": "is a complex",
    "age > 1e999": "overflows",
    "age > 99999999999999999999": "beyond 64 bits",
    "age > 9 ** 9 ** 9": "cannot be computed",
    "age > 9.0 ** 9 ** 9": "cannot be computed",
    "age > 1 / 0": "cannot be computed",
    "age > (-1) ** 0.5": "cannot be computed",
    "age > 1e308 * 10": "cannot be computed",
    "age / 0 > 1": "divides by zero",
    "age + 'x' > 3": "takes numbers only",
    "'x' * 1000000000 == region": "takes numbers only",
    "town < 3": "`<` does not work on town (string) and 3 (int)",
    "age < 'x'": "`<` does not work on age (int64) and 'x' (str)",
    "level > 'nowhere'": "categories may have been read off the data: declare theirs in order",
    "level < level": "categories may have been read off the data",
    "level < town": "`<` does not work on level (category of ",
    "day > 'someday'": "write it like '2020-12-31'",
    "day > 3": "something that is no date",
    "day == '1999-01-01'": "whether a date equals a text depends on the version of pandas",
    "day in ['1999-01-01']": "whether a date equals a text depends on the version of pandas",
    "day - day > 3": "arithmetic takes numbers, not text, dates, categories or objects",
    "level + 1 > 3": "arithmetic takes numbers, not text, dates, categories or objects",
    "region + region == 'x'": "arithmetic takes numbers, not text, dates, categories or objects",
    "mixed + 1 > 3": "arithmetic takes numbers, not text, dates, categories or objects",
    "member + member > 1": "on conditions alone",
    "-member": "on conditions alone",
    "town == '\\ud800'": "half of a surrogate pair",
    "-" * 300 + "age > 3": "nested more than 200 levels deep",
    "age" + " + 1" * 300 + " > 3": "nested more than 200 levels deep",
    "(" * 5000 + "age" + ")" * 5000 + " > 3": "cannot be read as an expression",
}


class TestRefusals:
    """What is not row-wise, or no filter at all, is refused without data, in words that say what to write instead."""

    @pytest.mark.parametrize(("text", "words"), REFUSALS.items(), ids=[text[:30] for text in REFUSALS])
    def test_queries(self, text, words):
        error = refusal(text)
        says_nothing(error)
        assert words in str(error)
        assert len(str(error)) < 800
        assert repr(text[:50])[:-1] in str(error)

    @pytest.mark.parametrize("text", REFUSALS)
    def test_they_need_no_data(self, text):
        assert str(refusal(text, FRAME.iloc[:0])) == str(refusal(text))

    def test_deep_chains_are_refused_or_work(self):
        deep = "age" + " + 1" * 3000 + " > 3"
        assert "nested too deeply" in str(refusal(deep)) or "cannot be read" in str(refusal(deep))
        assert selected(" or ".join(f"age == {i}" for i in range(2000))) == [True] * 7 + [False] + [True] * 35

    def test_an_unknown_column_names_the_nearest(self):
        frame = pd.DataFrame({"age": [1], "distance": [1], "region": ["SENTINEL"]})
        error = refusal("distnace > 3", frame)
        assert type(error) is UnknownColumnError
        assert str(error) == (
            "unknown column 'distnace'; the frame has: age, distance, region. Did you mean 'distance'?"
        )
        says_nothing(error)

    def test_of_many_columns_twenty_are_listed(self):
        error = refusal("zzz > 1", pd.DataFrame([[0] * 50], columns=[f"c{i}" for i in range(50)]))
        assert str(error).endswith("c18, c19 and 30 more.")

    def test_several_columns_of_one_name(self):
        frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
        assert "several columns named 'a'" in str(refusal("a > 1", frame))
        assert "several columns named 'a'" in str(refusal("a > 1", pd.DataFrame({("a", "b"): [1], ("a", "c"): [1]})))

    def test_columns_without_a_name_in_text(self):
        assert type(refusal("`1` > 1", pd.DataFrame({1: [1]}))) is UnknownColumnError

    def test_pandas_own_spelling_of_a_local_is_no_back_door(self):
        assert type(refusal("age > __pd_eval_local_column")) is UnknownColumnError
