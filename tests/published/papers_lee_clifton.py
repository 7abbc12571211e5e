"""Lee & Clifton 2011, and 2012 up to section 4."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from papers_numbers import Number
from pdrisk.identifiability import Identifiability, of_worlds, worlds_with, worlds_without_one
from pdrisk.risk import exact_identifiability

ABSENCES, YEARS = (1.0, 2.0, 3.0, 10.0), (1.0, 2.0, 3.0, 4.0)


def swapped(records: tuple[float, ...]) -> float:
    """Their distance between possible worlds: the range of the means without one."""
    return float(np.ptp(worlds_without_one(records)))


def changed(records: tuple[float, ...]) -> float:
    """Their sensitivity: the largest change of a possible world that loses one more."""
    rests = [tuple(np.delete(records, i)) for i in range(len(records))]
    return max(abs(float(np.mean(rest)) - float(world)) for rest in rests for world in worlds_without_one(rest))


def loose_and_tight(records: tuple[float, ...]) -> Identifiability:
    return of_worlds(worlds_without_one(records), risk=1 / 3, sensitivity=changed(records))


def after_output(worlds: np.ndarray, scale: float, output: float, world: int) -> float:
    """Bayes' rule for equally likely worlds."""
    densities = np.exp(-np.abs(output - worlds) / scale)
    return float(densities[world] / densities.sum())


def in_2011() -> Iterator[Number]:
    for records, sensitivity, distance, loose, tight in (
        (ABSENCES, "2.8333", "3", "0.3829393", "0.4317201"),
        (YEARS, "0.8333", "1", "0.3378876", "0.5251497"),
    ):
        name = ", ".join(f"{record:g}" for record in records)
        yield Number(f"mean of {name}: sensitivity Δf", sensitivity, partial(changed, records))
        yield Number(f"mean of {name}: distance between worlds Δv", distance, partial(swapped, records))
        yield Number(
            f"mean of {name}: upper bound of eps at risk 1/3", loose, lambda r=records: loose_and_tight(r).loose_eps
        )
        yield Number(
            f"mean of {name}: largest eps at risk 1/3, by search", tight, lambda r=records: loose_and_tight(r).tight_eps
        )
    worlds = worlds_without_one(ABSENCES)
    scale = changed(ABSENCES) / 2
    for missing, printed in zip((3, 2, 1, 0), ("0.618", "0.158", "0.125", "0.099"), strict=True):
        yield Number(
            f"output 2.20131, eps 2: belief that {ABSENCES[missing]:g} is missing", printed,
            partial(after_output, worlds, scale, 2.20131, missing),
        )  # fmt: skip
    yield Number(
        "mean of 1, 2, 3, 4 at eps 0.5: largest belief", "0.3292",
        lambda: of_worlds(worlds_without_one(YEARS), eps=0.5, sensitivity=changed(YEARS)).exact,
    )  # fmt: skip


KNOWN, EVERYBODY = (1, 3), tuple(range(1, 11))


def toy(statistic: str, rho: float = 1 / 3) -> Identifiability:
    return of_worlds(worlds_with(KNOWN, EVERYBODY, statistic), risk=rho)


def density(world: int) -> float:
    worlds = worlds_with([1, 2, 3], [1, 2, 3, 4, 5, 10])
    scale = 9 / 4 / 2
    return math.exp(-abs(5.041 - worlds[world]) / scale) / (2 * scale)


def in_2012() -> Iterator[Number]:
    for world, (missing, printed) in enumerate(((4, "0.0464"), (5, "0.0580"), (10, "0.1762"))):
        yield Number(f"section 3.5, density at 5.041 if {missing} is missing", printed, partial(density, world))
    worlds = worlds_with([1, 2, 3], [1, 2, 3, 4, 5, 10])
    yield Number("section 3.5, confidence in 10", "0.6278", partial(after_output, worlds, 9 / 8, 5.041, 2))
    yield Number(
        "section 3.5, largest confidence by any output", "0.6278", partial(exact_identifiability, worlds, 9 / 8)
    )
    yield Number("section 4, possible worlds m", "8", lambda: toy("mean").worlds)
    for world, (others, printed) in enumerate(
        (("2", "2.0000"), ("4", "2.6667"), ("5", "3.0000"), ("6", "3.3333"), ("7", "3.6667"), ("8", "4.0000"),
         ("9", "4.3333"), ("10", "4.6667"))
    ):  # fmt: skip
        yield Number(
            f"Table 2, mean of 1, 3, {others}", printed, lambda w=world: float(worlds_with(KNOWN, EVERYBODY)[w])
        )
    yield Number("mean: sensitive range S", "2.6667", lambda: toy("mean").sensitive_range)
    yield Number("mean, ρ = 1/3: λ", "2.1286282671", lambda: toy("mean").scale)
    yield Number("mean, ρ = 1/3: eps = ln 3.5", "1.2527629685", lambda: toy("mean").loose_eps)
    yield Number("mean, ρ = 1/3: risk Γ(2) that is reached", "0.2294382695", lambda: toy("mean").exact)
    yield Number("mean, ρ = 1/3: tight eps", "2.2495966", lambda: toy("mean").tight_eps)
    yield Number("median: sensitive range S", "1", lambda: toy("median").sensitive_range)
    yield Number("median, ρ = 1/3: risk that is reached", "0.333333", lambda: toy("median").exact)
    yield Number("median, ρ = 1/3: tight eps", "1.2527629685", lambda: toy("median").tight_eps)
    for rho, loose, tight in (
        (0.2, "0.559616", "0.939243"), (0.25, "0.847298", "1.460950"), (0.5, "1.945910", "3.766763"),
        (0.75, "3.044522", "6.664430"), (0.9, "4.143135", "10.115656"), (0.99, "6.541029", "18.782325"),
    ):  # fmt: skip
        yield Number(f"Figure 1, mean, ρ = {rho:g}: loose eps", loose, lambda rho=rho: toy("mean", rho).loose_eps)
        yield Number(f"Figure 1, mean, ρ = {rho:g}: tight eps", tight, lambda rho=rho: toy("mean", rho).tight_eps)
