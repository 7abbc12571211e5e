"""What fails while data is read says nothing about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from pdrisk.errors import PdriskError, QueryFailedError

__all__ = ["guarded"]

Result = TypeVar("Result")


def guarded(work: Callable[[], Result]) -> Result:
    """Whatever ``work`` gives.

    Raises
    ------
    QueryFailedError
        If anything goes wrong: one fixed sentence, without a cause.
    """
    try:
        with np.errstate(all="ignore"):  # a warning would depend on the data
            return work()
    except PdriskError:
        raise
    except Exception:  # noqa: BLE001
        pass  # whatever it says could quote a record; raised below, so that nothing is chained to it
    raise QueryFailedError
