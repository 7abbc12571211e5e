"""Differentially private answers with their sensitivity and the risk they mean for a person.

``import pdrisk`` gives every pandas frame and series the accessor ``dprisk``:

>>> import pandas as pd
>>> import pdrisk
>>> df = pd.DataFrame({"distance": [3, 1, 10, 675, 17]})
>>> release = df.dprisk.mean("distance", eps=2, bounds=(1, 675))
>>> release.global_sensitivity, round(release.risk.worst_case, 4)
(337.0, 0.8808)
"""

from pdrisk import accessor as _accessor
from pdrisk import datasets, identifiability, risk, study
from pdrisk.core.risk import Risk
from pdrisk.errors import (
    BoundsNotFoundError,
    BudgetExceededError,
    ColumnTypeError,
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
from pdrisk.functions import register
from pdrisk.ledger import Ledger
from pdrisk.release import Release, public
from pdrisk.schema import bounds_from, keys_from, missing_from, schema_for
from pdrisk.select import sql
from pdrisk.suggest import SuggestedBounds
from pdrisk.telling import explain
from pdrisk.validated import watch as _watch

__all__ = [
    "BoundsNotFoundError",
    "BudgetExceededError",
    "ColumnTypeError",
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
    "bounds_from",
    "datasets",
    "explain",
    "identifiability",
    "keys_from",
    "missing_from",
    "public",
    "register",
    "risk",
    "schema_for",
    "sql",
    "study",
]

__version__ = "0.1.0"
_watch()
del _accessor, _watch
