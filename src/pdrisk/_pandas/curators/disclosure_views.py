"""Disclosure measures and output rules as the curator asks for them, of a frame or of a Dataset in a database."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from pdrisk._core.foreign import own_errors_of
from pdrisk._imported import later
from pdrisk._pandas.curators.curator_views import CuratorViews
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from pdrisk._disclosure import measures, suggest
    from pdrisk._disclosure import rules as output_rules
    from pdrisk._disclosure.checked import CheckedTable
    from pdrisk._disclosure.results import (
        DeltaPresence,
        KAnonymity,
        KMap,
        KMapEstimate,
        LDiversity,
        TCloseness,
        UniqueRows,
    )
    from pdrisk._disclosure.suggest import SuggestedGeneralization
    from pdrisk._disclosure.tables import KeyRequest, KeyTable
else:
    measures, output_rules, suggest = (later(f"pdrisk._disclosure.{name}") for name in ("measures", "rules", "suggest"))

Columns = Hashable | list[Hashable]


KEYS_DOC = """
Other Parameters
----------------
on : column or list of columns
    Key columns (quasi-identifiers): what an attacker may know about a person. A missing key counts as a value.
person : column or list of columns, optional
    Column of people's ids; by default that of the Dataset. A person with several rows in a class counts once there.
    Rows without an id are left out.
generalize : dict from column to rule, optional
    Coarser keys: the edges of bins, each with its left edge (``{"age": [0, 10, 20]}``), the number of letters to keep
    (``{"zip": 3}``), or a dict from value to coarser value.
