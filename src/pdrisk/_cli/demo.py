"""``pdrisk demo``: the main job on a synthetic survey, in words and numbers."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd

import pdrisk
from pdrisk._answer.words import participant
from pdrisk._digits import probability
from pdrisk.datasets import soep_like, soep_like_schema

EPSILONS = (0.1, 0.5, 1, 2, 5)
QUERIES = ["mean", "median", "min", "max", "var"]  # the paper's
SEVERAL = ["median", ("quantile", {"q": 0.9}), "std"]
SQL = "SELECT sex, AVG(hours) AS hours FROM survey WHERE age > 40 GROUP BY sex"
UNITS = {"hours": "h", "distance": "km", "income": "EUR"}  # of the columns that the paper studies


def demo(*, eps: float = 1.0, seed: int = 2019) -> str:
    """The text of ``pdrisk demo``."""
    survey: Any = soep_like(seed=seed).pipe(soep_like_schema().validate)  # type checkers know no accessors
    declared = survey.dprisk.declared.loc[[*UNITS, "state"], ["lo", "hi", "missing", "keys"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdrisk.NoisyReleaseWarning)  # at a small eps; the intervals say it too
        whole = survey.dprisk.mean("distance", eps=eps)
        older = survey.dprisk.mean("distance", eps=eps, where="age > 40 and sex == 'female'")
        several = survey.dprisk.agg({"distance": SEVERAL}, eps=eps)
        by_state = survey.dprisk.mean("distance", eps=eps, by="state")
        table = survey.dprisk.crosstab("state", "sex", eps=eps, margins=True)
        in_sql = pdrisk.sql(SQL, eps=eps, risk_columns=True, survey=survey)
        paper = survey.dprisk.mean("distance", eps=eps, mechanism="laplace")
        risks = survey.dprisk.assess(list(UNITS), QUERIES, eps=list(EPSILONS), mechanism="laplace")
    spent = eps * 7
    return "\n".join(
        [
            _title("How far do people travel to work? A synthetic survey of 30,000 people, none of them real"),
            f"survey.dprisk.mean('distance', eps={eps:g})",
            "",
            repr(whole),
            "",
            "The value is noisy, so that nobody can tell from it whether one person took part:",
            "",
            participant(whole.risk.worst_case),
            "",
            _title("Where the bounds come from: a pandera schema, facts that are declared once"),
            "survey = soep_like().pipe(soep_like_schema().validate)",
            "survey.dprisk.declared",
            "",
            declared.astype(object).map(_told).to_string(max_colwidth=40, index_names=False),
            "  (bounds of the answers, codes that are missing before anything else is done, public group keys)",
            "",
            _title("A subgroup"),
            f"survey.dprisk.mean('distance', eps={eps:g}, where=\"age > 40 and sex == 'female'\")",
            f"  noisy value {older.value:.4g} km, 95 % noise interval {_interval(older)}, "
            f"worst-case risk {probability(older.risk.worst_case)}",
            "",
            _title("Several statistics, which share one eps"),
            f"survey.dprisk.agg({{'distance': {SEVERAL}}}, eps={eps:g})",
            *(f"  {name:<14}{value:.4g} km" for (_, name), value in several["value"].items()),
            "",
            _title("Groups: assuming one record per person, all 16 answers cost eps once"),
            f"survey.dprisk.mean('distance', eps={eps:g}, by='state').head(4)",
            "",
            by_state.head(4).to_string(float_format=lambda x: f"{x:.6g}"),
            "",
            _title("A table that adds up: cells and margins are measured for one eps and adjusted to each other"),
            f"survey.dprisk.crosstab('state', 'sex', eps={eps:g}, margins=True).tail(4)",
            "",
            table.tail(4).to_string(),
            "",
            _title("Means by sex in SQL"),
            f'pdrisk.sql("{SQL}",',
            f"    eps={eps:g}, risk_columns=True, survey=survey)",
            "",
            in_sql.to_string(index=False, float_format=lambda x: f"{x:.6g}"),
            "",
            f"Losses add: the answers above and the next one cost {spent:g} together, a worst-case risk of "
            f"{probability(float(pdrisk.risk.posterior(spent)))} instead of {probability(whole.risk.worst_case)}.",
            "",
            _title("The paper's mechanism, one word away"),
            f"survey.dprisk.mean('distance', eps={eps:g}, mechanism='laplace')",
            f"  noisy value {paper.value:,.0f} km, 95 % noise interval {_interval(paper)}: one person can move",
            "  a mean over (1, 675) by 337 km when hardly anybody is in the data, and this noise hides even that one.",
            "",
            _title("The paper's five queries, for the curator: two-worlds risk, and the noise with it (±, 95 %)"),
            _table(risks),
            "",
            "two-worlds risk: how sure an attacker who knows everybody else can become that the most exposed person is",
            "in the data, starting from a coin's 0.5. It depends on these very data and must not be published;",
            "worst_case may be. A risk near 0.5 with noise wider than the answer is no bargain: both come from the",
            "same large global sensitivity.",
        ]
    )


def _table(risks: pd.DataFrame) -> str:
    head = f"{'variable':<15}{'query':<8}{'LS/GS':>8}" + "".join(f"{f'eps {eps:g}':>16}" for eps in EPSILONS)
    worst = risks.drop_duplicates("eps").set_index("eps")["worst_case"]
    cells = (f"{f'{probability(worst[eps])}         ':>16}" for eps in EPSILONS)
    lines = [head, f"{'any':<15}{'worst':<8}{'1':>8}{''.join(cells)}"]
    for name, rows in risks.groupby(["column", "statistic"], sort=False):
        column, query = map(str, name)
        share = rows["local_sensitivity"].iloc[0] / rows["global_sensitivity"].iloc[0]
        unit = UNITS[column] + ("²" if query == "var" else "")
        cells = (
            f"{f'{probability(risk)} ±{_short(noise):<7}':>16}"
            for risk, noise in zip(rows["two_worlds"], rows["noise95"], strict=True)
        )
        lines.append(f"{f'{column}, {unit}':<15}{query:<8}{share:>8.1g}{''.join(cells)}")
    return "\n".join(line.rstrip() for line in lines)


def _short(number: float) -> str:
    """Three digits, and no more than seven characters."""
    return (
        f"{number:,.3g}"
        if number < 1000
        else f"{number:,.0f}"
        if number < 100_000
        else f"{number:.2g}".replace("+", "")
    )


def _told(cell: Any) -> str:
    """A cell of the table of declarations."""
    if isinstance(cell, float):
        return "" if pd.isna(cell) else f"{cell:,.0f}"
    return ", ".join(map(str, cell)) if isinstance(cell, list) else ""


def _interval(release: pdrisk.Release) -> str:
    low, high = release.interval()
    return f"{low:.4g} to {high:.4g} km"


def _title(text: str) -> str:
    return f"{text}\n{'-' * len(text)}"
