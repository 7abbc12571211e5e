"""The whole study in a folder: tables, figures, and a page that reads like a short paper."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from pdrisk._model.plain import plain_label
from pdrisk._printing import inert
from pdrisk.study import figures, texts
from pdrisk.study.findings import BY_FORMULA, findings
from pdrisk.study.lee_clifton import adult, toy
from pdrisk.study.origin import ReportOrigin
from pdrisk.study.owned_folder import own_folder, write_own
from pdrisk.study.page import NOTICE, Page, svg_of
from pdrisk.study.person_section import tell
from pdrisk.study.plan import SOURCES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOBODY = (
    "Synthetic data: nobody in them is real, so this page may be shown. Of real data it would be the curator's only."
)
WEIGHTED = (
    "The paper weighs nobody, and neither does anything else on this page. Two releases, a noisy sum of weighted "
    "values and a noisy sum of weights, whose quotient is taken, cost half of eps each; weights= draws both sums at "
    "once and pays eps once. 95 of 100 answers are so close. Sampling error: as if people were drawn independently, "
    "with weights that are one over their probabilities."
)
FIGURES = ("risk-by-query", "risk-by-sample", "risk-by-eps", "noise-against-risk")
TABLES = ("study", "findings", "lee-clifton", "adult", "weighted")
#: Of all files that there may be.
FILES = (
    *(f"{name}.csv" for name in TABLES), *(f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")),
    "report.html",
)  # fmt: skip
PACKAGES = ("numpy", "pandas", "matplotlib")
HEADS = {
    "column": "column", "statistic": "statistic", "values": "values", "lo": "from", "hi": "to", "bounds": "bounds",
    "mechanism": "mechanism", "sample_size": "sample", "eps": "eps", "exposure": "LS / GS", "two_worlds": "two worlds",
    "many_worlds": "many worlds", "identifiability": "identifiability", "worst_case": "worst case",
    "noise95": "noise ± (95 %)", "sampling95": "sampling error ± (95 %)",
    "finding": "finding", "expected": "expected", "observed": "observed", "passed": "",
    "threshold": "whose threshold",
    "n": "values", "mean": "weighted mean", "recipe95": "two releases ± (95 %)",
    "risk": "highest risk", "scale": "noise scale", "loose_eps": "loose eps", "exact": "exact risk at it",
    "tight_eps": "tight eps", "worlds": "worlds", "sensitive_range": "range of the mean",
}  # fmt: skip


@dataclass(frozen=True)
class Study:
    """Study that a page is about.

    Attributes
    ----------
    result : DataFrame
        Of `pdrisk.study.run`.
    name : str
        What the data are, for people.
    synthetic : bool
        Whether nobody in them is real.
    units : dict from column to str
    origin : ReportOrigin or None
        What the page was made of.
    weighted : DataFrame or None
        Of `pdrisk.study.exposure.weighted_means`, where there are weights.
    """

    result: pd.DataFrame
    name: str
    synthetic: bool
    units: Mapping[Hashable, str]
    origin: ReportOrigin | None = None
    weighted: pd.DataFrame | None = None

    @property
    def mechanisms(self) -> list[str]:
        """Mechanisms whose risks are shown."""
        return list(dict.fromkeys(self.result["mechanism"]))

    @property
    def at_one(self) -> float:
        """The eps of the tables: 1, or the one nearest to it."""
        known = self.result["eps"].unique()
        return float(min(known, key=lambda eps: abs(eps - 1)))


def written(study: Study, folder: Path, *, noted: Callable[[str], None] = lambda _: None) -> Path:
    """Write all files, the page last.

    ``folder``: Made if it is not there. Files of an earlier study in it are replaced, each whole; files of these
        names that pdrisk did not write are an error.
    ``noted``: is called with the path of every file.
    Returns: of the page.
    """
    own_folder(folder, FILES)

    def put(name: str, write: Callable[[Path], object]) -> Path:
        noted(name)
        return write_own(folder, name, write)

    is_of_paper = study.mechanisms == ["laplace"]  # which the findings are about
    judged = findings(study.result) if is_of_paper else None
    for name, table in zip(TABLES, (study.result, judged, toy(), adult(), study.weighted), strict=True):
        if table is None:  # that of an earlier study would be about something else
            (folder / f"{name}.csv").unlink(missing_ok=True)
            continue
        put(f"{name}.csv", lambda path, table=table: inert(table).to_csv(path, index=False))  # type: ignore[misc]
    page = _begun(study)
    page.heading("Figures")
    for name, caption, figure, twin in _figures(study):
        svg = svg_of(figure, name)
        put(f"{name}.svg", lambda path, svg=svg: path.write_text(svg, encoding="utf-8"))  # type: ignore[misc]
        put(f"{name}.png", lambda path, figure=figure: figure.savefig(path, format="png", dpi=200))  # type: ignore[misc]
        page.figure(svg, caption, twin)
    if study.weighted is not None:
        page.heading("Weighted means: one release, or two")
        page.text(WEIGHTED)
        page.table(study.weighted, "The noise of weighted means in the whole data, by eps", HEADS)
    _end(page, study, judged)
    return put("report.html", lambda path: path.write_text(page.html, encoding="utf-8"))


def _begun(study: Study) -> Page:
    about = study.result.attrs["study"]
    page = Page(
        f"What an answer about {study.name} means for the people in it",
        NOBODY if study.synthetic else NOTICE,
        study.origin,
    )
    page.text(
        "A statistic of a survey with noise scaled to eps hides each person in it. How well depends on how far one "
        "person could move the answer in these very data (the local sensitivity, LS), against how far one could in any "
        "data with the same range (the global sensitivity, GS). This page repeats the study of Allmann, Nuñez von "
        "Voigt and Tschorsch (2024), who asked this of the German Socio-Economic Panel, and the examples of Lee and "
        "Clifton (2012), on whose attackers it builds."
    )
    page.heading("What was done")
    losses = ", ".join(f"{eps:g}" for eps in sorted(study.result["eps"].unique()))
    page.text(
        f"Each column was taken as a whole population. {_sampled(study)}, and for every sample the sensitivities of "
        f"each statistic and the risks at eps = {losses} were computed. No noise was drawn: a risk is what an attacker "
        f"can conclude at most, whatever the noise turns out to be. Noise: {', '.join(study.mechanisms)}.",
        "Two worlds: an attacker who knows everybody else tosses a coin whether a person took part; the risk is how "
        "sure the answer can make them. Many worlds: the same question from a start at 1/n. Identifiability: they know "
        "that one of these n people is missing and ask who; two such worlds differ by two people, so this risk can be "
        "above the others. Worst case: the two-worlds risk of anybody in any data with this eps; the only one of these "
        "that may be published, and the only one that may choose an eps.",
    )
    columns = pd.DataFrame(about["columns"])
    columns = pd.DataFrame(
        {
            "column": columns["column"].astype(str),
            "values": columns["values"],
            "lo": [bounds[0] for bounds in columns["bounds"]],
            "hi": [bounds[1] for bounds in columns["bounds"]],
            "bounds": columns["bounds_from"].map(SOURCES),
        }
    )
    page.table(columns, "The columns and their universes", HEADS)
    drawn = bool(study.result.groupby("column", sort=False, observed=True)["proportion"].max().min() < 1)
    caption = "How exposed the most exposed person is, and the noise that comes with it"
    page.heading(f"{'One of the largest samples' if drawn else 'The whole data'}, at eps = {study.at_one:g}")
    page.table(_largest(study), caption + "; the sampling error is that of all values" * drawn, HEADS)
    return page


def _sampled(study: Study) -> str:
    """Sentence about the samples."""
    table, repetitions = study.result, study.result.attrs["study"]["repetitions"]
    sizes = table.groupby("column", sort=False, observed=True)["sample_size"].nunique()
    least, most = (f"{100 * share:.3g} %" for share in (table["proportion"].min(), table["proportion"].max()))
    if table["proportion"].min() == 1:
        return "Its only sample is the whole of it"
    if sizes.max() == 1:
        drawn = f"{repetitions:,} of {least} of them"
    else:
        number = f"{sizes.max()}" if sizes.min() == sizes.max() else f"up to {sizes.max()}"
        one = "; of the whole there is one" if table["proportion"].max() == 1 else ""
        drawn = f"{repetitions:,} of each of {number} sizes ({least} to {most}{one})"
    return f"From its values samples were drawn without replacement, {drawn}"


def _largest(study: Study) -> pd.DataFrame:
    """Sensitivity, risks and noise in the first of the largest samples, which is the whole data if that was asked."""
    table = study.result
    largest = table.groupby("column", sort=False, observed=True)["sample_size"].transform("max")
    table = table[(table["sample_size"] == largest) & (table["eps"] == study.at_one)]
    table = table.drop_duplicates(["column", "statistic"])
    exposure = table["local_sensitivity"] / table["global_sensitivity"]
    risks = [name for name in ("two_worlds", "many_worlds", "identifiability", "worst_case") if name in table]
    sampling95 = {entry["column"]: entry["sampling95"] for entry in table.attrs["study"]["columns"]}
    pairs = zip(table["column"], table["statistic"], strict=True)
    sampling = [sampling95.get(plain_label(column), {}).get(statistic, math.nan) for column, statistic in pairs]
    return table.assign(column=table["column"].astype(str), exposure=exposure, sampling95=sampling)[
        ["column", "statistic", "mechanism", "exposure", *risks, "noise95", "sampling95"]
    ]


def _figures(study: Study) -> list[tuple[str, str, Figure, str]]:
    """Name, caption, picture and text of each figure."""
    result, units = study.result.copy(deep=False), study.units
    result.attrs["study"] = {**result.attrs["study"], "synthetic": study.synthetic}  # what figures say of who may see
    drawn = [
        (
            "risk-by-query",
            "Risk by query and column, over all samples and eps (the paper's Figure 1): from the smallest to the "
            "largest, the middle half, and the median.",
            figures.risk_by_query(result),
            texts.risk_by_query(result),
        )
    ]
    if "max" in set(result["statistic"]):
        drawn.append(
            (
                "risk-by-sample",
                "Risk of the maximum against the share of the values in the sample (the paper's Figure 2), a curve for "
                "each eps.",
                figures.risk_by_proportion(result),
                texts.risk_by_proportion(result),
            )
        )
    return [
        *drawn,
        (
            "risk-by-eps",
            "Two-worlds risk against eps, with the worst case as a line.",
            figures.risk_by_epsilon(result),
            texts.risk_by_epsilon(result),
        ),
        (
            "noise-against-risk",
            "What accuracy costs: the half-width of the noise against the two-worlds risk, each mark an eps.",
            figures.noise_against_risk(result, units=units),
            texts.noise_against_risk(result, units=units),
        ),
    ]


def _findings(page: Page, judged: pd.DataFrame) -> None:
    page.heading("Findings of the paper, checked on these data")
    passed = judged["passed"].map({True: "pass", False: "fail"}).astype(object)
    passed = passed.mask((judged["kind"] == BY_FORMULA) & (passed == "pass"), BY_FORMULA)  # says nothing of these data
    shown_findings = judged.assign(
        finding=judged["finding"].str.replace("_", " "),
        column=judged["column"].astype(str),
        statistic=judged["statistic"].fillna("all").astype(str),
        passed=passed.where(judged["passed"].notna(), "not applicable"),
    )
    page.text(
        'Those marked "by formula" hold in any data, so they check this program and not the data. The others are about '
        "these data and can fail: then they differ from those of the paper, and what it concludes does not carry "
        "over. The paper gives few thresholds; each row says whose judges it."
    )
    page.table(shown_findings.drop(columns="kind"), "What the paper found, and what is found here", HEADS)


def _end(page: Page, study: Study, judged: pd.DataFrame | None) -> None:
    if judged is not None:
        _findings(page, judged)
    page.heading("Where the paper is corrected")
    page.text(
        "Its rule for the local sensitivity of the variance tries the extremes only. Of {0, 0, 1, 1} in [0, 1] it "
        "gives 1/36; adding a person in the middle moves the variance by 1/20. Of {0, 1, 3} in {0, ..., 4}, with n - 1 "
        "in the denominator, it gives 11/6; taking the 1 out moves it by 13/6. The figures here try every neighbour.",
        "Its attacker of many worlds compares worlds in which one person is missing, two of which differ by two "
        "people. So the distance between such worlds can exceed LS, and even GS; identifiability takes the largest.",
        "An eps chosen by two worlds, many worlds or identifiability is a fact about the data, and would reveal it. "
        "Choose by the worst case.",
    )
    page.heading("Differential identifiability")
    page.text(
        "Lee and Clifton's example: the numbers 1 to 10, of which the attacker knows that 1, 3 and one more are in the "
        "data. For each highest risk the table shows the eps that their bound gives, the risk that the attacker really "
        "reaches with it, and the eps at which the attacker reaches the highest risk: with their bound the noise is "
        "1.7 to 2.9 times what is needed."
    )
    page.table(toy(), "The mean of three of ten people (2012, section 4)", HEADS)
    page.table(adult(), "The mean of columns of the Adult data (2012, section 5); – where no noise is enough", HEADS)
    columns = study.result.attrs["study"]["columns"]
    tell(page, study.at_one, bounds_from_data=any(column["bounds_from"] == "data" for column in columns))
    page.heading("How this was made")
    about = study.result.attrs["study"]
    packages = ", ".join(f"{name} {version(name)}" for name in ("pdrisk", *PACKAGES))
    page.text(
        f"Seed {about['seed']}, {about['repetitions']:,} repetitions, {len(study.result):,} rows in study.csv; "
        f"variance with ddof {about['ddof']}. Python {platform.python_version()}, {packages}. The same seed, "
        "data and versions give the same figures.",
        "Allmann, Nuñez von Voigt, Tschorsch: An applied perspective: estimating the differential identifiability risk "
        "of an exemplary SOEP data set, 2024. Lee, Clifton: How much is enough? Choosing ε for differential privacy, "
        "2011; Differential identifiability, 2012. Mehner, Nuñez von Voigt, Tschorsch: Towards explaining epsilon, "
        "2021.",
    )
