"""One record decides nothing but itself: no other decision, no failure, no refusal, whatever its column holds."""

import datetime as dt
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import pdrisk
from every_dtype import COLUMNS, CONSTANTS, ENDS, Hostile, Nowhere, nullable, objects
from pdrisk._answer.answers.answer import Answer
from pdrisk._model.rowwise import judged
from pdrisk._model.rowwise.exact import arithmetic, of_plain
from pdrisk._model.rowwise.families import is_missing
from pdrisk.engines.numpy.selected import selected_rows
from pdrisk.errors import ParameterError, PdriskError

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
LEVELS = {"ordered categories": ("b", "a"), "a": ("b", "a"), "b": ("b", "a")}


def filter_of(text, frame):
    """The judged filter; None if it is refused, with the same words for one record and for none."""
    said = []
    for people in (frame, frame.iloc[:0], frame.iloc[[0]]):
        try:
            found = judged(text, people, lambda: NAMED, LEVELS.get)
            said.append("accepted")
        except ParameterError as error:
            found = None
            said.append(str(error))
    if not any(dtype.kind == "O" for dtype in frame.dtypes):  # objects are asked: docs/threat-model.md
        assert len(set(said)) == 1, said
    return found


NAMED = {name.replace(" ", "_"): value for name, value in CONSTANTS.items()}


def decides_alone(found, frame):
    """The definition of row-wise: a record alone is decided as among all others, each of at most five records."""
    together = selected_rows(frame, found).tolist()
    alone = sorted({int(at) for at in np.linspace(0, len(frame) - 1, 5)})
    assert [together[at] for at in alone] == [selected_rows(frame.iloc[[at]], found)[0] for at in alone], found
    return together


def pair(left, right):
    """All combinations of the two columns' values."""
    one, other = COLUMNS[left], COLUMNS[right]
    places = np.array(list(itertools.product(range(len(one)), range(len(other)))))[:: 1 + (len(one) > 4)][:14]
    return pd.DataFrame(
        {
            "a": one.iloc[places[:, 0]].reset_index(drop=True),
            "b": other.iloc[places[:, 1]].reset_index(drop=True),
        }
    )


class TestPairsOfColumns:
    """Two columns of whatever dtypes are compared record by record, or refused by their dtypes alone."""

    @pytest.mark.sampled(19)
    @pytest.mark.parametrize("left", COLUMNS)
    def test_each_decision_is_the_records_own(self, left):
        for at, right in enumerate(list(COLUMNS)[list(COLUMNS).index(left) :]):
            frame, turn = pair(left, right), at + len(left)
            for symbol in (COMPARISONS[turn % 2], COMPARISONS[2 + turn % 4]):
                if found := filter_of(f"a {symbol} b", frame):
                    decides_alone(found, frame)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("left", COLUMNS)
    def test_a_changed_record_moves_its_own_decision_only(self, left):
        random = np.random.default_rng(len(left))
        for right in list(COLUMNS)[: list(COLUMNS).index(left) + 1]:
            frame = pair(left, right)
            moved, other = random.integers(len(frame), size=2)
            rows = np.arange(len(frame))
            rows[moved] = other
            for text in ("a == b", "not a != b or a.isna()", "a <= b"):
                if found := filter_of(text, frame):
                    before, after = selected_rows(frame, found), selected_rows(frame.iloc[rows], found)
                    assert np.flatnonzero(before != after).tolist() in ([], [moved])

    def test_one_object_does_not_make_every_text_unequal(self):
        """As pandas does: with one date beside them, 500 equal texts were unequal."""
        for other in (None, dt.date(2020, 1, 1), 3, True, Decimal(3), ("a",), Hostile()):
            frame = pd.DataFrame({"a": pd.array(["x"] * 501, "string"), "b": objects(["x"] * 500 + [other])})
            differ = int(other is not None)  # what is missing is unknown
            assert selected_rows(frame, judged("a != b", frame, dict)).sum() == differ
            assert selected_rows(frame, judged("not a == b and a != 'y'", frame, dict)).sum() == differ


