"""Report of an assessment of the user's own data, as a page and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pdrisk._answer.words import participant, reached
from pdrisk._core.risks.risk import posterior
from pdrisk._digits import probability
from pdrisk._printing import printable
from pdrisk.study.origin import ReportOrigin
from pdrisk.study.page import NOTICE, Page, cell, shown
from pdrisk.study.person_section import heading as heading_of
from pdrisk.study.person_section import tell
from pdrisk.study.points import unit_of

if TYPE_CHECKING:
    from pdrisk.study.exposure import Exposure, Weighing

HEADS = {
    "column": "column", "statistic": "statistic", "group": "group", "eps": "eps", "n": "values", "exposure": "LS / GS",
    "noise95": "noise ± (95 %)", "worst_case": "worst case", "two_worlds": "two worlds", "many_worlds": "many worlds",
    "identifiability": "identifiability", "lo": "from", "hi": "to", "bounds": "bounds", "most_exposed": "most exposed",
    "share": "noise / range", "sampling": "sampling error", "laplace95": "paper ± (95 %)",
}  # fmt: skip
RISK = ["two_worlds", "many_worlds", "identifiability", "worst_case"]
TOP = 15
ANSWERS = "Most exposed answers"
GROUPS = "Most exposed groups"
COLUMNS = "Columns"
NOISE = "What an eps buys"
PAPER = "The last column has the noise of the SOEP paper, mechanism='laplace'"
AUTO = (
    "Noise and risks are those of the default of answers (mechanism='auto'), which takes for each statistic the "
    "mechanism with the least noise: often everybody is at the worst case then."
)
WEIGHTED = (
    "Noise and risks are those of the default of answers (mechanism='auto'): noise is added to sums of weights, and "
    "somebody with the weight w loses eps w / W. So whoever has the largest weight is at the worst case."
)
SAMPLE = (
    "The sampling error is how far the exact answer may be from that of the population, 95 % sure, if these people are "
    "a simple random sample of it. Noise that is smaller costs little."
)
WEIGHTED_SAMPLE = (
    "The sampling error is how far the exact answer may be from that of the population, 95 % sure, if people were "
    "drawn independently and weights are one over their probabilities. Strata and clusters are not looked at: declare "
    "a Design and ask sampling_errors(). Noise that is smaller costs little."
)


def _sections(exposure: Exposure) -> list[tuple[str, list[str], pd.DataFrame]]:
    """Title, paragraphs and table of each section, the same for every form."""
    largest = _largest(exposure)
    at = f"at eps = {shown(largest)}"
    weighing = exposure.weighing
    is_paper = exposure.mechanism == "laplace" or weighing is not None  # or there is no noise of the paper to compare
    noise = ["noise95"] if is_paper else ["noise95", "laplace95"]
    auto = AUTO if weighing is None else WEIGHTED
    everybody = "One person moves" if weighing is None else "Somebody with the weight W moves"
    sections = [
        (
            f"{ANSWERS}, {at}",
            [
                *([] if weighing is None else [_weighed(weighing, largest)]),
                auto
                if exposure.mechanism == "auto"
                else f"Noise and risks are those of mechanism={exposure.mechanism!r}.",
                *([] if is_paper else [f"{PAPER}."]),
                f"{exposure.rows:,} records, each taken for one person. LS / GS is how far one person could move this "
                "very answer, against how far one could in any data: of Laplace noise, the share of eps that the most "
                "exposed person bears.",
                "Two worlds is how sure somebody who knows everybody else can become, from a coin's 0.5, that this "
                "person is in the data. Many worlds asks the same of somebody who starts at 1/n. Identifiability is "
                "about who of the n is missing, also from 1/n: two worlds without one person each can lie farther "
                "apart than LS, so it may be above the others. Worst case is the two-worlds risk of anybody in any "
                "data, and the only one of these that may be published.",
                f"{everybody} a count or a sum by all of GS in any data: they are always at the worst case.",
            ],
            _top(exposure.answers, largest, ["column", "statistic", "n", "exposure", *RISK, *noise]),
        )
    ]
    if exposure.groups is not None:
        paragraphs = [
            "The same within groups. A record is in one group at most, so the answers of one table cost eps once."
        ]
        empty = exposure.groups.loc[exposure.groups["n"] == 0, ["column", "group"]].drop_duplicates()
        if len(empty):
            several = empty.groupby("column", sort=False).size()
            numbers = ", ".join(f"{number:,} for {column}" for column, number in several.items())
            paragraphs.append(f"Groups that hold no value, so nobody is exposed there, are left out: {numbers}.")
        some = exposure.groups[exposure.groups["n"] > 0]
        columns = ["column", "statistic", "group", "n", "exposure", *RISK, *noise]
        sections.append((f"{GROUPS}, {at}", paragraphs, _top(some, largest, columns)))
    taken = _own_bounds(exposure)
    paragraphs = ["A column with few people near an end of its bounds, or with wide gaps, exposes whoever is there."]
    if taken:
        paragraphs.append(
            f"No bounds are declared for {', '.join(taken)}: the data's own were taken, as in the SOEP paper. That is "
            "fit for looking, not for a release, whose bounds must be known without the data."
        )
    sections.append((COLUMNS, paragraphs, exposure.columns.reset_index()))
    sections.append(
        (
            NOISE,
            [
                "How wide the noise is if the worst-case risk of an answer decides its eps (four digits, rounded down, "
                "so that the risk is no more than this): 95 of 100 released numbers lie that close to the exact one. "
                "In brackets is the noise divided by the answer: from 1 on, a released number says little. If it is "
                "too wide, declare narrower bounds, or spend more.",
                *([] if is_paper else [f"{PAPER}, at the largest eps: with half the eps it is twice as wide."]),
                SAMPLE if weighing is None else WEIGHTED_SAMPLE,
                "Losses add: of two answers with this eps, the worst case is that of twice the eps.",
            ],
            _bought(exposure.recommendation, exposure.units, with_paper=not is_paper),
        )
    )
    return sections


def _weighed(weighing: Weighing, eps: float) -> str:
    """Weights of the records, what trimming does to them, and the risks that they mean."""
    stored, counted, largest = weighing.values, weighing.counted, weighing.largest
    known = stored[~np.isnan(stored)]
    sentences = (
        f"Every record counts with its weight, {weighing.column}; the least and the largest value, of which everybody "
        f"counts alike, are those of all records. Weights above W = {shown(largest)} are trimmed at it: "
        f"{int((known > largest).sum()):,} of {len(known):,}."
    )
    if untrimmed := float(np.maximum(known[np.isfinite(known)], 0.0).sum()):
        sentences += f" All together are {shown(100 * max(1 - float(counted.sum()) / untrimmed, 0.0))} % less by that."
    if missing := len(stored) - len(known):
        sentences += f" Without a weight are {missing:,} records, which are left out."
    if negative := int((known < 0).sum()):
        sentences += f" Below 0 are {negative:,} weights, which count as 0: see whether they are codes of missing ones."
    if not counted.any():
        return f"{sentences} No weight is above 0: answers are the middle of their bounds, or 0, and noise."
    middle = float(np.median(counted))
    half, most = (probability(float(posterior(eps * weight / largest))) for weight in (middle, float(counted.max())))
    return (
        f"{sentences} The noise is W over the mean weight, {shown(largest / float(counted.mean()))} times, that of "
        f"answers without weights. At eps = {shown(eps)}, half of these people have a risk of at most {half}, since "
        f"their weights are at most {shown(middle)}, and the one with the largest weight has {most}."
    )


def report(name: str, exposure: Exposure, origin: ReportOrigin | None = None) -> str:
    """The page as self-contained HTML; ``origin`` is for its head."""
    page = _page(name, exposure, origin)
    tell(page, _largest(exposure), bounds_from_data=bool(_own_bounds(exposure)))
    return page.html


def part(name: str, exposure: Exposure) -> str:
    """Tables of the page, for a notebook."""
    return _page(name, exposure).body


def _page(name: str, exposure: Exposure, origin: ReportOrigin | None = None) -> Page:
    page = Page(_title(name), NOTICE, origin)
    page.text(*_left_out(exposure))
    for title, paragraphs, table in _sections(exposure):
        page.heading(title)
        page.text(*paragraphs)
        page.table(table, title, HEADS)
    return page


def _title(name: str) -> str:
    return f"Curator only: what answers about {name} would mean for the people in it"


def _left_out(exposure: Exposure) -> list[str]:
    """Columns that are not in the tables, named first, since a reader may look for them."""
    reasons = "; ".join(f"{name} ({reason})" for name, reason in exposure.left_out.items())
    return [f"Left out: {reasons}."] if reasons else []


def text(name: str, exposure: Exposure) -> str:
    """The report for a terminal."""
    title = _title(name)
    lines = [title, "=" * len(title), NOTICE, ""]
    for paragraph in _left_out(exposure):
        lines += [textwrap.fill(paragraph), ""]
    for heading, paragraphs, table in _sections(exposure):
        lines += [heading, "-" * len(heading), *map(textwrap.fill, paragraphs), ""]
        cells = {HEADS.get(name, name): [cell(name, value) for value in table[name]] for name in table.columns}
        lines += [pd.DataFrame(cells).to_string(index=False), ""]
    largest = _largest(exposure)
    heading = heading_of(largest)
    lines += [heading, "-" * len(heading), *map(textwrap.fill, participant(reached(largest)).split("\n"))]
    return printable("\n".join(lines), keep="\n")


def _own_bounds(exposure: Exposure) -> list[str]:
    """Columns whose bounds come from the data."""
    return [str(name) for name in exposure.columns.index[exposure.columns["bounds"] == "the data's own"]]


def _largest(exposure: Exposure) -> float:
    return float(exposure.answers["eps"].max())


def _bought(table: pd.DataFrame, units: Mapping[Hashable, str], *, with_paper: bool) -> pd.DataFrame:
    """Table with a row for each answer and a column for each risk, and one for the paper's noise."""
    unit = pd.Series(
        [_unit(*pair, units) for pair in zip(table["statistic"], table["column"], strict=True)], index=table.index
    )
    names = ("noise95", "laplace95")
    noise, paper = (table[name].map(lambda value: f"±{shown(float(value))}") + unit for name in names)
    times = table["share"].map(lambda share: "" if pd.isna(share) else f" ({shown(float(share))} ×)")
    sampling = table["sampling95"].map(lambda value: "" if pd.isna(value) else f"±{shown(float(value))}")
    at = [f"risk {risk:g}, eps {eps:g}" for risk, eps in zip(table["worst_case"], table["eps"], strict=True)]
    texts = table.assign(noise=noise + times, at=at, sampling=sampling + unit.where(sampling != "", ""), paper=paper)
    last = texts[texts["eps"] == texts["eps"].max()]
    order = last[["column", "statistic", "sampling"]]
    wide = texts.pivot(index=["column", "statistic"], columns="at", values="noise")[list(dict.fromkeys(at))]
    by_answer = order.merge(wide.reset_index(), on=["column", "statistic"])
    return (
        by_answer.assign(**{f"paper, eps {last['eps'].iloc[0]:g}": last["paper"].to_numpy()})
        if with_paper
        else by_answer
    )


def _unit(statistic: object, column: Hashable, units: Mapping[Hashable, str]) -> str:
    """Unit of an answer after its number, "" if it is not known."""
    return f" {unit_of(statistic, column, units)}" if column in units else ""


def _top(table: pd.DataFrame, eps: float, columns: list[str]) -> pd.DataFrame:
    return table.loc[table["eps"] == eps, columns].head(TOP)
