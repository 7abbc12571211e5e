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
from pdrisk import datasets, risk
from pdrisk.core.risk import Risk
from pdrisk.errors import (
    ColumnTypeError,
    NoisyReleaseWarning,
    NotPublicError,
    ParameterError,
    PdriskError,
    QueryFailedError,
    UnknownColumnError,
)
from pdrisk.functions import register
from pdrisk.release import Release, public
from pdrisk.select import sql

__all__ = [
    "ColumnTypeError",
    "NoisyReleaseWarning",
    "NotPublicError",
    "ParameterError",
    "PdriskError",
    "QueryFailedError",
    "Release",
    "Risk",
    "UnknownColumnError",
    "datasets",
    "public",
    "register",
    "risk",
    "sql",
]

__version__ = "0.1.0"
del _accessor