"""

Method = TypeVar("Method", bound=Callable[..., Any])


def _with_keys(method: Method) -> Method:
    """The measure with the parameters of all measures appended to its docstring."""
    method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n{KEYS_DOC}"
    return method


@own_errors_of
class DisclosureViews(CuratorViews):
    """Disclosure measures of a table, for curators only; a ledger's policy names them."""

    def _measured(self, measure: str, on: object, generalize: object, person: object) -> tuple[KeyTable, KeyRequest]:
        self._check_curator(f"{measure}()")
        if person is None and self._identity is not None:
            person = list(self._people.columns) or None
        table = measures.keys_of(self._table, self._frame, self._rows(None))
        return table, measures.asked(on, generalize, person)

    @_with_keys
    def k_anonymity(
        self, on: Columns, *, person: Columns | None = None, generalize: Mapping[Hashable, Any] | None = None
    ) -> KAnonymity:
        """Curator only: k-anonymity, the least number of people who share a combination of keys.

        Returns
        -------
        KAnonymity
            ``k``, ``unique``, ``below(k)``; ``classes``, ``worst()``, ``per_row()``, ``picture()``, ``picture_text()``.

        Notes
        -----
        Samarati & Sweeney 1998. It is about one table, and about re-identification alone. See `l_diversity` for what
        everybody in a class has in common, and `delta_presence` for who is in the table at all.
        """
        return measures.k_anonymity(*self._measured("k_anonymity", on, generalize, person))

    @_with_keys
    def k_map(
        self,
        on: Columns,
        *,
        population: Any = None,
        population_counts: pd.Series | pd.DataFrame | None = None,
        weights: Hashable | float | None = None,
        model: str = "negative_binomial",
        person: Columns | None = None,
        generalize: Mapping[Hashable, Any] | None = None,
        on_missing: str = "error",
    ) -> KMap | KMapEstimate:
        """Curator only: k-map, the least number of people of a population who share the keys of a row in the table.

        Parameters
        ----------
        population : table
            A table of people with the same key columns: whatever a Dataset takes, or a relation of DuckDB. If it has
            the column of ``person``, people are counted, not rows.
        population_counts : Series or DataFrame
            Instead of ``population``, numbers of people: a Series indexed by the keys, or a DataFrame with the keys and
            one more column.
        weights : column or float
            Instead, if only a sample is known: the column of sampling weights, or one weight for all. The result is an
            estimate.
        model : {"negative_binomial", "poisson"}
            Model of the estimate: the distribution of the number of people in a class who were not sampled.
        on_missing : {"error", "pessimistic"}
            How to treat a class with fewer people in the population than in the table: raise an error that names it, or
            assume that the people in the table are all there are.

        Returns
        -------
        KMap
            ``k_map``, ``k``, ``population``; ``classes``, ``worst()``, ``per_row()``, ``picture()``.
        KMapEstimate
            With ``weights``: ``k_map``, ``highest_risk``, ``reidentified``, ``population_unique``, and a range of both;
            ``below(k)``.

        Notes
        -----
        Sweeney 2002. The estimate is the individual risk of Benedetti & Franconi 1998, as in mu-Argus and sdcMicro;
        ``reidentified``, ``population_unique`` and ``below`` are by a log-linear model (Skinner & Shlomo 2008).
        """
        table, wanted = self._measured("k_map", on, generalize, person)
        return measures.k_map(
            table, wanted, population=population, population_counts=population_counts, weights=weights, model=model,
            on_missing=on_missing,
        )  # fmt: skip

    @_with_keys
    def delta_presence(
        self,
        on: Columns,
        *,
        population: Any = None,
        population_counts: pd.Series | pd.DataFrame | None = None,
        person: Columns | None = None,
        generalize: Mapping[Hashable, Any] | None = None,
        on_missing: str = "error",
    ) -> DeltaPresence:
        """Curator only: delta-presence, how likely a person of the population is in the table, given their keys.

        Parameters
        ----------
        population, population_counts, on_missing
            As for `k_map`. Sampling weights are not enough, since they say nothing about classes that are not in the
            sample.

        Returns
        -------
        DeltaPresence
            ``delta_min`` over all classes of the population, ``delta_max``, ``k_map``, ``k``, ``population``;
            ``classes`` of the population with ``sample population ratio``, ``worst()``, ``per_row()``, ``picture()``.

        Notes
        -----
        Nergiz, Atzori & Clifton 2007. Where a text gives a single delta, it is ``delta_max``.
        """
        table, wanted = self._measured("delta_presence", on, generalize, person)
        return measures.delta_presence(
            table, wanted, population=population, population_counts=population_counts, on_missing=on_missing
        )

    @_with_keys
    def l_diversity(
        self,
        on: Columns,
        sensitive: Hashable,
        *,
        person: Columns | None = None,
        generalize: Mapping[Hashable, Any] | None = None,
    ) -> LDiversity:
        """Curator only: l-diversity, the least number of different sensitive values within a class of keys.

        Parameters
        ----------
        sensitive : column
            Missing values are not counted as values; classes without any value are not judged.

        Returns
        -------
        LDiversity
            ``l`` (distinct), ``entropy_l``, ``largest_share``; ``classes``, ``worst()``, ``per_row()``, ``picture()``.

        Notes
        -----
        Machanavajjhala et al. 2007.
        """
        return measures.l_diversity(*self._measured("l_diversity", on, generalize, person), sensitive)

    @_with_keys
    def t_closeness(
        self,
        on: Columns,
        sensitive: Hashable,
        *,
        distance: str = "auto",
        person: Columns | None = None,
        generalize: Mapping[Hashable, Any] | None = None,
    ) -> TCloseness:
        """Curator only: t-closeness, the largest distance of the sensitive values of a class from those of everybody.

        Parameters
        ----------
        sensitive : column
            Missing values are left out.
        distance : {"auto", "equal", "ordered"}
            Earth mover's distance between ordered values, in steps from one value that occurs to the next, or with
            equal distances between any two values. ``"auto"`` treats numbers, dates and ordered categories as ordered.

        Returns
        -------
        TCloseness
            ``t`` in [0, 1]; ``classes``, ``worst()``, ``per_row()``, ``picture()``.

        Notes
        -----
        Li, Li & Venkatasubramanian 2007.
        """
        return measures.t_closeness(*self._measured("t_closeness", on, generalize, person), sensitive, distance)

    @_with_keys
    def unique_rows(
        self,
        on: Columns,
        *,
        weights: Hashable | float | None = None,
        model: str = "negative_binomial",
        person: Columns | None = None,
        generalize: Mapping[Hashable, Any] | None = None,
    ) -> UniqueRows:
        """Curator only: sample uniques, the people who share their keys with nobody else in the table.

        Parameters
        ----------
        weights, model
            As for `k_map`: adds an estimate of how many of them are unique in the population.

        Returns
        -------
        UniqueRows
            ``unique``, ``share``, ``population_unique`` and its range; ``per_row()`` says of each row whether it is
            unique.
        """
        return measures.unique_rows(
            *self._measured("unique_rows", on, generalize, person), weights=weights, model=model
        )

    def suggest_generalization(
        self, on: Columns, k: int = 5, *, suppress: float = 0.0, person: Columns | None = None
    ) -> SuggestedGeneralization:
        """Curator only: generalisation of keys that reaches k-anonymity and loses least, with its steps in a table.

        Parameters
        ----------
        on : column or list of columns
            Key columns.
        k : int
            Least size of every class, 2 or more.
        suppress : float
            Share of people, such as 0.03, who may be left out instead: those whose classes stay too small.
        person : column or list of columns, optional
            Column of people's ids; by default that of the Dataset.

        Returns
        -------
        SuggestedGeneralization
            ``generalize``, fit for the option of that name; ``k``, ``classes``, ``suppressed``, ``loss``, and
            ``steps``, a DataFrame.

        Notes
        -----
        Numbers go into bins of 2, 5, 10, 20, 50, ...; timestamps into months, years and decades. Texts of one length
        lose letters; more and more rare values of other texts become "other". As a last step a column is replaced by a
        single value. Of all combinations of these steps that leave at most the share ``suppress`` in classes below k,
        the one with the least loss is taken (Iyengar 2002: the mean over keys and people of the share of a key's other
        values that a person's value is joined with). It was made from these data, so it reveals something about them.
        """
        return suggest.suggested(*self._measured("suggest_generalization", on, None, person), k, suppress)

    def output_rules(
        self,
        index: Hashable | None = None,
        columns: Hashable | None = None,
        *,
        values: Hashable | None = None,
        statistic: str = "count",
        rules: Any = True,
        person: Columns | None = None,
    ) -> CheckedTable:
        """Curator only: classical output rules for an exact table by two keys, with a verdict for each cell.

        Parameters
        ----------
        index, columns : column
            The keys that make the rows and the columns of the table.
        values : column, optional
            Column of numbers, needed by every statistic but a count. Rows without a value are left out.
        statistic : {"count", "sum", "mean", "min", "max"}
        rules : True or dict
            ``least_count`` (10), ``dominance`` ((2, 0.9)) and ``p_percent`` (10) in a dict; None switches a rule off.
        person : column or list of columns, optional
            Column of people's ids; by default that of the Dataset. A person's contributions to a cell are added up.

        Returns
        -------
        CheckedTable
            ``table``, ``people``, ``verdicts`` (pass, review, fail), ``reasons``; ``suppressed()``, ``rounded(base)``,
            ``controlled_rounding(base)``; ``record()`` and ``to_json()`` in the style of ACRO.

        Notes
        -----
        Rows are people, or those of people, and not the cells of a finished table: of one with counts ``n`` ask about
        ``cells.loc[cells.index.repeat(cells["n"])]``.

        Hundepool et al. 2012. The rules look at one table. They do not see what several tables reveal together, or a
        total with all cells but one. They are flags for a person who checks outputs, and no protection on their own.
        """
        if index is None or columns is None:
            raise ParameterError(
                'output_rules judges a table by two keys, of its rows and its columns: output_rules("region", "sex"). '
                "For one key, assign a column that is the same everywhere, and name it as the second."
            )
        table, wanted = self._measured("output_rules", [index, columns], None, person)
        return output_rules.crosstab_rules(
            table, index, columns, values=values, statistic=statistic, rules=rules, person=list(wanted.person) or None
        )
