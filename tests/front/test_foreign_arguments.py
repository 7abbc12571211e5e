"""Whatever a caller passes is an answer or one of pdrisk's own errors, at once, and never somebody else's."""

import datetime
import itertools
import json
import warnings
import zlib
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

import pdrisk
from hostile_values import Endless, TooSlow, at_most, values
from pdrisk import ColumnTypeError, PdriskError, QueryFailedError, UnknownColumnError, identifiability, risk
from pdrisk._core.foreign import own_errors, shown
from pdrisk._model.declared.declarations import from_text
from pdrisk._model.groups import keys

FRAME = pd.DataFrame(
    {
        "x": [1.0, 2.0, 3.0, 4.0],
        "n": [1, 2, 3, 4],
        "g": ["a", "b", "a", "b"],
        "h": [1, 2, 1, 2],
        "o": pd.Series(["a", None, "b", "a"], dtype=object),
        "nothing": pd.Series([None] * 4, dtype=object),
        "day": pd.to_datetime(["2020-01-01"] * 4),
        "level": pd.Categorical(["a", "b", "a", "b"]),
    }
)
SCHEMA = pa.DataFrameSchema({"x": pa.Column(float, pa.Check.in_range(0, 5))})
STUDY = pdrisk.study.run(FRAME, "x", repetitions=2, progress=False)
RELEASE = FRAME.dprisk.count(eps=1e3)
TABLE = FRAME.dprisk.count(eps=1e3, by="g", keys=["a", "b"])
VALUES = values()


def of(method, *, frame=FRAME, **good):
    """A call of a method of the accessor, with arguments by name."""
    return lambda **given: getattr(frame.dprisk, method)(**good | given)


ASKED = {"eps": 1e3, "bounds": (0, 5)}
OPTIONS = ("eps", "risk", "prior", "metric", "bounds", "where", "by", "keys", "mechanism", "ledger", "fresh")
SELECT = "SELECT g, SUM(x) AS s FROM people GROUP BY g"


def query(**given):
    asked = {"query": SELECT, "eps": 1e3, "bounds": {"x": (0, 5)}, "keys": ["a", "b"], "people": FRAME} | given
    return pdrisk.sql(**asked)