OF_OBJECTS = {
    "hostile objects": [True] * 3 + [False] + [True] * 5,
    "numpy objects": [False, True, False, True, True, True],
}
FORMS = {
    "in": "a in @members",
    "not in": "not a not in @members",
    "in few": "a in @few",
    "in many": "a in @many",
    "*": "a * @{name} > 5",
    "//": "a // @{name} == 1",
}


class TestConstants:
    """What is accepted by dtype and constant cannot fail on any record of that dtype."""

    @pytest.mark.sampled(19)
    @pytest.mark.parametrize("column", COLUMNS)
    def test_no_record_makes_it_fail(self, column):
        frame = pd.DataFrame({"a": COLUMNS[column]})
        accepted = 0
        for name, symbol in itertools.product(NAMED, (*COMPARISONS, *FORMS)):
            text = FORMS.get(symbol, "a {symbol} @{name}").format(name=name, symbol=symbol)
            value = NAMED[name]
            lists = {"members": [value], "few": [value, None], "many": [value] * 30}
            try:
                found = judged(text, frame, lambda lists=lists: NAMED | lists, LEVELS.get)
            except ParameterError:
                continue
            decides_alone(found, frame)
            accepted += 1
        nothing = (
            "sparse objects",
            "intervals",
            "complex",
            "time arrow",
            "bytes arrow",
            "lists arrow",
            "dictionary arrow",
            "null arrow",
        )
        assert (accepted > 0) == (column not in nothing)

    @pytest.mark.parametrize("column", COLUMNS)
    def test_missing_is_asked_of_every_column(self, column):
        frame = pd.DataFrame({"a": COLUMNS[column]})
        if column in OF_OBJECTS:  # on which pandas itself fails
            expected = OF_OBJECTS[column]
        elif column in ("double arrow", "float arrow"):  # NaN is missing whatever the dtype thinks of it
            expected = (COLUMNS[column].astype(float) == COLUMNS[column].astype(float)).tolist()
        else:
            expected = COLUMNS[column].notna().tolist()
        assert decides_alone(judged("a.notna()", frame, dict), frame) == expected

    @pytest.mark.parametrize(
        ("column", "text", "expected"),
        [
            ("decimal", "a in [5.1, 3]", [True, False, False, True, False]),
            ("decimal", "a == 5.1 or a < -999", [True, False, True, False, False]),
            ("double arrow", "a in [3, 9223372036854775807]", [False, False, False, False, False, True]),
            ("int64 arrow", "a in [1, 0.5, 9223372036854775806]", [False, False, True, False, True, False]),
            ("UInt64", "a == 18446744073709551614", [False, False, False, False, True, False]),
            ("numbered categories", "a == 9007199254740993", [False, False, False, True]),
            ("far dates", "a > '9999-12-31'", [True, False, False]),
            ("far dates arrow", "a > '9999-12-31'", [True, False, False]),
            ("objects", "a == 'a' or a == 1 or a == 5.1", [True, False, False, False, True, True]),
            ("float32", "a in [1e39] or a == 1e39", [False] * 6),
            ("float32", "a == 0.1 and a in [0.1, 2]", [False, False, False, True, False, False]),
            ("texts of their own", "a == 'a'", [True, True, False, False]),
            ("numpy objects", "a == 3", [False, False, False, True, False, True]),
            ("sparse whole", "a > 9007199254740992", [False, False, False]),
            ("bool", "a * 2 > 1", [True, False, True]),
        ],
    )
    def test_answers(self, column, text, expected):
        frame = pd.DataFrame({"a": COLUMNS[column]})
        assert decides_alone(judged(text, frame, dict), frame) == expected


BEYOND_ISO = ("far dates", "far dates arrow", "odd dates")  # dates that no text of ours can hold are no codes


