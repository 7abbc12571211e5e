"""Plan of a budget: what each question is allotted, what does not fit, and the success that less noise would need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import pandas as pd

from pdrisk._core.once import once
from pdrisk._core.risks.gaussian_dp import limit_of, root, success_of
from pdrisk._core.risks.risk import posterior
from pdrisk._digits import probability
from pdrisk._pandas.plans.plan_tables import PlannedTable
from pdrisk._printing import preformatted
from pdrisk.errors import ParameterError

FREE: Final = "sums of other answers"
SCALINGS: Final = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)
SHOWN: Final = "{:.4g}".format
GUESS: Final = Fraction(1)  # an eps, where none is needed
STEPS: Final = 12  # by halves, of a scaling: within one part in a thousand
WIDEST: Final = 1024.0

Place = tuple[int, int]  # of a release: the number of its table, and its own
Shares = dict[Place, Fraction | None]  # None: from the sums of a finer table, which cost nothing


@dataclass(frozen=True, repr=False, eq=False)
class BudgetPlan:
    """Plan of a budget. All of it comes from public facts; nothing is spent.

    Attributes
    ----------
    table : DataFrame
        A row for each question, with columns ``table question mechanism eps mu n noise95 noise95_widest wanted fits
        worst_case success``. ``mu`` is the m of its release and ``wanted`` the ``noise95`` that was asked for. Without
        ``fits`` it is more than earlier rows leave. An eps of 0 is a margin that sums of other answers give.
    success : float
        What all of it together lets an attacker reach, if it is paid as planned.
    limit : float or None
        What it may be.
    mu2, eps, delta : Fraction
        Of all together: the sum of the squares of m, which a ledger with ``success=`` counts, and the eps and delta.
    queries : int
        How many queries it asks at most: one for each release, as its eps is its own.
    eps_limit : float or None
    missing : tuple of str
        What does not fit, and by how much.
    """

    table: pd.DataFrame
    success: float
    limit: float | None
    mu2: Fraction
    eps: Fraction
    queries: int
    eps_limit: float | None
    missing: tuple[str, ...]
    tables: Sequence[PlannedTable] = field(repr=False)
    delta: Fraction = Fraction(0)

    @property
    def fits(self) -> bool:
        """Whether all of it is within the limits."""
        return not self.missing

    @once
    def noise_that_fits(self) -> float:
        """By how much all wanted noise must be multiplied to fit, at least 1; infinite if nothing helps."""
        if self.fits:
            return 1.0
        low, high = 1.0, 2.0
        while not self._fits(high):
            low, high = high, 2 * high
            if high > WIDEST:
                return math.inf
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._fits(middle) else (middle, high)
        return math.ceil(1000 * high) / 1000

    @once
    def frontier(self) -> pd.DataFrame:
        """The success and the eps that all targets need, against a common scaling of their noise.

        Columns ``noise success eps``; at a noise of 2 each answer may have twice the noise that is wanted. Questions
        without a target are left out.
        """
        rows = []
        for times in SCALINGS:
            try:
                mu2, eps = _totals(self.tables, _targeted(self.tables, times))
            except ParameterError:  # less noise than any eps gives
                continue
            rows.append((times, success_of(mu2), float(eps)))
        return pd.DataFrame(rows, columns=["noise", "success", "eps"])

    def _fits(self, times: float) -> bool:
        mu2, eps = _totals(self.tables, _targeted(self.tables, times))
        within = self.limit is None or mu2 <= limit_of(Fraction(repr(self.limit)))
        return within and (self.eps_limit is None or eps <= Fraction(repr(self.eps_limit)))

    def _reached(self) -> str:
        reached = f"together: success {probability(self.success)}"
        reached += "" if self.limit is None else f" of at most {self.limit:g}"
        reached += f", eps {float(self.eps):g}" + ("" if self.eps_limit is None else f" of at most {self.eps_limit:g}")
        lines = [reached, *self.missing]
        if self.missing and math.isfinite(self.noise_that_fits):
            lines.append(f"It fits with {self.noise_that_fits:g} times the noise that is wanted. See .frontier.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{self.table.to_string(index=False, float_format=SHOWN)}\n{self._reached()}"

    def _repr_html_(self) -> str:
        return self.table.to_html(index=False, float_format=SHOWN, border=0) + preformatted(self._reached())


def allotted(tables: Sequence[PlannedTable], success: Fraction | None, eps: Fraction | None) -> BudgetPlan:
    """The plan of some tables within limits: first what has a target, then an even share of the rest for all others."""
    limit = None if success is None else limit_of(success)
    shares = _targeted(tables)
    free = [place for place in _places(tables) if place not in shares]
    spent = _totals(tables, shares)
    if free and limit is None and eps is None:
        table, release = free[0]
        named = tables[table].said(tables[table].leads[release])
        raise ParameterError(f"{named} has no target: give it one, such as noise95=, or pass success= for all.")
    missing: list[str] = []
    for table, release in free:
        left = [
            None if most is None else (most - paid) / len(free) for most, paid in ((limit, spent[0]), (eps, spent[1]))
        ]
        share = tables[table].largest_eps(release, *left)
        if share is None:
            missing.append(f"Nothing is left for {tables[table].said(tables[table].leads[release])}.")
            continue
        tables[table].check(release, share)
        shares[table, release] = share
    missing = [*_short(tables, shares, limit, eps), *missing]
    mu2, total = _totals(tables, shares)
    fits, rest = {}, [limit, eps]
    for place in _places(tables):
        cost = _cost(tables, place, shares.get(place))
        fits[place] = place in shares and all(
            most is None or needed <= most for needed, most in zip(cost, rest, strict=True)
        )
        if fits[place]:
            rest = [most if most is None else most - needed for needed, most in zip(cost, rest, strict=True)]
    rows = [
        _row(tables, at, line, shares, fits)
        for at, table in enumerate(tables)
        for line in range(len(table.query.lines))
    ]
    shown = pd.DataFrame(rows)
    asked = [share for share in shares.values() if share is not None]  # each has its own eps: a query of its own
    return BudgetPlan(
        shown if (shown["table"] != "").any() else shown.drop(columns="table"),
        success_of(mu2), None if success is None else float(success), mu2, total, len(asked),
        None if eps is None else float(eps), tuple(missing), tables,
    )  # fmt: skip


def _places(tables: Sequence[PlannedTable]) -> list[Place]:
    return [(at, release) for at, table in enumerate(tables) for release in range(len(table.leads))]


def _targeted(tables: Sequence[PlannedTable], times: float = 1.0) -> Shares:
    """The eps of each release with a target, for so many times the noise that is wanted."""
    shares: Shares = {}
    for at, table in enumerate(tables):
        if table.from_cells(_of_finer(tables, table, shares), times) is not None:
            shares |= {(at, release): None for release in range(len(table.leads))}
            continue
        shares |= {
            (at, release): table.least_eps(release, times)
            for release in range(len(table.leads))
            if table.has_target(release)
        }
    return shares


def _of_finer(tables: Sequence[PlannedTable], table: PlannedTable, shares: Shares) -> tuple[Fraction | None, ...]:
    """The eps of each release of the table whose groups add up to those of this one."""
    at = next((place for place, other in enumerate(tables) if other is table.finer), None)
    return () if at is None else tuple(shares.get((at, release)) for release in range(len(table.leads)))


def _cost(tables: Sequence[PlannedTable], place: Place, share: Fraction | None) -> tuple[Fraction, Fraction]:
    return (Fraction(0), Fraction(0)) if share is None else (tables[place[0]].price(place[1], share), share)


def _totals(tables: Sequence[PlannedTable], shares: Shares) -> tuple[Fraction, Fraction]:
    """The sum of the squares of m, and of eps."""
    costs = [_cost(tables, place, share) for place, share in shares.items()]
    return sum((cost[0] for cost in costs), Fraction(0)), sum((cost[1] for cost in costs), Fraction(0))


def _short(tables: Sequence[PlannedTable], shares: Shares, limit: Fraction | None, eps: Fraction | None) -> list[str]:
    """What does not fit in the order of the questions, and the noise with which it would."""
    mu2, total = _totals(tables, shares)
    sentences = []
    if limit is not None and mu2 > limit:
        over = probability(success_of(mu2))
        sentences.append(f"These targets need a success of {over}, and {probability(success_of(limit))} is allowed.")
    if eps is not None and total > eps:
        sentences.append(f"These targets need eps {float(total):g}, and {float(eps):g} is allowed.")
    left = [limit, eps]
    for place in _places(tables):
        if not sentences or place not in shares:
            continue
        cost = _cost(tables, place, shares[place])
        if all(most is None or needed <= most for needed, most in zip(cost, left, strict=True)):
            left = [most if most is None else most - needed for needed, most in zip(cost, left, strict=True)]
            continue
        table, lead = tables[place[0]], tables[place[0]].leads[place[1]]
        most = table.largest_eps(place[1], *left)
        need = f"{table.said(lead)} needs eps {float(shares[place] or 0):g}, "
        if most is None:
            sentences.append(f"{need}and nothing is left.")
            continue
        noise, wanted = table.noise(lead, most), table.noise(lead, shares[place] or most)
        sentences.append(
            f"{need}and what is left pays eps {float(most):g}: noise95 {noise:.4g} instead of {wanted:.4g}."
        )
    return sentences


def _row(tables: Sequence[PlannedTable], at: int, line: int, shares: Shares, fits: dict[Place, bool]) -> dict[str, Any]:
    """One row of the plan."""
    table = tables[at]
    release = table.query.releases[line]
    share, question = shares.get((at, release)), table.query.lines[line]
    row: dict[str, Any] = {"table": table.name, "question": question.name, "mechanism": question.mechanism}
    row |= {"eps": math.nan, "mu": math.nan, "n": table.size, "noise95": math.nan, "noise95_widest": math.nan}
    row |= {"wanted": math.nan, "fits": fits[at, release], "worst_case": math.nan, "success": math.nan}
    if share is not None:
        mechanism = table.query.mechanism(line, eps=share)
        row |= {"eps": float(share), "mu": root(table.price(release, share)), "noise95": table.noise(line, share)}
        row |= {"noise95_widest": table.noise(line, share, "noise95_widest")}
        row |= {"worst_case": float(posterior(float(share)))}
        row["success"] = mechanism.success_of(table.query.weight(line, share), table.price(release, share))
    elif (at, release) in shares:
        row |= {"mechanism": FREE, "eps": 0.0, "mu": 0.0, "worst_case": 0.5, "success": 0.5}
        row["noise95"] = (table.from_cells(_of_finer(tables, table, shares)) or [math.nan])[line]
    target = table.target(line, share or GUESS)
    return row if target is None else row | {"wanted": target[1]}
