"""A number that is paid with is a plain one, read once: what a class makes of itself changes nothing."""

import itertools
import numbers
from contextlib import nullcontext
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import people
from pdrisk._ledger.rules.limits import Limits, payable, whole_number
from pdrisk._ledger.rules.policy import Policy
from pdrisk._ledger.rules.rules import each_given
from pdrisk._model.arguments import epsilon

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
OPERATORS = [
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "mod", "neg", "pos", "abs"),
    *("lt", "le", "gt", "ge", "eq", "ne", "bool", "hash", "round", "floor", "ceil", "trunc"),
]
PLAIN = (int, float, Fraction, Decimal)


def hostile(base, **own):
    """A subclass whose arithmetic, comparisons and texts are all lies."""
    lies = {f"__{name}__": lambda self, *_: True for name in ("lt", "le", "gt", "ge", "eq", "ne")}
    lies |= {f"__{name}__": lambda self, *_: self for name in OPERATORS[:13]}
    lies |= {"__hash__": lambda self: 0, "__bool__": lambda self: True, "__str__": lambda self: "0.000001"}
    lies |= {"__repr__": lies["__str__"], "__format__": lambda self, _: "0.000001"}
    return type("Hostile", (base,), lies | own)


def counting(*values):
    """A property that is another at each look."""
    each = itertools.cycle(values)
    return property(lambda self: next(each), lambda self, _: None)


HOSTILE = {
    "int": hostile(int)(3),
    "float": hostile(float)(0.5),
    "Decimal": hostile(Decimal)("0.5"),
    "Fraction": hostile(Fraction)(1, 2),
    "float64": hostile(np.float64)(0.5),
    "float32": hostile(np.float32)(0.5),
    "int, by its methods": hostile(int, **{f"__{n}__": lambda self: 1 for n in ("int", "index", "float")})(3),
    "Decimal, by its methods": hostile(Decimal, __float__=lambda self: 0.1, as_integer_ratio=lambda self: (1, 9))(
        "0.5"
    ),
    "changing": hostile(Fraction, numerator=counting(1, 50, 10**6), denominator=counting(2, 1))(1, 2),
    "numerators": hostile(Fraction, numerator=property(lambda self: hostile(int)(1)))(1, 2),
    "other fields": hostile(Fraction, _numerator=counting(1, 50, 10**6))(1, 2),
    "no int": hostile(Fraction, numerator=property(lambda self: 0.5))(1, 2),
    "nothing": hostile(Fraction, denominator=property(lambda self: 0))(1, 2),
    "failing": hostile(Fraction, numerator=property(lambda self: {}["data"]))(1, 2),
    "float, failing": hostile(float, __float__=lambda self: 1 / 0)(0.5),
    "below zero": hostile(Fraction, denominator=property(lambda self: -2))(1, 2),
    "huge": hostile(int)(10**400),
    "not a number": hostile(float)("nan"),
}

NONE = ("no int", "nothing", "failing", "float, failing", "below zero", "huge", "not a number")


class Liar:
    """No number, and says that it is one."""

    __class__ = Fraction
    numerator, denominator = 1, 2


def plain(value):
    return type(value) is Fraction and type(value.numerator) is type(value.denominator) is int


class TestPlain:
    """Every number that is charged or limits is a Fraction or an int of Python's own."""

    @pytest.mark.parametrize("name", HOSTILE)
    def test_epsilon(self, name):
        with pytest.raises(pdrisk.ParameterError) if name in NONE else nullcontext():
            eps = epsilon(HOSTILE[name])
            assert plain(eps) and 0 < eps < 10**7

    @pytest.mark.parametrize("name", ["int", "float", "Decimal", "Fraction", "float64", "numerators"])
    def test_its_value(self, name):
        """That of the number, not of what its text says."""
        assert epsilon(HOSTILE[name]) == (3 if name == "int" else Fraction(1, 2))

    @pytest.mark.parametrize("value", [Liar(), hostile(str)("1"), True, np.True_, 1j, object(), "1", [1], None])
    def test_no_number(self, value):
        with pytest.raises(pdrisk.ParameterError):
            epsilon(value)

    @pytest.mark.parametrize(
        ("value", "exact"),
        [
            (0.1, "1/10"), (1, "1"), (Decimal("0.30"), "3/10"), (Fraction(1, 3), "1/3"), (np.float64(0.1), "1/10"),
            (np.float32(0.1), "1/10"), (np.int8(2), "2"), (np.uint64(7), "7"), (np.float16(0.1), "1/10"),
            (1e-300, Fraction("1e-300")), (Decimal("1e-30"), Fraction(1, 10**30)), (np.longdouble("0.25"), "1/4"),
        ],
    )  # fmt: skip
    def test_as_it_is_written(self, value, exact):
        assert epsilon(value) == Fraction(exact) and plain(epsilon(value))

    @pytest.mark.parametrize("name", HOSTILE)
    def test_limits(self, name):
        value = HOSTILE[name]
        for make in (
            lambda: Limits.given({"eps": value}),
            lambda: each_given({"eps_per_query": value}),
            lambda: Limits(eps=Policy.given({"least_group": {"size": 3, "eps": value}}).least_group.eps),
        ):
            try:
                limits = make()
            except pdrisk.ParameterError:
                continue
            assert plain(limits.eps or limits.eps_per_query)

    @pytest.mark.parametrize("name", HOSTILE)
    def test_numbers_of_queries(self, name):
        try:
            found = whole_number("queries", HOSTILE[name])
        except pdrisk.ParameterError:
            assert not isinstance(HOSTILE[name], int)
        else:
            assert type(found) is int and found in (3, 10**400)

    def test_bases(self):
        policy = Policy.given({"round_to": {"count": hostile(float)(5)}})
        assert [type(base) for _, base in policy.round_to] == [float]


