"""Chances from a base rate in words, and the whole numbers that risks are told in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from pdrisk._core.risks.risk import posterior
from pdrisk._core.risks.whole_numbers import common_denominator, counted

RARE = 0.05  # a smaller chance is said as "1 in x"


def chances(wording: Mapping[str, str], prior: float, losses: Iterable[float]) -> tuple[str, list[str]]:
    """An attacker's chance before, and the most that it rises to after each of some losses.

    ``prior``: the base rate, a probability.

    Examples
    --------
    >>> from pdrisk._answer.words.languages import texts
    >>> chances(texts("en"), 1 / 551, [1.0])
    ('1 in 551', ['at most 1 in 203'])
    """
    risks = [math.nextafter(float(posterior(loss, prior)), 1.0) for loss in losses]
    out_of = common_denominator([risk for risk in risks if risk >= RARE], prior)
    # Rounded towards a smaller chance before, and a larger one after.
    if prior < RARE:
        whole = round(1 / prior)
        number = whole if math.isclose(whole, 1 / prior) else math.ceil(1 / prior)
        before = wording["chance_in"].format(number=f"{number:,}")
    else:
        times = math.floor(Fraction(repr(prior)) * out_of)
        before = wording["chance_of"].format(times=f"{times:,}", out_of=f"{out_of:,}")
    after = []
    for risk in risks:
        times, at_most = counted(risk, out_of)
        chance = wording["chance_of"].format(times=f"{times:,}", out_of=f"{out_of:,}")
        if risk < RARE:
            chance, at_most = wording["chance_in"].format(number=f"{math.floor(1 / Fraction(risk)):,}"), True
        after.append(wording["chance_at_most" if at_most else "chance_over"].format(chance=chance))
    return before, after
