"""120 people as a frame and as a DuckDB table, and how to ask about them without noise."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import oracle
import pdrisk
import pdrisk._answer.releasing
from errors_said import everything_said
from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.answers.answer_line import AnswerLine
from pdrisk._answer.answers.curator import Curator

FACTS = ("eps", "worst_case", *Curator.COLUMNS)  # of the risk columns, all but the noisy interval
BOUNDS = {"distance": (1, 675), "age": (18, 90), "children": (0, 4), "member": (0, 1)}
REGIONS = ["north", "south", "nowhere"]


def people() -> pd.DataFrame:
    """Integers, floats with gaps and outliers, texts with gaps, truth values, dates."""
    n = np.arange(120)
    distance = np.round(((n * 37) % 101) ** 1.5, 2)
    distance[n % 11 == 3] = np.nan
    return pd.DataFrame(
        {
            "id": n,
            "age": (n * 7) % 83 + 11,
            "distance": distance,
            "children": ((n * 5) % 6).astype("int8"),
            "region": np.where(n % 7 == 2, None, np.where(n % 3 == 0, "north", np.where(n % 3 == 1, "south", "west"))),
            "sex": np.where(n % 2, "f", "m"),
            "member": n % 5 == 0,
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(n * 11, unit="D"),
        }
    )


PEOPLE = people()
# What only pandas sees: expressions that queries write out.
EXPRESSIONS = PEOPLE.assign(
    km=PEOPLE["distance"] * 1.6,
    next_age=PEOPLE["age"] + 1,
    decade=PEOPLE["age"] // 10 * 10,
    old=PEOPLE["age"] > 50,
    year=PEOPLE["day"].dt.year,
    upper=PEOPLE["region"].str.upper(),
    far=np.where(PEOPLE["distance"] > 100, 1.0, 0.0),
    near=PEOPLE["distance"].where(PEOPLE["distance"] < 50),
    homeless=PEOPLE["region"].isna(),
    one=1,
)


def connection(**settings: Any) -> duckdb.DuckDBPyConnection:
    """A database of its own, with the table ``people``."""
    con = duckdb.connect(":memory:", **settings)
    frame = PEOPLE  # noqa: F841 - DuckDB finds it by its name
    con.execute("CREATE TABLE people AS SELECT * REPLACE (day::DATE AS day) FROM frame")
    return con


class Draws(list):
    """The exact whole numbers that noise was to be added to, with their largest change and eps, in order.

    ``answers`` are what became of them, in the unit of each statistic.
    """

    def __init__(self):
        super().__init__()
        self.answers: list[np.ndarray] = []

    def __call__(self, exact, change, eps):
        self.append((exact, change, eps))
        return exact

    def clear(self):
        super().clear()
        self.answers.clear()


def only_additive_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """``"auto"`` without the exponential mechanism, which adds no noise that could be left out."""
    others = tuple((kind, each) for kind, each in pdrisk._mechanisms.ACCURATE if each.name != "exponential")
    monkeypatch.setattr("pdrisk._mechanisms.ACCURATE", others)


def without_noise(monkeypatch: pytest.MonkeyPatch) -> Draws:
    """No noise from here on, and a list of what would have got some."""
    only_additive_noise(monkeypatch)
    draws = Draws()
    drawn_once = pdrisk._answer.releasing.drawn_once

    def noted(mechanism, summary):
        found = drawn_once(mechanism, summary)
        draws.answers.append(mechanism.value(found))
        return found

    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", draws)
    monkeypatch.setattr(pdrisk._answer.releasing, "drawn_once", noted)
    return draws


@dataclass(frozen=True)
class Ask:
    """One statistic for the accessor, and what is independently known of it."""

    statistic: str
    column: str | None = None
    where: str | None = None
    bounds: tuple[float, float] | None = None
    eps: float | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def universe(self) -> tuple[float, float]:
        return self.bounds or BOUNDS.get(self.column, (0, 100))

    @property
    def label(self) -> str:
        """As tests/support/oracle.py calls it."""
        if "q" in self.options:
            return f"quantile({self.options['q']:g})"
        return self.statistic + ("(ddof=0)" if self.options.get("ddof") == 0 else "")


def ask(statistic: str, column: str | None = None, where: str | None = None, **options: Any) -> Ask:
    """``ask("quantile", "age", q=0.9, bounds=(0, 100), eps=1)``."""
    own = {name: options.pop(name) for name in ("bounds", "eps") if name in options}
    return Ask(statistic, column, where, options=options, **own)


def by_accessor(
    one: Ask,
    eps: float,
    by: Any = None,
    keys: Any = None,
    frame: pd.DataFrame = EXPRESSIONS,
    mechanism: str = "auto",
):
    """The facts of a release as the pandas way finds them, one array each."""
    options: dict[str, Any] = {"eps": one.eps or eps, "where": one.where, "mechanism": mechanism, "curator": True}
    options |= one.options
    if by is not None:
        options |= {"by": by, "keys": keys}
    if one.statistic != "count":
        options["bounds"] = one.universe
    method = getattr(frame.dprisk, one.statistic)
    answer = method(**options) if one.column is None else method(one.column, **options)
    if by is not None:
        return {name: answer[name].to_numpy(dtype=float) for name in FACTS}
    found = {"eps": answer.eps, "worst_case": answer.risk.worst_case}
    found |= {name: getattr(answer.curator, name) for name in Curator.COLUMNS}
    return {name: np.array([value], dtype=float) for name, value in found.items()}


def by_hand(one: Ask, by: Any = None, keys: Any = None, frame: pd.DataFrame = EXPRESSIONS) -> list[float]:
    """The answers as tests/support/oracle.py defines them."""
    rows = frame if one.where is None else frame.query(one.where)
    if by is None:
        parts = [rows]
    else:
        columns = [by] if isinstance(by, str) else list(by)
        listed = list(itertools.product(*keys.values())) if isinstance(keys, dict) else keys
        listed = [key if isinstance(key, tuple) else (key,) for key in listed]
        parts = [rows[_having(rows, columns, key)] for key in listed]
    lo, hi = one.universe
    answers = []
    for part in parts:
        if one.statistic == "count":
            answers.append(float(len(part) if one.column is None else part[one.column].count()))
            continue
        records = [float(x) for x in part[one.column] if not pd.isna(x)]
        clamped = oracle.fractions(min(max(x, lo), hi) for x in records)
        low, high = oracle.fractions((lo, hi))
        answers.append(oracle.DEFINITIONS[one.label].value(clamped, low, high))
    return answers


def _having(rows: pd.DataFrame, columns: list[str], key: tuple[Any, ...]) -> np.ndarray:
    kept = np.ones(len(rows), dtype=bool)
    for column, part in zip(columns, key, strict=True):
        kept &= (rows[column].isna() if part is None else rows[column] == part).to_numpy(dtype=bool)
    return kept


def risks(answer: pd.DataFrame) -> list[dict[str, np.ndarray]]:
    """The facts of each release in an answer with the curator's columns."""
    names = [line.name for line in lines(answer)]
    shown = ("low", "high", *FACTS)
    extra = answer.iloc[:, -len(shown) * len(names) :]
    found = []
    for at, name in enumerate(names):
        own = extra.iloc[:, at * len(shown) : (at + 1) * len(shown)]
        assert list(own.columns) == [f"{name}_{fact}" for fact in shown]
        found.append({fact: own.iloc[:, k].to_numpy(dtype=float) for k, fact in enumerate(shown)})
    return found


