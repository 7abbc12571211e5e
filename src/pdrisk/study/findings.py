"""Findings of the SOEP paper (Allmann et al. 2024, section 4.3), as checks on the result of a study."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from pdrisk._core.foreign import own_errors
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._model.plain import plain_label
from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.study import evidence
from pdrisk.study.evidence import Evidence, cannot

__all__ = ["findings"]

COLUMNS: Final = (
    "column", "statistic", "sample_size", "repetition", "eps", "n", "global_sensitivity", "local_sensitivity",
    "worst_case", "two_worlds", "many_worlds",
)  # fmt: skip
HEADINGS: Final = ["finding", "column", "statistic", "expected", "threshold", "observed", "passed", "kind"]
EVERY: Final = "all"  # in the column of statistics: whatever was asked
BY_FORMULA: Final = "by formula"
DATA: Final = "about these data"


@own_errors
def findings(result: pd.DataFrame) -> pd.DataFrame:
    """Curator only: whether the findings of the SOEP paper hold in the result of a study.

    Parameters
    ----------
    result : DataFrame
        As `pdrisk.study.run` returned it, with all statistics, sizes and eps that the findings are about. Findings for
        which some are missing are "not applicable".

    Returns
    -------
    DataFrame
        One row for each finding and column: ``finding column statistic expected threshold observed passed kind``.
        ``threshold`` says whose threshold judges: the paper's, or pdrisk's if the paper gives none. ``passed`` is NA if
        ``observed`` says "not applicable" and why. ``kind`` is "by formula" if no data can contradict the finding, so
        that its failure would be an error in the table or in pdrisk; and "about these data" if data can. Risks are
        rounded up, as in ``0.5001``, and shown as ``> 0.9999`` near 1.

    Raises
    ------
    ParameterError
        If the frame is not the result of a study, or lacks a risk.

    Notes
    -----
    Section 4.3 of the paper states most findings in words. So only few of the thresholds here are the paper's; the
    others are pdrisk's, and lenient. By formula:

    two_worlds_floor
        The two-worlds risk is never below 0.5.
    many_worlds_prior
        At a small eps the many-worlds risk is near 1/n: at most exp(eps)/n, at least 1/n.
    worst_case_bound
        The worst case is at least the other two, for two people or more.
    equal_sensitivities
        Where LS = GS, the two-worlds risk is the worst case.

    About these data, by means over the samples:

    max_spans
        The two-worlds risk of max spans the whole range, from at most 0.55 to at least 0.95, in a bottom-heavy column
        (one whose median is in the lowest quarter of the bounds).
    min_near_half
        In such a column the two-worlds risk of min stays near 0.5: its mean over samples rises at most a fifth of the
        way to the worst case, at the largest eps up to 1.
    many_worlds_falls
        The many-worlds risk of max falls steeply from the smallest to the largest sample size, at least like 1/sqrt(n),
        at every eps up to 10 ("even for a large value") at which it is free to do otherwise. At a small eps it is not:
        it lies between 1/n and exp(eps)/n.
    two_worlds_falls_slightly
        The two-worlds risk of max falls only slightly: at least half of its excess over 0.5 is left, at every eps at
        which it reaches 0.55 for one of the two sizes. It does not rise by more than 0.01 either.
    middle_window
        The sample size matters to the two-worlds risk of max at middle eps only: at the smallest and at the largest eps
        at most a quarter as much as where it matters most. Where LS = 0 in the largest sample, as when several people
        share the maximum, this is false: no eps makes that risk rise. (The paper says it of both metrics. At a small
        eps the many-worlds risk is 1/n, where nothing but the size matters.)
    max_varies_more
        "Regardless of the variable, the risks for the query max varies more": the two-worlds risk of max has a larger
        standard deviation over all samples and eps than that of every other query of the paper.
    min_stays_low
        The two-worlds risk of min "stays in average below" a number for the work hours, and near another for the other
        two columns: it is at most 0.6 on average over all samples and eps.
    subgroups_are_riskier
        "Queries filtering out small subsets of users would present greater risks": for no query of the paper is the
        mean two-worlds risk lower in the smallest samples than in the largest, and for at least one it is higher by
        0.01.
    sensitivity_falls
        "Most queries are less locally sensitive on a larger sample": the mean local sensitivity of more than half of
        the paper's queries is smaller in the largest samples than in the smallest.

    Examples
    --------
    >>> import pdrisk
    >>> survey = pdrisk.datasets.soep_like(missing="nan")
    >>> result = pdrisk.study.run(survey, "distance", repetitions=20)
    >>> table = pdrisk.study.findings(result)
    >>> table.loc[3, ["finding", "statistic", "observed"]].tolist()
    ['max_spans', 'max', '0.5001 to > 0.9999']
    """
    if not isinstance(result, pd.DataFrame):
        raise ColumnTypeError(f"findings takes the result of pdrisk.study.run, not {type(result).__name__}.")
    if lacking := [name for name in COLUMNS if name not in result.columns]:
        raise ParameterError(
            f"findings needs the columns {', '.join(lacking)}: pass the result of pdrisk.study.run, with all of its "
            "risks (metrics)."
        )
    if "mechanism" in result.columns and not (result["mechanism"] == "laplace").all():
        raise ParameterError('the findings are about Laplace noise: pass a study that ran with mechanism="laplace".')
    if not len(result):
        raise ParameterError("there is nothing in this result to find: pass it as pdrisk.study.run returned it.")
    rows = [
        (
            finding.name,
            column,
            finding.statistic,
            finding.expected,
            finding.threshold,
            seen.observed,
            seen.passed,
            finding.kind,
        )
        for column, part, median_at in _columns(result)
        for finding in FINDINGS
        for seen in [finding.seen(part, median_at)]
    ]
    table = pd.DataFrame(rows, columns=HEADINGS)
    table["passed"] = table["passed"].astype("boolean")
    return mark_exact(table)


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim about a column and how to see it.

    Attributes
    ----------
    name, expected : str
    statistic : str
        The one it is about, or `EVERY`.
    threshold : str
        What judges it, and whose that is.
    kind : str
        `BY_FORMULA` or `DATA`.
    look : callable
        Of the rows of one column and that statistic.
    bottom_heavy : bool
        Whether it is about bottom-heavy columns only.
    """

    name: str
    statistic: str
    expected: str
    threshold: str
    kind: str
    look: Callable[[pd.DataFrame], Evidence]
    bottom_heavy: bool = False

    def seen(self, rows: pd.DataFrame, median_at: float | None) -> Evidence:
        """Evidence of the claim in the rows of a column, whose median lies there between its bounds."""
        if self.statistic != EVERY:
            rows = rows[rows["statistic"] == self.statistic]
        if not len(rows):
            return cannot(f"{self.statistic} was not asked for")
        if self.bottom_heavy and median_at is None:
            return cannot("the result does not say any more where the median lies (attrs)")
        if self.bottom_heavy and median_at is not None and median_at > evidence.BOTTOM_HEAVY:
            return cannot(f"the column is not bottom-heavy, its median lies at {median_at:.2f} of the range")
        return self.look(rows)