# Each call with arguments that fit, and which of them may be anything.
CALLS = {
    "mean": (of("mean", column="x", **ASKED), ("column", *OPTIONS)),
    "mean by": (of("mean", column="x", **ASKED, by="g", keys=["a"]), ("by", "keys", "where")),
    "mean by two": (of("mean", column="x", **ASKED, by=["g", "h"], keys=[("a", 1)]), ("by", "keys")),
    **{
        f"count by {column}": (of("count", eps=1e3, by=column), ("keys",))
        for column in ("x", "n", "h", "o", "nothing", "day", "level")
    },
    "mean risk": (of("mean", column="x", risk=0.9, bounds=(0, 5)), ("eps", "risk", "prior", "metric")),
    "count": (of("count", eps=1e3), ("column", "bounds", "where")),
    "quantile": (of("quantile", column="x", **ASKED), ("column", "q")),
    "var": (of("var", column="x", **ASKED), ("ddof",)),
    "agg": (of("agg", request={"x": ["mean"]}, **ASKED), ("request", *OPTIONS)),
    "declare": (of("declare", schema=SCHEMA), ("schema", "bounds", "keys", "missing")),
    **{
        f"declare {column} {part}": (
            lambda value, column=column, part=part: FRAME.dprisk.declare(**{part: {column: value}}),
            ("value",),
        )
        for column in ("x", "n", "g", "o", "nothing", "day", "level")
        for part in ("bounds", "keys", "missing")
    },
    "suggest_bounds": (of("suggest_bounds", column="n", eps=1e3), ("column", "eps", "ledger", "fresh")),
    "assess": (
        of("assess", columns="x", statistics="mean", eps=1, bounds=(0, 5)),
        ("columns", "statistics", "eps", "bounds", "where", "by", "keys"),
    ),
    "individual_risk": (
        of("individual_risk", column="x", eps=1, bounds=(0, 5)),
        ("column", "statistic", "eps", "bounds", "where"),
    ),
    "epsilon_for": (
        of("epsilon_for", column="x", risk=0.9, bounds=(0, 5)),
        ("column", "statistic", "risk", "metric", "prior", "bounds", "where"),
    ),
    "identifiability": (
        of("identifiability", column="x", eps=1, bounds=(0, 5)),
        ("column", "statistic", "eps", "risk", "bounds", "where", "prior"),
    ),
    "series mean": (of("mean", frame=FRAME["x"], **ASKED), OPTIONS),
    "series quantile": (of("quantile", frame=FRAME["x"], **ASKED), ("q",)),
    "series assess": (of("assess", frame=FRAME["x"], bounds=(0, 5)), ("statistics", "eps", "bounds", "where")),
    "sql": (
        query,
        ("con", "eps", "schema", "ledger", "fresh", "query", "bounds", "keys", "params", "risk_columns", "people"),
    ),
    "schema_for": (pdrisk.schema_for, ("bounds", "keys", "missing", "name")),
    "schema_from": (lambda **given: pdrisk.schema_from(**{"con": duckdb.connect()} | given), ("con", "tables")),
    "bounds_from": (lambda **given: pdrisk.bounds_from(**{"schema": SCHEMA} | given), ("schema", "columns")),
    "keys_from": (lambda **given: pdrisk.keys_from(**{"schema": SCHEMA} | given), ("schema", "columns")),
    "missing_from": (lambda **given: pdrisk.missing_from(**{"schema": SCHEMA} | given), ("schema", "columns")),
    "public": (pdrisk.public, ("answer",)),
    "explain": (
        lambda **given: pdrisk.explain(**{"answer": RELEASE} | given),
        ("answer", "audience", "so_far", "language"),
    ),
    "explain table": (lambda **given: pdrisk.explain(**{"answer": TABLE} | given), ("audience", "so_far", "language")),
    "interval": (RELEASE.interval, ("level",)),
    "picture_text": (RELEASE.picture_text, ("kind", "unit", "language")),
    "study": (
        lambda **given: pdrisk.study.run(
            **{"df": FRAME, "columns": "x", "statistics": "mean", "repetitions": 2, "progress": False} | given
        ),
        (
            "df",
            "columns",
            "statistics",
            "eps",
            "sample_sizes",
            "metrics",
            "bounds",
            "ddof",
            "seed",
            "workers",
        ),
    ),
    "findings": (pdrisk.study.findings, ("result",)),
    "exposure": (
        lambda **given: pdrisk.study.exposure(**{"frame": FRAME, "columns": "x"} | given),
        ("frame", "columns", "statistics", "eps", "bounds", "by", "keys"),
    ),
    **{
        f"texts {name}": (
            lambda name=name, **given: getattr(pdrisk.study.texts, name)(**{"result": STUDY} | given),
            arguments,
        )
        for name, arguments in {
            "risk_by_query": ("result", "metrics", "eps"),
            "risk_by_proportion": ("result", "metrics", "statistic"),
            "risk_by_epsilon": ("result", "metric", "proportion"),
            "noise_against_risk": ("result", "metric", "units"),
        }.items()
    },
    "posterior": (lambda **given: risk.posterior(**{"loss": 1.0} | given), ("loss", "prior")),
    "privacy_loss": (lambda **given: risk.privacy_loss(**{"risk": 0.7} | given), ("risk", "prior")),
    "risk.epsilon_for": (
        lambda **given: risk.epsilon_for(
            **{"risk": 0.9, "metric": "two_worlds", "local_sensitivity": 0.5, "n": 10} | given
        ),
        ("risk", "prior", "metric", "n", "global_sensitivity", "local_sensitivity"),
    ),
    "risk.epsilon_for identifiability": (
        lambda **given: risk.epsilon_for(**{"risk": 0.9, "metric": "identifiability", "n": 10} | given),
        ("world_range", "n"),
    ),
    "exact_identifiability": (
        lambda **given: risk.exact_identifiability(**{"worlds": [1.0, 2.0], "scale": 1.0} | given),
        ("worlds", "scale", "prior"),
    ),
    "tight_epsilon": (
        lambda **given: risk.tight_epsilon(**{"worlds": [1.0, 2.0, 4.0], "rho": 0.6} | given),
        ("worlds", "rho", "sensitivity", "prior"),
    ),
    "of_worlds": (
        lambda **given: identifiability.of_worlds(**{"worlds": [1.0, 2.0, 4.0], "eps": 1} | given),
        ("worlds", "eps", "risk", "sensitivity", "prior"),
    ),
    "worlds_with": (
        lambda **given: identifiability.worlds_with(**{"known": [1, 3], "universe": range(1, 11)} | given),
        ("known", "universe", "statistic", "unknown", "bounds"),
    ),
    "worlds_without_one": (
        lambda **given: identifiability.worlds_without_one(**{"records": [1, 3]} | given),
        ("records", "statistic", "bounds"),
    ),
    "soep_like": (pdrisk.datasets.soep_like, ("missing",)),
}
# What is looked at by running it, so that its failing must say nothing.
RUN = {"where"}