def lines(answer: pd.DataFrame) -> tuple[AnswerLine, ...]:
    """What each release in an answer is, as its attrs describe it."""
    return described(answer).lines


def described(answer: pd.DataFrame) -> Answer:
    """What the attrs of an answer say of it."""
    found = Answer.from_attrs(answer.attrs)
    assert found is not None
    return found


def assert_same_facts(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Equal but for the last digits of a sum in another order."""
    for name in FACTS:
        assert found[name].tolist() == pytest.approx(expected[name].tolist(), rel=1e-9, abs=1e-12, nan_ok=True), name


def assert_same_values(values: np.ndarray, expected: list[float], sensitivity: float) -> None:
    """Equal but for the lattice: 2**-31 of a sensitivity, once for each record of a sum."""
    assert len(values) == len(expected)
    for value, exact in zip(values, expected, strict=True):
        assert math.isclose(value, exact, rel_tol=1e-9, abs_tol=sensitivity * len(PEOPLE) * 2.0**-30)


def refusal(monkeypatch: pytest.MonkeyPatch, query: object, con: Any = None, **options: Any) -> pdrisk.ParameterError:
    """The error of a query that may neither read nor draw, and after which the connection answers as before."""

    def never(*arguments: object) -> None:
        pytest.fail("data was read, or noise drawn")

    monkeypatch.setattr("pdrisk.engines.sql.servers.sql_table.read", never)
    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", never)
    with pytest.raises(pdrisk.ParameterError) as caught:
        pdrisk.sql(query, con, **options)
    if isinstance(con, duckdb.DuckDBPyConnection):
        assert con.execute("SELECT 42").fetchone() == (42,)
    assert "SENTINEL" not in everything_said(caught.value)
    return caught.value
