"""Attackers who choose each question, its mechanism and its eps by the answers before, against a limit of success.

Usage: python benchmarks/ledger_attackers.py [--ledgers 1000000] [--limits 0.6 0.75 0.9]; it ends with status 1 if an
attacker is right more than 4 standard errors above the limit. A coin says whether the person is in the data; all
ledgers of an attacker are played at once, by the prices and the rule of `pdrisk.Ledger(success=...)`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.risks.gaussian_dp import (
    limit_of,
    mu_of_exponential,
    mu_of_geometric,
    mu_of_laplace,
    mu_of_pure,
)

Floats = NDArray[np.float64]
MU = {
    "count": mu_of_pure,
    "laplace": mu_of_laplace,
    "choice": mu_of_exponential,  # by the exponential mechanism at its worst: logistic noise moved by eps
    "pair": lambda eps: mu_of_geometric(eps, 2),  # a count of a person's two records
}


class Ledgers:
    """Ledgers of one attacker: what he knows in each, and what is spent."""

    def __init__(self, number: int, success: float, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.success, self.most = success, float(limit_of(success))
        self.truth = self.rng.integers(0, 2, number).astype(float)
        self.odds = np.zeros(number)  # logarithm, of the person being there
        self.spent = np.zeros(number)

    def ask(self, kind: str, eps: Floats | float, where: NDArray[np.bool_] | bool = True) -> NDArray[np.bool_]:
        """Ask in some ledgers; where that was answered."""
        eps = np.broadcast_to(np.asarray(eps, dtype=float), self.truth.shape)
        price = self._of_each(lambda each: MU[kind](each) ** 2 if each > 0 else math.inf, eps)
        answered = where & (self.spent + price <= self.most)
        self.odds += np.where(answered, self._told(kind, eps), 0.0)
        self.spent += np.where(answered, price, 0.0)
        return answered

    def _told(self, kind: str, eps: Floats) -> Floats:
        """Logarithm of the likelihood ratio of an answer."""
        if kind == "count":
            truthful = self.rng.random(len(eps)) < 1 / (1 + np.exp(-eps))
            return np.where(truthful == (self.truth > 0), eps, -eps)
        if kind == "laplace":
            seen = self.truth * eps + self.rng.laplace(size=len(eps))
            return np.abs(seen) - np.abs(seen - eps)
        if kind == "choice":
            seen = self.truth * eps + self.rng.logistic(size=len(eps))
            return eps + 2 * (np.logaddexp(0, -seen) - np.logaddexp(0, eps - seen))
        rate = np.maximum(eps, 1e-12) / 2
        tails = self.rng.geometric(-np.expm1(-rate), size=(2, len(eps)))
        seen = 2 * self.truth + tails[0] - tails[1]
        return rate * (np.abs(seen) - np.abs(seen - 2))

    def affordable(self, kind: str, share: float = 1.0) -> Floats:
        """Largest eps that a share of what is left pays for."""

        def eps(left: float) -> float:
            low, high = 0.0, 64.0
            for _ in range(50):
                middle = (low + high) / 2
                low, high = (middle, high) if MU[kind](middle) ** 2 <= left else (low, middle)
            return low

        return self._of_each(eps, share * (self.most - self.spent))

    @staticmethod
    def _of_each(function: Callable[[float], float], values: Floats) -> Floats:
        different, place = np.unique(values, return_inverse=True)
        return np.array([function(float(each)) for each in different])[place]

    @property
    def belief(self) -> Floats:
        """How sure he is of what he would guess."""
        return 1 / (1 + np.exp(-np.abs(self.odds)))

    @property
    def right(self) -> float:
        """How often he is right."""
        coin = self.rng.random(len(self.odds)) < 0.5
        return float(np.mean(np.where(self.odds == 0, coin, self.odds > 0) == (self.truth > 0)))


def one(kind: str) -> Callable[[Ledgers], object]:
    """One answer that uses everything up."""
    return lambda own: own.ask(kind, own.affordable(kind))


def equal(kind: str, number: int) -> Callable[[Ledgers], object]:
    """So many equal answers."""

    def play(own: Ledgers) -> None:
        eps = own.affordable(kind, 1 / number * (1 - 1e-9))
        for _ in range(number):
            own.ask(kind, eps)

    return play


def until_sure(own: Ledgers) -> None:
    """Small counts until the belief is that of the limit, then never again."""
    for _ in range(400):
        own.ask("count", 0.1, own.belief < own.success)


def until_lucky(own: Ledgers) -> None:
    """Small Laplace answers until something speaks for the person, as for his headline."""
    for _ in range(60):
        own.ask("laplace", 0.2, own.odds < 1)


def rest_if_unsure(own: Ledgers) -> None:
    """Half, and the rest where the belief is low."""
    own.ask("count", own.affordable("count", 0.5))
    own.ask("laplace", own.affordable("laplace"), own.belief < own.success)


def rest_if_sure(own: Ledgers) -> None:
    """Half, and the rest where the belief is high."""
    own.ask("laplace", own.affordable("laplace", 0.5))
    own.ask("count", own.affordable("count"), own.belief >= own.success)


def more_when_unsure(own: Ledgers) -> None:
    """A larger eps the less he knows, in five grades."""
    for _ in range(25):
        own.ask("laplace", np.round(0.6 - 0.1 * np.minimum(np.abs(own.odds), 5)).clip(0) * 0.3 + 0.1)
    own.ask("count", own.affordable("count"))


def more_when_sure(own: Ledgers) -> None:
    """A larger eps the more he knows, in five grades."""
    for _ in range(25):
        own.ask("choice", np.round(np.minimum(np.abs(own.odds), 5)) * 0.1 + 0.1)
    own.ask("laplace", own.affordable("laplace"))


def doubling(own: Ledgers) -> None:
    """Twice the eps after each answer against the person, and from the beginning after one for them."""
    eps = np.full(len(own.truth), 0.1)
    for _ in range(30):
        before = own.odds.copy()
        own.ask("laplace", eps)
        eps = np.where(own.odds < before, np.minimum(2 * eps, 1.6), 0.1)


def in_turn(own: Ledgers) -> None:
    """Another mechanism after each answer, which its sign decides."""
    for _ in range(40):
        up = own.odds > 0
        own.ask("count", 0.15, up)
        own.ask("pair", 0.2, ~up)
        own.ask("choice", 0.25, ~up)


def at_random(own: Ledgers) -> None:
    """Any mechanism at any of eight eps, until nothing is left."""
    for _ in range(30):
        eps = 0.1 * own.rng.integers(1, 9, len(own.truth))
        own.ask(list(MU)[int(own.rng.integers(len(MU)))], eps)
    own.ask("count", own.affordable("count"))


def just_enough(own: Ledgers) -> None:
    """Counts whose eps is what he knows already, so that each may turn his guess round."""
    own.ask("count", own.affordable("count", 0.2))
    for _ in range(12):
        own.ask("count", np.round(np.abs(own.odds), 6) + 0.05)
    own.ask("count", own.affordable("count"))


def small_then_all(own: Ledgers) -> None:
    """Many tiny answers, then all the rest in one count."""
    for _ in range(50):
        own.ask("laplace", 0.05)
    own.ask("count", own.affordable("count"))


STRATEGIES: dict[str, Callable[[Ledgers], Any]] = {
    "one count": one("count"), "one Laplace": one("laplace"), "one count of two records": one("pair"),
    "20 equal counts": equal("count", 20), "20 equal Laplace": equal("laplace", 20),
    "50 equal choices": equal("choice", 50),
    **{
        play.__name__.replace("_", " "): play
        for play in (
            until_sure, until_lucky, rest_if_unsure, rest_if_sure, more_when_unsure, more_when_sure, doubling, in_turn,
            at_random, just_enough, small_then_all,
        )
    },
}  # fmt: skip


def attacked(name: str, success: float, ledgers: int, seed: int) -> tuple[float, float]:
    """How often an attacker is right, and the standard errors by which that is above the limit."""
    own = Ledgers(ledgers, success, seed)
    STRATEGIES[name](own)
    return own.right, (own.right - success) / math.sqrt(success * (1 - success) / ledgers)


def main() -> int:
    """Play all, and say how often each was right."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ledgers", type=int, default=1_000_000, help="of each attacker")
    parser.add_argument("--limits", type=float, nargs="+", default=[0.6, 0.75, 0.9])
    chosen = parser.parse_args()
    wrong = 0
    for success in chosen.limits:
        for seed, name in enumerate(STRATEGIES):
            begin = time.perf_counter()
            right, above = attacked(name, success, chosen.ledgers, seed)
            wrong += above > 4
            took = time.perf_counter() - begin
            print(f"{success}  {name:<26} right {right:.4f}  {above:+7.2f} standard errors  {took:.1f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