def outcome(call, argument, name):
    """What is wrong with what comes of it, or None."""
    value = VALUES[name]()
    try:
        with at_most(5), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(**{argument: value})
    except QueryFailedError as error:
        return None if argument in RUN else error
    except PdriskError as error:
        if error.__cause__ is not None:
            return error.__cause__
        try:
            str(error).encode()
        except UnicodeError as unprintable:
            return unprintable
        return AssertionError(f"{len(str(error))} letters") if len(str(error)) > 4000 else None
    except (Exception, Endless, TooSlow) as error:  # noqa: BLE001 - that is what is asked
        return error
    return None


@pytest.fixture
def few(monkeypatch):
    """A limit on keys that is soon reached."""
    monkeypatch.setattr(keys, "MOST", 1000)


@pytest.mark.usefixtures("few")
class TestEveryArgument:
    """A mistake in any argument of any call is told in pdrisk's own words."""

    @pytest.mark.sampled(19)
    @pytest.mark.parametrize(
        ("call", "argument"), [(call, argument) for call, (_, arguments) in CALLS.items() for argument in arguments]
    )
    def test_is_an_answer_or_an_own_error(self, call, argument):
        asked, arguments = CALLS[call]
        # Of calls that differ in the column alone, and of slow ones, each takes a part of the values.
        part = 4 if arguments in (("value",), ("keys",)) or call in ("exposure", "sql", "study") else 1
        chosen = [name for name in VALUES if zlib.crc32(f"{call} {argument} {name}".encode()) % part == 0]
        found = {name: wrong for name in chosen if (wrong := outcome(asked, argument, name)) is not None}
        assert not found, "\n".join(
            f"{name}: {type(wrong).__name__}: {str(wrong)[:200]}" for name, wrong in found.items()
        )


class TestForeignCode:
    """What the code of an argument raises is told with the argument's name; what nobody may hide passes."""

    def test_it_is_named(self):
        with pytest.raises(ColumnTypeError, match=r"^where, a value of type Hostile, cannot be used: it fails with F"):
            FRAME.dprisk.count(eps=1, where=VALUES["nothing works at all"]())

    @pytest.mark.parametrize("passing", [KeyboardInterrupt, MemoryError, SystemExit])
    def test_what_must_pass(self, passing):
        def stopped(*_):
            raise passing

        value = type("Stopped", (), {"__iter__": stopped, "__hash__": stopped})()
        for options in ({"bounds": value}, {"by": value}, {"by": "g", "keys": value}, {"by": "g", "keys": [value]}):
            with pytest.raises(passing):
                FRAME.dprisk.mean("x", **({"eps": 1, "bounds": (0, 5)} | options))

    def test_nothing_of_it_travels_along(self):
        with pytest.raises(ColumnTypeError) as caught:
            FRAME.dprisk.count(eps=1, by="g", keys=[VALUES["nothing works"]()])
        assert caught.value.__cause__ is caught.value.__context__ is None

    @pytest.mark.parametrize(
        "plain",
        [
            1, "x", None, 10**400, [1, "x"], {"x": (1, 2)}, np.float64(1), np.array([1.0]), Decimal(1), FRAME,
            FRAME["x"], datetime.date(2020, 1, 1), len,
        ],
        ids=lambda plain: type(plain).__name__,
    )  # fmt: skip
    def test_our_own_mistakes_are_not_hidden(self, plain):
        @own_errors
        def mistaken(value, **more):
            raise ZeroDivisionError("ours")

        with pytest.raises(ZeroDivisionError, match="ours"):
            mistaken(plain)
        with pytest.raises(ZeroDivisionError, match="ours"):
            mistaken(1, more=plain)
        with pytest.raises(TypeError, match="missing 1 required"):
            mistaken(more=VALUES["nothing works at all"]())

    @pytest.mark.parametrize("name", [name for name in VALUES if "deep" in name or "itself" in name])
    def test_nesting_is_foreign(self, name):
        @own_errors
        def repeated(value):
            raise RecursionError

        with pytest.raises(ColumnTypeError, match=r"^value, a value of type"):
            repeated(VALUES[name]())

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("name", VALUES)
    def test_values_are_quoted_briefly(self, name):
        with at_most(1):
            assert 0 < len(shown(VALUES[name]())) < 500

    def test_a_column_of_data_is_never_quoted(self):
        secret = pd.Series([133.45, 133.45])
        for call in (
            lambda: FRAME.dprisk.mean("x", eps=1, metric=secret),
            lambda: FRAME.dprisk.mean("x", eps=1, mechanism=[secret]),
            lambda: FRAME.dprisk.mean("x", eps=1, bounds=(0, 5), by=secret),
            lambda: FRAME.dprisk.var("x", eps=1, bounds=(0, 5), ddof=secret),
            lambda: RELEASE.explain(language=secret),
        ):
            with pytest.raises(pdrisk.ParameterError) as caught:
                call()
            assert "133" not in str(caught.value)


