"""Differentially private answers with their sensitivity and the risk they mean for a person.

``import pdrisk`` gives every pandas frame and series the accessor ``dprisk``:

>>> import pandas as pd
>>> import pdrisk
>>> df = pd.DataFrame({"distance": [3, 1, 10, 675, 17] * 500})
>>> release = df.dprisk.mean("distance", eps=2, bounds=(1, 675))
>>> release.global_sensitivity, round(release.risk.worst_case, 4)
(337.0, 0.8808)
"""

from pdrisk import attack, datasets, identifiability, risk, study
from pdrisk._answer.explain import explain
from pdrisk._answer.publishing import public
from pdrisk._answer.release import Release
from pdrisk._audit import audit
from pdrisk._core.risk import Risk
from pdrisk._functions import register
from pdrisk._ledger import Ledger
from pdrisk._model.schema import bounds_from, keys_from, missing_from, schema_for
from pdrisk._pandas import accessor as _accessor
from pdrisk._pandas.plan import plan
from pdrisk._pandas.suggested_bounds import SuggestedBounds
from pdrisk._pandas.validated import watch as _watch
from pdrisk._polars_namespace import watch as _watch_polars
from pdrisk._sql import sql
from pdrisk.dataset import Dataset
from pdrisk.errors import (
    BoundsNotFoundError,
    BudgetExceededError,
    ColumnTypeError,
    DoubtfulReleaseWarning,
    LedgerError,
    NoisyReleaseWarning,
    NotPublicError,
    ParameterError,
    PdriskError,
    PolicyError,
    QueryFailedError,
    UnknownColumnError,
    UnpaidReleaseWarning,
)

__all__ = [
    "BoundsNotFoundError",
    "BudgetExceededError",
    "ColumnTypeError",
    "Dataset",
    "DoubtfulReleaseWarning",
    "Ledger",
    "LedgerError",
    "NoisyReleaseWarning",
    "NotPublicError",
    "ParameterError",
    "PdriskError",
    "PolicyError",
    "QueryFailedError",
    "Release",
    "Risk",
    "SuggestedBounds",
    "UnknownColumnError",
    "UnpaidReleaseWarning",
    "attack",
    "audit",
    "bounds_from",
    "datasets",
    "explain",
    "identifiability",
    "keys_from",
    "missing_from",
    "plan",
    "public",
    "register",
    "risk",
    "schema_for",
    "sql",
    "study",
]

__version__ = "0.1.0"


def __dir__() -> list[str]:
    """The public names alone, for whoever presses Tab."""
    return sorted(__all__)


_watch()
_watch_polars()
del _accessor, _watch, _watch_polars