class TestMissingCodes:
    """A declared code becomes missing in its own records only, whatever else the column holds."""

    @pytest.mark.sampled(5)
    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize("column", [name for name in COLUMNS if name not in BEYOND_ISO])
    def test_of_every_dtype(self, column):
        frame = pd.DataFrame({"a": COLUMNS[column]})
        if column == "int32":
            frame = frame[frame["a"] != -(2**31)]  # which is R's NA, and refused
        for code in [one for one in frame["a"].array if not (type(one) is Hostile or is_missing(one))]:
            try:
                coded = frame.dprisk.declare(missing={"a": [code]})
            except PdriskError:
                continue
            left = coded.dprisk.count("a", eps=1).curator.n
            alone = sum(coded.iloc[[at]].dprisk.count("a", eps=1).curator.n for at in range(len(frame)))
            present = sum(frame.iloc[[at]].dprisk.count("a", eps=1).curator.n for at in range(len(frame)))
            assert alone == left < present

    def test_truth_values_with_a_code_in_arithmetic(self):
        frame = pd.DataFrame({"a": [True, False, True]}).dprisk.declare(missing={"a": [False]})
        assert frame.dprisk.count(eps=100, where="a * 2 > 1").curator.n == 2
        assert frame.dprisk.count(eps=100, where="not a * 2 > 1").curator.n == 0


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
class TestCategories:
    """Categories may have been read off the data: only declared ones decide what is answered, and in which order."""

    JOBS = ("nurse", "spy", "teacher")

    def frame(self, categories, ordered=True):
        return pd.DataFrame({"job": pd.Categorical(["teacher", "nurse", None], categories, ordered=ordered)})

    def test_no_refusal_tells_which_categories_exist(self):
        said = set()
        for categories in (["nurse", "teacher"], ["nurse", "spy", "teacher"], ["teacher", "spy", "nurse"]):
            for where in ("job < 'spy'", "job >= 'nurse'", "'spy' > job", "job <= job"):
                with pytest.raises(ParameterError) as caught:
                    self.frame(categories).dprisk.count(eps=1, where=where)
                said.add(str(caught.value).partition(": ")[2])
        assert len(said) == 2  # of one column, and of two
        assert all("df.dprisk.declare(keys={'job'" in sentence for sentence in said)

    @pytest.mark.parametrize("categories", [["nurse", "teacher"], ["nurse", "spy", "teacher"], ["teacher", "nurse"]])
    def test_declared_ones_are_ordered_as_declared(self, categories):
        frame = self.frame(categories).dprisk.declare(keys={"job": list(self.JOBS)})
        for where, n in {"job < 'spy'": 1, "job >= 'spy'": 1, "job > 'teacher'": 0, "not job < 'spy'": 1}.items():
            assert frame.dprisk.count(eps=1, where=where).curator.n == n
        with pytest.raises(ParameterError, match="'singer' is none of the categories that are declared for job"):
            frame.dprisk.count(eps=1, where="job < 'singer'")
        assert (
            frame.assign(job=frame["job"].cat.add_categories("singer"))
            .dprisk.count(eps=1, where="job < 'spy'")
            .curator.n
            == 1
        )

    def test_two_columns_are_equal_by_their_values(self):
        other = pd.Categorical(["teacher", "singer", None], ["singer", "teacher"])
        frame = self.frame(["nurse", "teacher"]).assign(other=other)
        assert [frame.dprisk.count(eps=1, where=f"job {sign} other").curator.n for sign in ("==", "!=")] == [1, 1]

    def test_equality_asks_for_no_category(self):
        for where, n in {"job == 'spy'": 0, "job != 'spy'": 2, "job in ['spy', 'nurse']": 1}.items():
            assert self.frame(["nurse", "teacher"]).dprisk.count(eps=1, where=where).curator.n == n


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
class TestConstantsFromPython:
    """A value that was computed elsewhere, perhaps from the data, is the caller's word and stands in no public text."""

    FRAME = pd.DataFrame({"age": [38, 41, 52, 44]})

    def forms(self):
        mean = float(self.FRAME["age"].mean())
        yield "age > @mean", {"mean": mean}
        yield "age * 2 > @mean * 2 and age in @ages", {"mean": mean, "ages": [43.75]}
        if hasattr(pd, "col"):
            yield pd.col("age") > self.FRAME["age"].mean(), {}

    def test_no_public_text_shows_it(self, tmp_path):
        for at, (where, values) in enumerate(self.forms()):
            with pdrisk.Ledger(tmp_path / f"{at}.db", dataset="d", eps=10) as ledger:
                scope = {"frame": self.FRAME, "where": where, **values}
                release = eval("frame.dprisk.count(eps=1, where=where)", scope)
                table = eval("frame.dprisk.agg({'age': 'mean'}, eps=1, bounds=(0, 100), where=where)", scope)
                ledger.export(tmp_path / f"{at}.json")
            said = [repr(pdrisk.public(release)), repr(release), repr(pdrisk.public(table).attrs), repr(table.attrs)]
            said += [release.explain("publication"), pdrisk.explain(table, "publication"), repr(ledger.history())]
            said += [ledger.history().to_csv(), (tmp_path / f"{at}.json").read_text()]
            assert not any("43.75" in text or "87.5" in text for text in said)
            assert release.where_trusted
            assert Answer.from_attrs(table.attrs).where_trusted
            assert pdrisk.public(release)["where_trusted"]

    def test_nor_does_one_about_dates_in_a_list_or_codes(self):
        days, code = ["03.05.1987"], 987
        frame = pd.DataFrame({"day": pd.Categorical(pd.to_datetime(["2020-01-01"])), "x": [1]})
        frame = frame.dprisk.declare(missing={"x": [987]})
        for where in ("day in @days", "day.isin(@days)", "x == @code", "x in @codes"):
            codes = [code, 2]
            with pytest.raises(ParameterError) as caught:
                frame.dprisk.count(eps=1, where=where)
            assert "987" not in str(caught.value)
        assert (len(days), codes[1]) == (1, 2)

    def test_times_beyond_pandas_are_refused_before_they_are_paid(self):
        frame = pd.DataFrame({"t": pd.to_timedelta([1], unit="D"), "o": objects([3])})
        far, nowhere = dt.timedelta.max, dt.datetime(2020, 1, 1, tzinfo=Nowhere())
        for where in ("t < @far", "o == @far", "o in @both", "t in @both"):
            both = [far, nowhere]
            with pytest.raises(ParameterError, match="beyond those of pandas"):
                frame.dprisk.count(eps=1, where=where)
        assert len(both) == 2

    def test_an_error_does_not_show_it(self):
        mean = float(self.FRAME["age"].mean())
        stamp, text = pd.Timestamp("1987-06-05"), "43,75"
        for where in ("age == @stamp", "age == @text", "age > @text", "age in [43.75] and age < @stamp"):
            with pytest.raises(ParameterError) as caught:
                self.FRAME.dprisk.count(eps=1, where=where)
            assert not any(secret in str(caught.value).partition(": ")[2] for secret in ("43", "1987"))
        assert (mean, stamp.year, text) == (43.75, 1987, "43,75")

    def test_other_values_are_other_questions(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "d.db", dataset="d", eps=10)
        d = pdrisk.Dataset(self.FRAME, ledger=ledger)
        for limit in (40, 50, 40, 40.0):
            d.count(eps=1, where="age > @limit")
            assert limit
        assert ledger.history()["event"].tolist().count("paid") == 3  # 40.0 is another type

    def test_refused_columns_are_still_seen(self, tmp_path):
        limit = 40
        with pdrisk.Ledger(tmp_path / "d.db", dataset="d", eps=2000, policy={"refuse_columns": ["name"]}):
            assert self.FRAME.dprisk.count(eps=1e3, where="age > @limit").value == limit - 37
            with pytest.raises(pdrisk.PolicyError):
                self.FRAME.dprisk.count(eps=1, where=lambda frame: frame["age"] > limit)


