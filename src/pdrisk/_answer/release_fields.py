"""Fields of a release: the public ones as a flat dict, and rows of its reprs, the curator's numbers apart."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pdrisk._answer.answers import formatting
from pdrisk._answer.words.labels import hidden_values
from pdrisk._model.plain import plain_label

if TYPE_CHECKING:
    from pdrisk._answer.release import Release

WHERE_TO_LOOK = "curator's numbers: .curator (never published, printed or pickled)"


def fields_of(release: Release) -> dict[str, Any]:
    """The flat fields of a release that are public unless the bounds came from the data."""
    ruled = {
        "neighbours": release.neighbours if release.answer.replaces else None,
        "least_group": release.least_group,
        "rounded_to": release.rounded_to,
        "rank95": release.rank95,
        "step": release.step,
        "clip": release.clip,
        **_sampled(release),
        **_measured(release),
    }
    return {
        "statistic": release.statistic,
        "column": plain_label(release.column),
        **({} if release.other is None else {"other": release.other}),
        "where": release.where,
        "where_trusted": release.where_trusted,
        "value": release.value,
        "low": release.low,
        "high": release.high,
        "noise95": release.noise95,
        "eps": release.eps,
        "bounds": release.bounds,
        "mechanism": release.mechanism,
        "scale": release.scale,
        "unit": release.unit,
        "global_sensitivity": release.global_sensitivity,
        "worst_case": release.risk.worst_case,
        "success": release.risk.success,
        "mu": release.risk.mu,
    } | {name: value for name, value in ruled.items() if value is not None}


def _sampled(release: Release) -> dict[str, Any]:
    """The standard error by the design of the sample, its interval, and what of eps it cost."""
    line = release.answer.lines[0]
    if line.sampling_se is None:
        return {}
    names = ("sampling_se", "sampling_low", "sampling_high", "sampling_eps")
    return dict(zip(names, (line.sampling_se, *release.interval(kind="sampling"), line.sampling_eps), strict=True))


def _measured(release: Release) -> dict[str, Any]:
    """What was drawn and the law of its noise as JSON values: whole numbers, or fractions as text."""
    measured = release.measured
    if measured is None:
        return {}
    return {
        "measured": [_plain(number) for number in measured.numbers],
        "measured_unit": _plain(measured.unit),
        "measured_scale": _plain(measured.scale),
        "draw": release.noisy.draw,
    }


def _plain(number: Fraction) -> int | str:
    return number.numerator if number.denominator == 1 else str(number)


def _weights_row(release: Release) -> formatting.Rows:
    weights = release.answer.lines[0].weights
    return [] if weights is None else [("weights", f"{weights[0]}, trimmed at {formatting.number(weights[1])}")]


def rows_of(release: Release) -> tuple[formatting.Rows, formatting.Rows, str | None]:
    """Lines of the reprs, public and the curator's; a note if the curator's numbers are elsewhere."""
    bounds = release.answer.lines[0].bounds_as("{low} to {high}") or "none needed"
    line = release.answer.lines[0]
    withheld = math.isnan(release.number)
    scale = "" if release.scale is None else f", scale {line.length(release.scale)}"
    public = [
        ("noisy value", "withheld: too few people" if withheld else line.shown(release.number)),
        *_noise_rows(release, withheld),
        ("eps", f"{release.eps:.6g}"),
        ("bounds", bounds + (" (from the data)" if release.bounds_from_data else "")),
        *_weights_row(release),
        ("noise", f"{release.mechanism}{scale}"),
        ("unit", release.unit),
        *_person_rows(release),
        ("global sensitivity", line.length(release.global_sensitivity)),
        ("worst-case risk", formatting.risk(release.risk.worst_case)),
        ("attacker's success", formatting.risk(release.risk.success)),
    ]
    if release.clip is not None:
        at = [label for label, _ in public].index("bounds") + 1
        low, high = map(formatting.number, release.clip)
        public.insert(at, ("clipped to", f"{low} to {high}, found by half of eps; the interval is of clipped values"))
    if release.where is not None:
        at = [label for label, _ in public].index("bounds")
        trusted = " (row-wise by your word)" if release.where_trusted else ""
        if hidden := hidden_values(release.answer):
            trusted = f" ({hidden} by your word: Python may have computed it from the data, so no value is shown)"
        public.insert(at, ("where", release.where + trusted))
    if release.answer.replaces:
        public.append(("neighbours", "another value of one record; how many there are is public"))
    if release.least_group is not None:
        size, eps = release.least_group
        public.append(("least group", f"{size} people, by a noisy number of them for eps {eps:.6g} more"))
    if release.rounded_to is not None:
        public.append(("rounded to", f"multiples of {formatting.number(release.rounded_to)}"))
    curator, elsewhere = [], None
    undefined = formatting.UNDEFINED if release.answer.replaces else formatting.NOBODY
    if release.known is not None and not release.shows_curator:
        elsewhere = WHERE_TO_LOOK
    elif (known := release.curator) is not None:
        moved = f"{formatting.share(known.clamped)} of the records" if known.clamped > 0 else "none"
        curator = [
            ("n", f"{known.n}"),
            ("local sensitivity", line.length(known.local_sensitivity)),
            ("privacy loss", f"{known.loss:.6g} of eps {release.eps:.6g}"),
            ("two-worlds risk", formatting.risk(known.two_worlds)),
            ("many-worlds risk", formatting.risk(known.many_worlds, undefined)),
            ("identifiability", formatting.risk(known.identifiability, undefined)),
            ("moved to a bound", moved),
        ]
        if known.left_out is not None and known.left_out > 0:
            curator.append(("left out", f"{formatting.share(known.left_out)} of the records"))
    return ([], public + curator, elsewhere) if release.bounds_from_data else (public, curator, elsewhere)


def _person_rows(release: Release) -> formatting.Rows:
    """How the rows of a person count."""
    answer = release.answer
    if not answer.has_person:
        return []
    if answer.per_person is not None:
        of = "" if "waves" in answer.leaves_out else " of the rows"
        return [("per person", f"{answer.per_person}{of}")]
    counted = "one row counts" if answer.rows == 1 else f"at most {answer.rows:,} rows count"
    return [("per person", counted + ", the others are left out" * ("rows" in answer.leaves_out))]


def _sampling_rows(release: Release) -> formatting.Rows:
    line = release.answer.lines[0]
    if line.sampling_se is None:
        return []
    low, high = map(formatting.number, release.interval(kind="sampling"))
    cost = f", for {line.sampling_eps:.6g} of eps" if line.sampling_eps else ""
    return [("95 % interval", f"{low} to {high} with the sampling error, by its design{cost}")]


def _noise_rows(release: Release, withheld: bool) -> formatting.Rows:
    line = release.answer.lines[0]
    rows = [("95 % noise interval", f"{line.shown(line.low, 'before')} to {line.shown(line.high, 'after')}")]
    if withheld:
        return [("95 % noise interval", "none")]
    if release.rank95 is None:
        return [*rows, *_sampling_rows(release)]
    weights = line.weights
    heaviest = None if weights is None else weights[1]
    ranks = ("95 % noise in ranks", formatting.ranks(release.rank95, release.step, heaviest))
    return [ranks] if math.isnan(release.noise95) else [*rows, ranks]
