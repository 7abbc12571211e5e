"""Differentially private statistics with their exact sensitivity and the risk that they mean for a person.

``import pdrisk`` gives every pandas frame and series the accessor ``dprisk``:

>>> import pandas as pd
>>> import pdrisk
>>> df = pd.DataFrame({"distance": [3, 1, 10, 675, 17] * 500})
>>> release = df.dprisk.mean("distance", eps=2, bounds=(1, 675))
>>> release.global_sensitivity, round(release.risk.worst_case, 4)
(337.0, 0.8808)
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from pdrisk._imported import imported as _import_now
from pdrisk._imported import when_imported as _when_imported
from pdrisk._pandas.registered import register as _register
from pdrisk._pandas.requests.validated import watch as _watch
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

if TYPE_CHECKING:
    from pdrisk import attack, datasets, identifiability, risk, study
    from pdrisk._answer.explain import explain
    from pdrisk._answer.publishing import public
    from pdrisk._answer.release import Release
    from pdrisk._answer.tables.charts import plot
    from pdrisk._answer.tables.consistent import consistent
    from pdrisk._answer.tables.quality import quality, rounded
    from pdrisk._answer.tables.shrunk import shrink
    from pdrisk._answer.tables.styled_table import show
    from pdrisk._answer.tradeoff import tradeoff
    from pdrisk._audit import audit
    from pdrisk._core.risks.risk import Risk
    from pdrisk._functions import register
    from pdrisk._ledger import Ledger
    from pdrisk._model.declared.pandera_schema import bounds_from, keys_from, missing_from, schema_for
    from pdrisk._model.design import Design
    from pdrisk._model.margins import ALL
    from pdrisk._pandas.plans.plan_questions import plan
    from pdrisk._pandas.statements import statements
    from pdrisk._pandas.suggested_bounds import SuggestedBounds
    from pdrisk._pandas.typed import accessor
    from pdrisk._sql import sql
    from pdrisk._sql.tables.catalog_schema import schema_from
    from pdrisk.dataset import Dataset

__all__ = [
    "ALL",
    "BoundsNotFoundError",
    "BudgetExceededError",
    "ColumnTypeError",
    "Dataset",
    "Design",
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
    "accessor",
    "attack",
    "audit",
    "bounds_from",
    "consistent",
    "datasets",
    "explain",
    "identifiability",
    "keys_from",
    "missing_from",
    "plan",
    "plot",
    "public",
    "quality",
    "register",
    "risk",
    "rounded",
    "schema_for",
    "schema_from",
    "show",
    "shrink",
    "sql",
    "statements",
    "study",
    "tradeoff",
]

__version__ = "0.1.0"


# Nothing is imported before it is asked for: most of pdrisk takes a quarter of the time that pandas takes.
_LATER = {
    "ALL": "pdrisk._model.margins",
    "Dataset": "pdrisk.dataset",
    "Design": "pdrisk._model.design",
    "Ledger": "pdrisk._ledger",
    "Release": "pdrisk._answer.release",
    "Risk": "pdrisk._core.risks.risk",
    "SuggestedBounds": "pdrisk._pandas.suggested_bounds",
    "accessor": "pdrisk._pandas.typed",
    "audit": "pdrisk._audit",
    "bounds_from": "pdrisk._model.declared.pandera_schema",
    "consistent": "pdrisk._answer.tables.consistent",
    "explain": "pdrisk._answer.explain",
    "keys_from": "pdrisk._model.declared.pandera_schema",
    "missing_from": "pdrisk._model.declared.pandera_schema",
    "plan": "pdrisk._pandas.plans.plan_questions",
    "plot": "pdrisk._answer.tables.charts",
    "public": "pdrisk._answer.publishing",
    "quality": "pdrisk._answer.tables.quality",
    "register": "pdrisk._functions",
    "rounded": "pdrisk._answer.tables.quality",
    "schema_for": "pdrisk._model.declared.pandera_schema",
    "schema_from": "pdrisk._sql.tables.catalog_schema",
    "show": "pdrisk._answer.tables.styled_table",
    "shrink": "pdrisk._answer.tables.shrunk",
    "sql": "pdrisk._sql",
    "statements": "pdrisk._pandas.statements",
    "tradeoff": "pdrisk._answer.tradeoff",
}
_SUBMODULES = {"attack", "datasets", "identifiability", "risk", "study"}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import what is asked for the first time."""
        if name in _SUBMODULES:
            return _import_now(f"pdrisk.{name}")
        if name not in _LATER:
            raise AttributeError(f"module 'pdrisk' has no attribute {name!r}")
        attribute = globals()[name] = getattr(_import_now(_LATER[name]), name)
        return attribute


def __dir__() -> list[str]:
    """The public names alone, for whoever presses Tab."""
    return sorted(__all__)


def _register_polars(polars: ModuleType) -> None:
    from pdrisk._polars_namespace import register

    register(polars)


_register()
_watch()
_when_imported("polars", _register_polars)
del _register, _watch, _when_imported