WHOLE = [
    "a * 9223372036854775807 < 0", "a * 9223372036854775807 > 0", "a + 9223372036854775807 > 0", "-a * 2 < a - 1",
    "a - 9223372036854775807 < a", "a ** 2 > 1000", "a ** 40 > 0", "a // 7 == 5", "a % 7 == 5", "2 ** a > 1e6",
    "a * a * a * a * a * a * a * a * a * a * a * a % 10 == 0", "a ** 12 % 10 == 4", "a == 40", "a in [40, 41]",
    "a / 3 * 3 == a", "1000 // a > 20", "1000 % a == 0", "(a > 40) == (a % 2)", "a < 9223372036854775807",
    "a * 18446744073709551615 == a * 18446744073709551615", "-(a * 4611686018427387904) < 0", "a ** -1 < .025",
]  # fmt: skip
AGES = [40, 41, 42, 39, 0, -7, 127]
IN_PYTHON = {
    "2 ** a > 1e6": lambda a: 2.0**a > 1e6,
    "1000 // a > 20": lambda a: a == 0 or 1000 // a > 20,
    "1000 % a == 0": lambda a: a != 0 and 1000 % a == 0,
    "a ** -1 < .025": lambda a: a != 0 and a**-1 < 0.025,
}


class TestWholeNumbers:
    """Whole numbers are computed as Python computes them, whatever the width and dtype of their column."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("text", WHOLE)
    def test_the_dtype_that_one_missing_value_changes_does_not_matter(self, text):
        expected = [IN_PYTHON.get(text, lambda a: eval(text, {"a": a}))(age) for age in AGES]
        for kind in ("int8", "int64", "float64", "Int64", "Float64", "int64[pyarrow]", "double[pyarrow]"):
            frame = pd.DataFrame({"a": pd.Series(AGES, dtype=kind)})
            assert decides_alone(judged(text, frame, dict), frame) == expected, kind
        frame = pd.DataFrame({"a": [*AGES, None]})
        assert selected_rows(frame, judged(text, frame, dict)).tolist() == [*expected, False]

    @pytest.mark.sampled(11)
    @pytest.mark.parametrize("kind", ENDS)
    @pytest.mark.parametrize("formula", ["a * 2", "a + a", "a - 1", "-a", "a + 1", "a * a", "a * -3 + 7", "a ** 3"])
    @pytest.mark.parametrize("symbol", ["<", "==", ">="])
    def test_at_the_ends_of_every_integer(self, kind, formula, symbol):
        ends = ENDS[kind]
        limits = [end + more for end in ends for more in (0, 1, -1) if -(2**63) <= end + more < 2**64]
        for dtype in (kind, nullable(kind), f"{kind}[pyarrow]"):
            frame = pd.DataFrame({"a": pd.Series(ends, dtype=dtype)})
            stored = [int(float(end)) for end in ends] if dtype in ("int64", "uint64") else ends
            wanted = [eval(formula, {"a": end}) for end in stored]
            for limit in limits:
                text = f"{formula} {symbol} {limit}"
                expected = [eval(f"x {symbol} y", {"x": x, "y": limit}) for x in wanted]
                assert selected_rows(frame, judged(text, frame, dict)).tolist() == expected, (dtype, text)

    @pytest.mark.parametrize("text", ["a > 9007199254740992", "a * 3 == 27021597764222976", "a + 1 <= b", "a != b"])
    def test_integers_of_numpy_are_decided_as_floats(self, text):
        """One missing value makes floats of all integers of a column, and no other record may be decided otherwise."""
        values = [2**53, 2**53 + 1, 2**53 + 3, -(2**62) - 1, 2**63 - 1]
        whole = pd.DataFrame({"a": values, "b": values[::-1]})
        with_one = pd.DataFrame({"a": [*values, None], "b": [*values[::-1], 1]})
        assert whole["a"].dtype == "int64" and with_one["a"].dtype == "float64"
        found = [selected_rows(frame, judged(text, frame, dict))[:5].tolist() for frame in (whole, with_one)]
        assert found[0] == found[1]

    def test_a_number_that_no_float_is_cannot_be_looked_for(self):
        for dtype in ("int32", "int64", "float64"):
            frame = pd.DataFrame({"a": pd.Series([1], dtype=dtype)})
            for text in ("a == 9007199254740993", "9007199254740993 != a", "a in [1, 9007199254740993]"):
                with pytest.raises(ParameterError, match="not every whole number is a float64") as caught:
                    judged(text, frame, dict)
                assert "astype('Int64')" in str(caught.value)
            judged("a == 9007199254740994 or a < 9007199254740993", frame, dict)
        frame = pd.DataFrame({"a": pd.arrays.SparseArray([2**53 + 1, 0])})
        with pytest.raises(ParameterError, match="not every whole number is a float64"):
            judged("a == 9007199254740993", frame, dict)
        frame = pd.DataFrame({"a": pd.Categorical([2**53 + 1, None], [2**53, 2**53 + 1])})
        assert selected_rows(frame, judged("a == 9007199254740993", frame, dict)).tolist() == [True, False]
        assert selected_rows(frame, judged("a == 9007199254740992", frame, dict)).tolist() == [False, False]
        frame = pd.DataFrame({"a": pd.array([2**53, 2**53 + 1], "Int64")})
        assert selected_rows(frame, judged("a == 9007199254740993", frame, dict)).tolist() == [False, True]

    def test_one_zero_whatever_the_others_are(self):
        """A zero had the sign of how it was computed, and that depended on whether another number was large."""
        for text in ("1 / (x * -3) < 0", "1 / (x // -5) < 0", "1 / -x < 0", "(-x) ** -1 < 0", "1 / (x * y) < 0"):
            said = set()
            for last in (1, 2**53 - 1, 2**62, -7):
                frame = pd.DataFrame({"x": [0] * 5 + [last], "y": [-1.5] * 5 + [1.0]})
                said.add(tuple(selected_rows(frame, judged(text, frame, dict))[:5]))
            assert said == {(False,) * 5}, text

    @pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**"])
    def test_a_result_does_not_depend_on_the_others(self, symbol):
        values = [0, -0.0, 1, -1, 3, -7.5, 0.1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 1e308, np.inf, np.nan]
        pairs = list(itertools.product(values, values))
        with np.errstate(all="ignore"):
            left, right = (of_plain([one[side] for one in pairs]) for side in (0, 1))
            together = arithmetic(symbol, left, right)
            for at, (one, other) in enumerate(pairs):
                alone = arithmetic(symbol, of_plain([one]), of_plain([other]))
                for part in ("high", "low"):
                    mine, all_of_them = getattr(alone, part), getattr(together, part)
                    mine = 0.0 if mine is None else mine[0]
                    among = 0.0 if all_of_them is None else all_of_them[at]
                    assert np.array_equal(mine, among, equal_nan=True), (one, other)
                    assert np.isnan(mine) or np.signbit(mine) == np.signbit(among) or part == "low", (one, other)

    @pytest.mark.slow
    def test_random_formulas_of_64_bits(self):
        random = np.random.default_rng(12)
        for _ in range(60):
            a, b = (random.integers(-(2**63), 2**63 - 1, size=8) >> random.integers(0, 60, size=8) for _ in "ab")
            a[0], b[1] = -(2**63), 2**63 - 1
            limit = int(random.integers(-(2**62), 2**62))
            for formula in ("a + b", "a - b", "a // 1000003", "a % 1000003", "b + a - b", "a * 1000003 - b"):
                frame = pd.DataFrame({"a": a, "b": b}).astype("Int64")
                expected = [
                    eval(formula, {"a": x, "b": y}) > limit for x, y in zip(a.tolist(), b.tolist(), strict=True)
                ]
                assert selected_rows(frame, judged(f"{formula} > {limit}", frame, dict)).tolist() == expected
                assert selected_rows(frame, judged(f"{formula} == {formula}", frame, dict)).all()
