"""A ``pd.col`` expression is judged as a query string is: row-wise or refused, and nothing told."""

import operator

import numpy as np
import pandas as pd
import pytest

from pdrisk._model.rowwise import judged
from pdrisk.engines.numpy.selected import selected_rows
from rowwise_people import FRAME, names, refusal, says_nothing, selected
from three_valued import records, truth

col = getattr(pd, "col", None)
needs_col = pytest.mark.skipif(col is None, reason="pd.col came with pandas 3")


@needs_col
class TestExpressions:
    """A ``pd.col`` expression is judged by the same tree as a query string."""

    @pytest.mark.parametrize(
        "build",
        [
            lambda: col("age") > 10,
            lambda: (col("age") > 10) & (col("region") == "north"),
            lambda: (col("region") != "north") | ~col("member"),
            lambda: col("town") != "A",
            lambda: operator.lt(10, col("age")),
            lambda: True & col("member"),
            lambda: (1 + col("age")) * 2 - col("small") / 2 >= 5,
            lambda: 2.0 ** -col("small") > 0.1,
            lambda: 7 // (col("height") + 0.25) > +col("small") % 3,
            lambda: col("town").isin(["A", "C"]),
            lambda: ~col("age").isin({1, 2}),
            lambda: col("age").between(3, 9),
            lambda: col("children").isna() | col("town").notna(),
            lambda: col("day") > "1999-01-01",
            lambda: col("day") > pd.Timestamp("1999"),
            lambda: col("zoned") > "1999-01-01",
            lambda: col("consent"),
            lambda: col("age") > np.int64(4),
        ],
    )
    def test_selects_what_pandas_selects(self, build):
        expression = build()
        found = judged(expression, FRAME, names)
        whole = FRAME.dropna(subset=list(found.columns)) if "isna" not in found.text else FRAME
        expected = expression._eval_expression(whole).astype("boolean").fillna(False)
        assert selected_rows(whole, found).tolist() == expected.tolist()
        assert selected_rows(FRAME, found).tolist() == [truth(found.rule, each) is True for each in records(FRAME)]
        assert found.trusted == ("@value" in found.text)
        assert not any(digit in found.text for digit in "0123456789")

    def test_constants_are_the_callers_word(self):
        """Python has computed them before anything is seen, perhaps from the data."""
        mean = float(FRAME["age"].mean())
        for expression in (col("age") > mean, mean < col("age"), col("age").isin([mean]), col("age") * mean > 1):
            found = judged(expression, FRAME, names)
            assert (found.trusted, str(mean)[:6] in found.text) == (True, False)
        assert not judged(col("age") > col("small"), FRAME, names).trusted

    @pytest.mark.parametrize(
        ("build", "words"),
        [
            (lambda: col("age") > col("age").mean(), "it uses `mean`"),
            (lambda: col("age").rank() > 3, "it uses `rank`"),
            (lambda: col("region").str.len() > 3, "it uses `str.len`"),
            (lambda: col("region").str.state[0].state, "it uses `str.state`"),
            (lambda: col("region").str.contains.state, "it uses `str.contains.state`"),
            (lambda: col("region").str.contains("a.b"), "regular expression"),
            (lambda: col("region").str.startswith(col("town")), "`str.startswith` takes one text"),
            (lambda: col("day").dt.weekday > 3, "it uses `dt.weekday`"),
            (lambda: col("age").head() > 3, "it uses `head`"),
            (lambda: col("age").index > 3, "it uses `index`"),
            (lambda: col("age").state[0].frame["age"] > 3, "it uses `state`"),
            (lambda: col("age")[0] > 3, "it uses `__getitem__`"),
            (lambda: col("age")() > 3, "it uses `__call__`"),
            (lambda: np.log(col("age")) > 3, "which is not an operator"),
            (lambda: abs(col("age")) > 3, "which is not an operator"),
            (lambda: col("member") ^ col("consent"), "which is not an operator"),
            (lambda: col("age") @ col("age") > 3, "which is not an operator"),
            (lambda: col("age").case_when([(col("age") > 1, 1)]) > 3, "it uses `case_when`"),
            (lambda: col("age").pipe(lambda s: s > 3), "it uses `pipe`"),
            (lambda: col("age") == FRAME["age"], "is a Series"),
            (lambda: col("age") == [1, 2], "write `in` instead of `==`"),
            (lambda: col("age").isin(FRAME["age"]), "must be a list, tuple or set of constants"),
            (lambda: col("age").isin([col("small")]), "is a Expression"),
            (lambda: col("age").between(3, 9, inclusive="left"), "does something that is not an operator"),
            (lambda: col("age") + 1, "is not a decision"),
            (lambda: col("agee") > 1, "Did you mean 'age'?"),
            (lambda: col("person") > 1, "is the index"),
            (lambda: col("age") < "x", "does not work on age (int64)"),
            (lambda: type(col("age"))(lambda frame: FRAME["member"], "col('age') > 3"), "names no column"),
            (lambda: type(col("age"))(lambda frame: 1 / 0, "x"), "does something that is not an operator"),
        ],
    )
    def test_refusals(self, build, words):
        error = refusal(build())
        assert words in str(error)
        says_nothing(error)

    @pytest.mark.slow
    def test_deep_expressions(self):
        for depth in (300, 3000):
            expression = col("age")
            for _ in range(depth):
                expression = expression + 1
            assert "nested" in str(refusal(expression > 3))

    def test_names_of_any_kind(self):
        assert selected(col(1) / col(0) > 0, pd.DataFrame({0: [1, -1], 1: [1, 2]})) == [True, False]
        assert selected(col(1) > 1, pd.DataFrame({1: [1, 2]})) == [False, True]
