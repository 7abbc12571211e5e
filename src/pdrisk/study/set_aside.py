"""Columns of numbers that are no answers of people: ids and weights, whose mean nobody wants."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Final

import numpy as np

from pdrisk._core.summary import FloatArray

FEWEST, MANY = 20, 1000  # whole numbers that all differ: numbered one by one, or however they are
IDS: Final = re.compile(r"(^|[_ .-])(id|ids|uuid|guid|pid|hid|pnr|hnr)$|^(id|uuid)[_ .-]|[a-z]Id$|[a-z]ID$")
WEIGHTS: Final = re.compile(r"(^|[_ .-])(weights?|wgts?|wts?|[pf]weight|gewicht|phrf\w*|hhrf\w*)$", re.IGNORECASE)
INSTEAD: Final = "name it in columns= or --columns, or declare its bounds, to look at it"


def set_aside(column: Hashable, values: FloatArray) -> str:
    """Reason why a column seems to hold ids or weights; "" if it does not.

    ``values``: shape (n,). Ascending, at least one.

    Examples
    --------
    >>> set_aside("person_id", np.arange(3.0)).partition(":")[0]
    'seems to hold ids, by its name'
    >>> set_aside("age", np.array([20.0, 20.0, 31.0]))
    ''
    """
    name = str(column)
    if IDS.search(name) or IDS.search(name.lower()):
        return f"seems to hold ids, by its name: {INSTEAD}"
    whole = bool((values == np.floor(values)).all())
    numbered = len(values) >= MANY or (len(values) >= FEWEST and values[-1] - values[0] < 2 * len(values))
    if numbered and whole and bool((np.diff(values) > 0).all()):
        return f"seems to hold ids, as all its values differ: {INSTEAD}"
    if WEIGHTS.search(name) and not whole and values[0] >= 0:
        return f"seems to hold weights, by its name: {INSTEAD}"
    return ""