def ask(ledger, **options):
    return people().dprisk.count(ledger=ledger, **options)


class TestTheBudgetHolds:
    """Whatever is asked with, what is drawn with is what is paid, and no more than the limit."""

    @pytest.mark.parametrize("name", HOSTILE)
    def test_asking(self, book, name):
        ledger, drawn = book(eps=1), 0.0
        for _ in range(6):
            try:
                release = ask(ledger, eps=HOSTILE[name])
            except pdrisk.PdriskError:
                continue
            assert type(release.eps) is float and release.eps == pytest.approx(1 / release.scale)
            drawn += release.eps
        assert drawn == pytest.approx(ledger.remaining().spent) and drawn <= 1
        assert ledger.verify()[0] == len(ledger.history())

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("name", HOSTILE)
    def test_by_other_ways(self, book, name):
        """Groups, several statistics, a search for bounds, SQL."""
        ledger, frame, value = book(eps=1), people(), HOSTILE[name]
        for call in (
            lambda: frame.dprisk.count(eps=value, by="sex", keys=[0, 1], ledger=ledger),
            lambda: frame.dprisk.agg({"age": ["max", "count"]}, eps=value, bounds=(0, 99), ledger=ledger),
            lambda: frame.dprisk.suggest_bounds("age", eps=value, ledger=ledger),
            lambda: pdrisk.sql("SELECT COUNT(*) FROM frame", eps=value, frame=frame, ledger=ledger),
        ):
            try:
                call()
            except pdrisk.PdriskError:
                continue
        table = ledger.history()
        assert table["eps"].sum() == pytest.approx(ledger.remaining().spent) and ledger.remaining().spent <= 1
        ledger.verify()

    @pytest.mark.parametrize("name", HOSTILE)
    def test_an_owners_limits(self, book, name):
        """They hold as they are written down."""
        try:
            ledger = book(eps=HOSTILE[name])
        except pdrisk.ParameterError:
            return
        assert plain(ledger.limits.eps) and ledger.verify()[0] == 1
        with pytest.raises(pdrisk.BudgetExceededError):
            ask(ledger, eps=ledger.limits.eps * 2)

    def test_registered_numbers(self):
        """A class that is a number by its word only is read once, too."""

        @numbers.Rational.register
        class Word:
            numerator = counting(1, 9)
            denominator = 3

        @numbers.Real.register
        class Real:
            __float__ = lambda self: 0.25  # noqa: E731
            __str__ = lambda self: "quarter"  # noqa: E731

        assert plain(epsilon(Word()))
        with pytest.raises(pdrisk.ParameterError):
            epsilon(Real())

    def test_pandas_numbers(self, book):
        eps = pd.Series([0.25]).iloc[0]
        assert ask(book(eps=1), eps=eps).eps == 0.25


@pytest.mark.parametrize(
    "eps", [Fraction(1, 3), Fraction(1, 1009), Fraction(2, 3**40), Fraction(10**30 + 1, 7**50)], ids=str
)
def test_what_is_paid_is_never_less_than_what_is_asked_for(eps):
    """A fraction that would make the sums long is paid as the next decimal above."""
    assert eps <= payable(eps) < eps + Fraction(1, 10**40)
    assert (payable(eps) == eps) == (eps.denominator <= 1000)
