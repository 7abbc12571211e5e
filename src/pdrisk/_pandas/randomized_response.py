"""Randomised response to a question whose answers are a column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.summary import Summary
from pdrisk._guard import guarded
from pdrisk._ledger import ledger_for
from pdrisk._mechanisms.contract.draws import drawn_once
from pdrisk._mechanisms.randomized_response import RandomizedResponse
from pdrisk._model.arguments import checked_flag
from pdrisk._model.expressions.columns import column_kind
from pdrisk._model.expressions.kinds import TRUTH
from pdrisk._model.groups.frame_keys import checked_keys, key_codes, key_index
from pdrisk._pandas.requests.declared import codes_of, declared
from pdrisk._printing import printable
from pdrisk.engines.numpy.codes import without_codes
from pdrisk.errors import ParameterError


@dataclass(frozen=True, slots=True, repr=False)
class RandomizedAnswers:
    """Randomised answers and the estimates made of them. All of it may be published.

    Attributes
    ----------
    answers : Series
        Each person's randomised answer, aligned with the column; missing where the true answer is missing.
    table : DataFrame
        A row for each possible answer. ``given`` is the number of people who gave it. ``value`` is an unbiased estimate
        of the share of people for whom it is true; ``low`` and ``high`` are the ends of its 95 % interval.
    design : RandomizedResponse
        How answers were randomised; it has ``posterior`` and ``respondents``.
    """

    answers: pd.Series
    table: pd.DataFrame
    design: RandomizedResponse

    @property
    def eps(self) -> float:
        """Local privacy loss of each person's answer, in nats."""
        return self.design.eps

    @property
    def p_truth(self) -> float:
        """Probability that an answer is the true one."""
        return self.design.p_truth

    def interval(self, level: float = 0.95) -> pd.DataFrame:
        """Ends of the confidence intervals at another level: ``low`` and ``high``, a row for each possible answer."""
        _, low, high = self.design.estimate(self.table["given"].to_numpy(), level)
        return pd.DataFrame({"low": low, "high": high}, index=self.table.index)

    def explain(self) -> str:
        """Explanation in plain words of what the randomisation means for a person who answers."""
        after = self.design.posterior(0.5)
        return (
            f"Each answer is the true one with a probability of {self.p_truth:.4g}, decided anew for everybody, and "
            "else another one. Nobody, not even whoever collects the answers, learns from yours which one is true: "
            f"somebody who tosses a coin over one true answer beforehand is right {_of_100(after)} times out of 100 at "
            "most after seeing you give it. That you took part is not hidden."
        )

    def __repr__(self) -> str:
        heading = f"randomised response, local eps {self.eps:.4g}, true with probability {self.p_truth:.4g}"
        return f"{heading}\n{printable(self.table.to_string(float_format='{:.4f}'.format), keep=chr(10))}"


def randomized(
    series: pd.Series, name: Hashable, *, eps: Any, p_truth: Any, keys: object, collected: object
) -> RandomizedAnswers:
    """Randomised answers of a column, or the estimates from answers that were randomised before."""
    checked_flag("collected", collected)
    if not collected and ledger_for(None) is not None:
        raise ParameterError(
            "a ledger adds up losses by adding or removing a record, and randomised response hides what people "
            "answer, not that they did: ask outside the ledger's block."
        )
    frame = series.to_frame(name=name)
    listed = _keys(frame, name, keys)
    design = RandomizedResponse(eps=eps, p_truth=p_truth, categories=len(listed))

    def answered() -> RandomizedAnswers:
        cleaned = without_codes(frame, codes_of(frame, [name]))
        codes = key_codes(cleaned, (name,), listed).astype(np.int64)
        some = cleaned[name].notna().to_numpy()
        index = key_index(frame, (name,), listed)
        drawn = codes[some]
        if not collected and len(drawn):
            drawn = drawn_once(design, Summary(np.ones(drawn.shape, dtype=np.int64), whole=drawn))
        given = np.bincount(drawn, minlength=len(listed) + 1)[: len(listed)]
        value, low, high = design.estimate(given)
        table = pd.DataFrame({"given": given, "value": value, "low": low, "high": high}, index=index)
        places = np.full(len(cleaned), -1)
        places[some] = np.where(drawn < len(listed), drawn, -1)
        answers = pd.Series(index.take(np.maximum(places, 0)).where(places >= 0), index=series.index, name=series.name)
        return RandomizedAnswers(answers, table, design)

    return guarded(answered)


def _keys(frame: pd.DataFrame, name: Hashable, keys: object) -> Sequence[tuple[Hashable, ...]]:
    if keys is None and column_kind(frame[name]) == TRUTH:
        return (False,), (True,)
    listed = declared(frame, name).keys if keys is None else keys
    if listed is None:
        raise ParameterError(
            "randomised response needs the public list of possible answers: pass keys=[...], or declare them once with "
            f"df.dprisk.declare(keys={{{name!r}: [...]}}). A column of truth values needs none."
        )
    answers = checked_keys(frame, (name,), listed)
    if any(key[0] is None for key in answers):
        raise ParameterError("a missing answer is none of the possible answers: list the others.")
    if len(answers) < 2:
        raise ParameterError("randomised response needs two possible answers or more.")
    return answers


def _of_100(probability: float) -> int:
    return min(-int(-probability * 100 // 1), 99)