def _asked(frame):
    return [
        lambda: frame.dprisk.count(eps=1e3),
        lambda: frame.dprisk.mean("x", eps=1e3, bounds=(0, 5), by="g", keys=["a"]),
        lambda: frame.dprisk.mean("x", eps=1e3, by="g"),
        lambda: frame.dprisk.declared,
        lambda: frame.dprisk.declare(bounds={"n": (0, 9)}),
        lambda: frame.dprisk.assess("n", bounds=(0, 9), by="g", keys=["a"]),
        lambda: pdrisk.study.run(frame, "n", "mean", repetitions=1, progress=False),
        lambda: pdrisk.sql("SELECT COUNT(n) AS c FROM people", eps=1e3, people=frame),
    ]


def _written(*, schema=SCHEMA):
    """What declare writes, with everything that it can say."""
    patterns = pa.DataFrameSchema(
        {
            "x": pa.Column(float, pa.Check.in_range(0, 5), metadata={"dprisk": {"missing": [-1]}}),
            "[nh]": pa.Column(int, [pa.Check.ge(0), pa.Check.isin([1, 2, 3, 4])], regex=True),
            "other": pa.Column(int, metadata={"dprisk": {"nonsense": 1}}),
        },
        name="survey",
    )
    said = FRAME.dprisk.declare(
        patterns,
        bounds={"x": (0, 4.5)},
        keys={"g": ["a", "b", None], "h": [1, 2**70], "day": [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")]},
        missing={"n": [-1, -2]},
    ) if schema is None else FRAME.dprisk.declare(schema, keys={"g": ["a"]})  # fmt: skip
    return said.attrs["dprisk"]


PARTS = (None, True, -1, 1e999, float("nan"), 10**4000, "", "x", "(", "(?P<", "\ud800", [], [[]], [1, 2, 3], {},
         {"x": 1}, {"Timestamp": "x"}, {"Timestamp": 10**30}, {"Timedelta": []}, {"date": "2020-13-13"}, [None, None],
         {"Timestamp": "1", "date": "1"})  # fmt: skip


def _changed(tree):
    """The tree with each of its parts replaced, left out, or said twice."""
    if isinstance(tree, dict):
        for name, part in tree.items():
            yield from (tree | {name: other} for other in _changed(part))
            yield {other: value for other, value in tree.items() if other != name}
        yield tree | {"more": 1}
    if isinstance(tree, list):
        for place, part in enumerate(tree):
            yield from ([*tree[:place], other, *tree[place + 1 :]] for other in _changed(part))
            yield [*tree, part]
    yield from PARTS


class TestAttrs:
    """Whatever ``attrs`` hold that declare did not write is refused in one sentence, by whoever reads them."""

    REFUSED = r"attrs\['dprisk'\] of this frame is not what declare wrote: take it out with del df.attrs"

    @pytest.mark.parametrize(
        "text",
        [
            "", "x", "null", "1", "[]", "{}", '{"own": 1, "schema": 2}', '{"own": [1], "schema": []}',
            '{"own": [], "schema": [], "own": []}', '{"own": [], "schema": [], "more": 1}',
            ' {"own": [], "schema": []}',
            '{"own": [], "schema": [{"column": "(", "source": "s", "pattern": true}]}',
            '{"own": [], "schema": [{"column": "' + "(" * 5000 + '", "source": "s", "pattern": true}]}',
            '{"own": [], "schema": [{"column": "a{99999999999}", "source": "s", "pattern": true}]}',
            '{"own": [{"column": "x", "source": "s", "bounds": [5.0, 1.0]}], "schema": []}',
            '{"own": [{"column": "x", "source": "s", "bounds": [NaN, 1.0]}], "schema": []}',
            '{"own": [{"column": "x", "source": "s", "bounds": [0.0, Infinity]}], "schema": []}',
            '{"own": [{"column": "x", "source": "s", "bounds": [0.0, 1' + "0" * 5000 + ']}], "schema": []}',
            '{"own": [{"column": "x", "source": "s", "bounds": [0.0, 1.0, 2.0]}], "schema": []}',
            '{"own": [{"column": "x", "source": "s"}, {"column": "x", "source": "s"}], "schema": []}',
            '{"own": [], "schema": [{"column": "x", "source": "s", "valid": [2.0, 1.0]}]}',
            '{"own": [], "schema": [{"column": "x", "source": "s", "problem": {"x": 1}}]}',
            '{"own": [], "schema": [{"column": "x", "source": 5}]}',
            "[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"own":' * 100_000, '{"own": ' + "[" * 900 + "]" * 900 + "}",
            "9" * 5000, '"\\ud800"', "\ud800", "\0", "x" * 10**6,
        ],
        ids=lambda text: text[:40].encode("ascii", "replace").decode() + f" {len(text)}",
    )  # fmt: skip
    def test_is_refused(self, text):
        frame = FRAME.copy()
        frame.attrs["dprisk"] = text
        for call in _asked(frame):
            with pytest.raises(pdrisk.ParameterError, match=self.REFUSED), at_most(5):
                call()

    @pytest.mark.parametrize(
        "value", [1, 1.5, True, b"x", [], ["x"], {}, {"own": [], "schema": []}, (), pd.NA, np.array([1])]
    )
    def test_what_is_no_text_is_refused(self, value):
        frame = FRAME.copy()
        frame.attrs["dprisk"] = value
        for call in _asked(frame):
            with pytest.raises(pdrisk.ParameterError, match=self.REFUSED):
                call()

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("schema", [SCHEMA, None], ids=["little", "much"])
    def test_every_part_of_a_text_may_be_wrong(self, schema):
        text = _written(schema=schema)
        seen = refused = 0
        for tree in _changed(json.loads(text)):
            frame = FRAME.copy()
            frame.attrs["dprisk"] = json.dumps(tree)
            for call in _asked(frame)[2:4]:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        call()
                    except pdrisk.ParameterError as error:
                        refused += "is not what declare wrote" in str(error)
            seen += 2
        assert refused > seen / 2

    def test_what_declare_wrote_is_read(self):
        for schema in (None, SCHEMA):
            text = _written(schema=schema)
            assert from_text(text).text == text


LISTS = {
    "range": (lambda: range(10**9), "1,000,000,000"),
    "list": (lambda: list(range(10**7 + 1)), "10,000,001"),
    "array": (lambda: np.arange(10**7 + 1), "10,000,001"),
    "endless": (itertools.count, "more"),
    "generator": (lambda: (key for key in itertools.count()), "more"),
    "product": (lambda: itertools.product(range(10**5), repeat=5), "more"),
}


class TestTooManyKeys:
    """A query has ten million keys at most, which is said before they fill the memory."""

    SAID = r"keys can be 10,000,000 at most, but are {}: list fewer, ask in several queries\."

    @pytest.mark.slow
    @pytest.mark.sampled(6)
    @pytest.mark.parametrize("listed", LISTS)
    def test_lists(self, listed):
        make, number = LISTS[listed]
        for call in (
            lambda: FRAME.dprisk.count(eps=1, by="n", keys=make()),
            lambda: FRAME.dprisk.count(eps=1, by="n", keys={"n": make()}),
            lambda: FRAME.dprisk.count(eps=1, by=["n", "h"], keys={"n": [1], "h": make()}),
            lambda: FRAME.dprisk.assess("x", bounds=(0, 5), by="n", keys=make()),
            lambda: FRAME.dprisk.declare(keys={"n": make()}),
            lambda: pdrisk.sql("SELECT n, COUNT(*) AS c FROM p GROUP BY n", eps=1, keys=make(), p=FRAME),
            lambda: pdrisk.sql("SELECT n, COUNT(*) AS c FROM p GROUP BY n", eps=1, keys={"n": make()}, p=FRAME),
            lambda: pdrisk.schema_for(keys={"n": make()}),
        ):
            with pytest.raises(pdrisk.ParameterError, match=self.SAID.format(number)):
                call()

    def test_missing_codes(self):
        for call in (
            lambda: FRAME.dprisk.declare(missing={"n": itertools.count()}),
            lambda: pdrisk.schema_for(missing={"n": itertools.count()}),
        ):
            with pytest.raises(
                pdrisk.ParameterError, match=r"^missing( codes)? can be 10,000,000 at most, but are more: l"
            ):
                call()

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("by", [["n", "h"], ["n", "h", "g"]], ids=str)
    def test_products(self, by):
        lists = dict.fromkeys(by, range(10**5)) | ({"g": ["a", "b"]} if "g" in by else {})
        number = f"{2 * 10**10 if 'g' in by else 10**10:,}"
        declared = FRAME.dprisk.declare(keys={name: list(keys) for name, keys in lists.items()})
        query = f"SELECT {', '.join(by)}, COUNT(*) AS c FROM p GROUP BY {', '.join(by)}"
        for call in (
            lambda: FRAME.dprisk.count(eps=1, by=by, keys=lists),
            lambda: declared.dprisk.count(eps=1, by=by),
            lambda: pdrisk.sql(query, eps=1, keys=lists, p=FRAME),
            lambda: pdrisk.sql(query, eps=1, p=declared),
        ):
            with pytest.raises(pdrisk.ParameterError, match=self.SAID.format(number)):
                call()

    def test_of_a_schema(self, few):
        schema = pa.DataFrameSchema({"n": pa.Column(int, pa.Check.isin(range(1001)))})
        with pytest.raises(pdrisk.ParameterError, match="keys can be 1,000 at most, but are 1,001"):
            FRAME.dprisk.declare(schema).dprisk.count(eps=1, by="n")

    def test_as_many_as_may_be(self, monkeypatch):
        monkeypatch.setattr(keys, "MOST", 6)
        assert len(FRAME.dprisk.count(eps=1e3, by="n", keys=range(6))) == 6
        assert len(FRAME.dprisk.count(eps=1e3, by=["n", "h"], keys={"n": range(3), "h": range(2)})) == 6
        assert len(FRAME.dprisk.declare(keys={"n": range(6)}).dprisk.count(eps=1e3, by="n")) == 6
        for asked in (range(7), {"n": range(7)}, (key for key in range(7))):
            with pytest.raises(pdrisk.ParameterError, match="at most"):
                FRAME.dprisk.count(eps=1e3, by="n", keys=asked)
        with pytest.raises(pdrisk.ParameterError, match="are 8: "):
            FRAME.dprisk.count(eps=1e3, by=["n", "h"], keys={"n": range(4), "h": range(2)})

    def test_how_many_are_observed_is_not_told(self, monkeypatch):
        monkeypatch.setattr(keys, "MOST", 3)
        assert len(FRAME.dprisk.count(eps=1e3, by="n", keys="observed")) == 4


class TestInPlainWords:
    """The examples of the issue."""

    def test_bounds_of_an_expression(self):
        if hasattr(pd, "col"):
            with pytest.raises(ColumnTypeError, match=r"bounds must be a pair \(lo, hi\).*but is of type Expression"):
                FRAME.dprisk.mean("x", eps=1, bounds=pd.col("x"))

    def test_a_generator_as_a_column(self):
        with pytest.raises(ColumnTypeError, match="named by its label, not by a value of type generator"):
            FRAME.dprisk.mean((name for name in "x"), eps=1, bounds=(0, 1))

    def test_an_integer_beyond_writing(self):
        with pytest.raises(UnknownColumnError, match="unknown column a value of type int; the frame has: x, n"):
            FRAME.dprisk.mean(10**5000, eps=1, bounds=(0, 1))
        for call in (
            lambda: FRAME.dprisk.count(eps=1, by="n", keys=[10**5000]),
            lambda: FRAME.dprisk.declare(keys={"n": [10**5000]}),
            lambda: FRAME.dprisk.declare(missing={"n": [10**5000]}),
        ):
            with pytest.raises(ColumnTypeError, match="must be a single value that pandas can hold"):
                call()

    def test_more_columns_than_could_be(self):
        for call in (
            lambda: FRAME.dprisk.assess(["x"] * 2000, bounds=(0, 5)),
            lambda: pdrisk.study.run(FRAME, ["x"] * 2000),
        ):
            with pytest.raises(
                pdrisk.ParameterError, match="columns names more than 1,008, and the frame has 8: list f"
            ):
                call()

    @pytest.mark.parametrize(
        "eps", [Decimal("0." + "1" * 5000), Fraction(10**5000 + 1, 10**5000)], ids=["Decimal", "Fraction"]
    )
    def test_an_eps_of_thousands_of_digits(self, eps):
        with pytest.raises(pdrisk.ParameterError, match="eps has more than a thousand digits: round it"):
            FRAME.dprisk.count(eps=eps)


WHOLE = {
    "rows": lambda d, f, v: repr(d.sum("x", eps=1, bounds=(0, 9), rows=v).global_sensitivity),
    "groups": lambda d, f, v: repr(d.count(eps=1, by="g", keys=["a", "b"], rows=2, groups=v).columns),
    "ddof": lambda d, f, v: f.dprisk.var("x", eps=1, bounds=(0, 9), ddof=v).curator.local_sensitivity,
    "bins": lambda d, f, v: f.dprisk.hist("x", eps=1, bins=v, bounds=(0, 9)).index.tolist(),
    "n": lambda d, f, v: pdrisk.plan("count()", n=v, eps=1).to_dict(),
}


@pytest.mark.parametrize("option", WHOLE)
@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
def test_whole_floats_are_whole_numbers(option, kind):
    """Numbers of R are floats: 2.0 is 2, and 1.5 is refused as before."""
    frame = pd.DataFrame({"id": range(40), "x": [float(at % 10) for at in range(40)], "g": ["a", "b"] * 20})
    data, ask = pdrisk.Dataset(frame, person="id"), WHOLE[option]
    number = 1 if option == "ddof" else 2
    assert ask(data, frame, kind(number)) == ask(data, frame, number)
    for wrong in (kind(1.5), kind("nan"), kind("inf"), kind(-3)):
        with pytest.raises(pdrisk.PdriskError):
            ask(data, frame, wrong)


@pytest.mark.filterwarnings("ignore::pdrisk.errors.NoisyReleaseWarning")
class TestNAOfR:
    """R's NA in integers is a number: it is refused where the caller holds the data, with what to write."""

    FRAME = pd.DataFrame({"x": np.array([38, -(2**31), 20], dtype=np.int32), "y": np.array([1, 2, 3], dtype=np.int32)})

    @pytest.mark.parametrize(
        "ask",
        [
            lambda frame: frame.dprisk.mean("x", eps=1, bounds=(0, 80)),
            lambda frame: frame.dprisk.count(eps=1, where="x > 3"),
            lambda frame: frame.dprisk.count(eps=1, by="x", keys=[20, 38]),
            pdrisk.Dataset,
            lambda frame: pdrisk.Dataset({"a": frame}),
        ],
    )
    @pytest.mark.parametrize("bits", [32, 64])  # with numpy, and where reticulate cannot use it
    def test_refused(self, ask, bits):
        frame = self.FRAME.astype(f"int{bits}")
        with pytest.raises(pdrisk.ParameterError, match=r"column 'x' holds -2147483648, which is R's NA") as caught:
            ask(frame)
        line = str(caught.value).partition("write ")[2].partition(", hand")[0]
        exec(line, {"frame": frame, "pandas": pd})
        assert frame["x"].isna().sum() == 1 and frame["x"].dtype == f"Int{bits}"
        ask(frame)

    def test_not_refused(self):
        self.FRAME.dprisk.mean("y", eps=1, bounds=(0, 80))
        declared = self.FRAME.dprisk.declare(missing={"x": [-(2**31)]})
        assert declared.dprisk.mean("x", eps=1, bounds=(0, 80)).curator.n == 2
        pdrisk.Dataset(declared)
        lower = self.FRAME.astype("int64").replace(20, -(2**40))  # which R cannot hold
        assert lower.dprisk.count("x", eps=1).curator.n == 3

    def test_a_ledger_tells_nothing(self, tmp_path):
        """Whether one person's value is the odd one decides nothing that can be seen for free."""
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="survey", eps=9)
        for frame in (self.FRAME, self.FRAME.assign(x=np.array([38, 5, 20], dtype=np.int32))):
            frame.dprisk.mean("x", eps=1, bounds=(0, 80), ledger=ledger)
        assert ledger.remaining().eps == 7