def _columns(result: pd.DataFrame) -> Iterator[tuple[Hashable, pd.DataFrame, float | None]]:
    """Rows of each column, and the place of its median between its bounds, if it is known."""
    study: Any = result.attrs.get("study")
    columns = study.get("columns", []) if isinstance(study, dict) else []
    for column, rows in result.groupby("column", sort=False, dropna=False):
        yield (
            column,
            rows,
            next((entry["median_at"] for entry in columns if entry["column"] == plain_label(column)), None),
        )


FINDINGS: Final = (
    Finding(
        "two_worlds_floor", EVERY, "two_worlds is never below 0.5", "the paper's: 0.5", BY_FORMULA,
        evidence.two_worlds_floor,
    ),
    Finding(
        "many_worlds_prior", EVERY, "many_worlds tends to 1/n, its prior, for small eps",
        "ours: 1/n to exp(eps)/n at the smallest eps", BY_FORMULA, evidence.many_worlds_prior,
    ),
    Finding(
        "worst_case_bound", EVERY, "worst_case is at least two_worlds and many_worlds", "the paper's: no less",
        BY_FORMULA, evidence.worst_case_bound,
    ),
    Finding(
        "max_spans", "max", "two_worlds spans the range on bottom-heavy data",
        f"ours: from {evidence.LOW:g} or less to {evidence.HIGH:g} or more", DATA, evidence.max_spans,
        bottom_heavy=True,
    ),
    Finding(
        "min_near_half", "min", "two_worlds stays near 0.5 on bottom-heavy data",
        f"ours: {evidence.NEAR_HALF:g} of the way to the worst case", DATA, evidence.min_near_half, bottom_heavy=True,
    ),
    Finding(
        "many_worlds_falls", "max", "many_worlds falls steeply with the sample size",
        f"ours: like n^-{evidence.STEEP:g} or more", DATA, evidence.many_worlds_falls,
    ),
    Finding(
        "two_worlds_falls_slightly", "max", "two_worlds falls only slightly with the sample size",
        f"ours: {evidence.KEPT:g} of the excess over 0.5 is left", DATA, evidence.two_falls,
    ),
    Finding(
        "middle_window", "max", "the sample size matters in a middle window of eps only",
        f"ours: at both ends {evidence.VANISHED:g} of its largest effect at most", DATA, evidence.middle_window,
    ),
    Finding(
        "equal_sensitivities", EVERY, "where LS = GS, two_worlds is worst_case", "the paper's: equal", BY_FORMULA,
        evidence.equal_sensitivities,
    ),
    Finding(
        "max_varies_more", EVERY, "two_worlds of max varies more than that of every other query",
        "the paper's: more, whatever the column; measured by the standard deviation, which is ours", DATA,
        evidence.max_varies,
    ),
    Finding(
        "min_stays_low", "min", "two_worlds of min stays low on average", f"ours: {evidence.CALM:g} at most", DATA,
        evidence.min_low,
    ),
    Finding(
        "subgroups_are_riskier", EVERY, "two_worlds is greater in small samples",
        f"the paper's: greater; ours: by {evidence.NOTICEABLE:g}, of one query at least", DATA, evidence.subgroups,
    ),
    Finding(
        "sensitivity_falls", EVERY, "most queries are less locally sensitive on a larger sample",
        "the paper's: more than half of the queries", DATA, evidence.sensitivity_falls,
    ),
)  # fmt: skip
