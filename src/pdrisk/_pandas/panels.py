"""Statistics of panels, in which a person has rows in several waves."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Unpack

from pdrisk._core.foreign import own_errors_of
from pdrisk._core.mean_change import MeanChange
from pdrisk._pandas.requests.options import Options, with_options
from pdrisk._pandas.statistics import Answer, Statistics

__all__ = ["PanelStatistics"]


@own_errors_of
class PanelStatistics(Statistics):
    """Noisy statistics of a frame, and of the changes of its people."""

    @with_options
    def change(self, column: Hashable, *, wave: Hashable, from_: Any, to: Any, **options: Unpack[Options]) -> Answer:
        """Noisy mean change of people between two waves of a panel: of those who have a value in both.

        A person becomes one number, their value in the later wave less that in the earlier one. It needs ``person``,
        and ``rows=1``, which takes one row of a person in each wave, or ``per_person``, which makes one number of their
        rows in each. With ``where``, both rows must be selected. Groups are those of the later rows; with
        ``per_person`` other than ``"one"`` columns of ``by`` must be ``constant``.

        Parameters
        ----------
        column : column
            Of numbers or truth values. ``bounds=(lo, hi)`` is the range of the *difference*. Without it, the declared
            bounds of the column, or those that ``bounds`` has for it as a dict, allow every difference up to hi - lo.
        wave : column
            In which wave a row is, such as a year.
        from_, to : value of ``wave``
            The earlier and the later wave.

        Examples
        --------
        >>> import pandas as pd, pdrisk
        >>> panel = pd.DataFrame({"pid": [*range(900)] * 2, "year": [1980] * 900 + [1987] * 900})
        >>> panel["wage"] = 20.0 + (panel["year"] == 1987) * 3
        >>> d = pdrisk.Dataset(panel, person="pid", bounds={"wage": (0, 50)})
        >>> rise = d.change("wage", wave="year", from_=1980, to=1987, rows=1, eps=1, bounds=(-10, 20))
        >>> rise.name, abs(rise.value - 3) < 1
        ('change(1980 to 1987) of wage', True)
        """
        spec = (MeanChange.name, {"wave": wave, "from_": from_, "to": to})
        return self._answer(column, spec, options)  # weights of people belong here, as those of the later wave
