"""Refusals of what an engine of SQL cannot compute with the meaning that it has elsewhere."""

from __future__ import annotations

from typing import Final, NoReturn

from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.errors import ParameterError

VIEW: Final = "make a view in the database with that as a column, and ask the view"


def refuse(dialect: Dialect, what: str, why: str = "") -> NoReturn:
    """Refuse an expression; ``why`` says what the engine lacks."""
    reason = f": {why}" if why else ""
    asked = f"{what} is computed of records, which pdrisk does not ask of {dialect.engine}{reason}"
    raise ParameterError(f"{asked}: {VIEW}.")
