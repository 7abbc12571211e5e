"""Dataset: data with what holds for all questions about them: declarations, people, and the ledger that pays."""

from __future__ import annotations

import copy
import os
import secrets
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from pdrisk._core.foreign import own_errors, own_errors_of
from pdrisk._ledger import Identity, Ledger, check_curator, ledger_for, opened_ledger, secret
from pdrisk._ledger.rules.names import named
from pdrisk._model.declared.aliases import Bounds, Eps, Keys
from pdrisk._model.design import Design, checked_design
from pdrisk._model.rowwise import EXPRESSION, caller_names, is_of_polars, judged, judged_again
from pdrisk._pandas.requests.assigned import assigned
from pdrisk._pandas.requests.converted import PANDAS, checked_form, converted
from pdrisk._pandas.requests.declared import check_no_na_of_r, codes_of, declarations_of, declared, knowing
from pdrisk._pandas.requests.objects import advising, by_declarations
from pdrisk._printing import printable
from pdrisk._sql import answered
from pdrisk._sql.dataset.dataset_data import DatabaseTable, HeldData, held_table
from pdrisk._sql.dataset.dataset_tables import ONE_TABLE, check_one_or_other, public_tables, tables_given
from pdrisk._sql.dataset.joined_tables import JoinSide, Rowwise, joined_tables
from pdrisk._sql.dataset.people_by_table import declared_in, of_tables, people_given
from pdrisk._sql.select.select_people import PeopleAsked
from pdrisk.engines.columnar.streams import streams_read
from pdrisk.engines.columnar.table import column_table
from pdrisk.errors import ColumnTypeError, ParameterError


@own_errors_of
class Dataset(HeldData):
    """Dataset about people: the data, declarations for all questions, and the ledger that pays for answers.

    It has all statistics of ``df.dprisk``. It takes a frame as it is now: later changes to the frame are not seen.

    Parameters
    ----------
    data : DataFrame, ``(connection, "table")``, path, or tables for `sql` alone
        A frame of pandas, Polars (also a LazyFrame) or Arrow (a Table, a dataset of files, or any Arrow stream, which
        is read at once). Or a table or view of DuckDB or PostgreSQL, a Parquet file, a list of them, a folder or a
        pattern: these stay where they are, and an answer is a SELECT or two. For `sql` alone also a DuckDB relation,
        which is read at once, or a dict of several tables by name.
    name : str, optional
        Name of the data in the ledger; by default the name of the ledger's dataset. Needed if ``ledger`` is a path or
        URL.
    schema, bounds, keys, missing : optional
        As for ``df.dprisk.declare``. They are kept here; the frame stays as it is. With several tables, an entry of
        ``bounds``, ``keys`` or ``missing`` holds in each table that has such a column; a schema is declared for its own
        frame, with ``df.dprisk.declare(schema)``.
    person : column, list of columns, or dict by table, optional
        Column of people's ids: all rows of a person are protected together. With several columns, as in ``["pid",
        "day"]``, the unit is each combination of their values: a person's day. A ledger uses the ids to add up what
        each person lost: see `Ledger.odometer`.
    per_person : {"one", "mean", "sum", "min", "max", "count", "any", "all"}, optional
        How several rows of a person count in questions that say nothing else. ``"one"`` declares that each person has
        one row; if somebody has more, one of them is chosen by the row's own content and a secret. With several tables,
        a dict may declare ``"one"`` for some of them.
    constant : list of columns or dict by table, optional
        Columns with the same value in all rows of a person. If somebody has several values, one of them is chosen.
    unit_label : str, optional
        What texts about answers call one person, such as ``"household"``; without it they say the name of the column.
    design : Design, optional
        How a survey's sample was drawn. Unless asked with ``weights=False``, statistics take its weights; those that
        cannot (``corr``) are refused. In `sql` ``dp_weighted_mean(y)`` and its like take them, and ``AVG(y)`` does not.
    ledger : Ledger, path or URL, optional
        Existing ledger that pays for all answers. It remembers them: the same question gets the same answer again and
        costs nothing, unless it is asked with ``fresh=True``.
    version : str, optional
        The owner's name for the present state of the data. With it a ledger does not compare the content of data, and
        it also remembers answers about database files and Parquet files.
    public : list of names, or dict from name to table, optional
        Tables without any person in them, such as lists of codes, which `sql` may join with tables of people.
    links : dict by table, optional
        As for `pdrisk.sql`: tables whose rows belong to the person of the row they lead to, and need no ``person``.
    curator : bool, default False
        Default of ``curator=`` in all calls.
    as_ : {"pandas", "polars", "arrow"}
        Type of tables that answers come in, also from `sql`. In Polars and Arrow tables, levels of the index become
        columns.

    Raises
    ------
    ParameterError, ColumnTypeError
        If something does not fit the data or is not supported yet; the text says what to write instead.
    LedgerError
        If the ledger cannot be used.

    Examples
    --------
    >>> import tempfile, pandas as pd, pdrisk
    >>> df = pd.DataFrame({"pid": range(5), "distance": [3, 1, 10, 675, 17]})
    >>> ledger = pdrisk.Ledger(tempfile.mkdtemp() + "/budget.db", dataset="survey 2019", eps=1)
    >>> survey = pdrisk.Dataset(df, bounds={"distance": (1, 675)}, person="pid", per_person="one", ledger=ledger)
    >>> first, again = (survey.query("distance < 100").count(eps=0.5) for _ in range(2))
    >>> first.value == again.value, ledger.remaining().eps
    (True, 0.5)
    """

    _called = "a Dataset"

    @own_errors
    def __init__(
        self,
        data: Any,
        *,
        name: str | None = None,
        schema: Any = None,
        bounds: Mapping[Hashable, tuple[float, float]] | None = None,
        keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
        missing: Mapping[Hashable, Iterable[Hashable]] | None = None,
        person: str | int | Sequence[str | int] | None = None,
        per_person: str | None = None,
        constant: str | int | Sequence[str | int] | None = None,
        unit_label: str | None = None,
        design: Design | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        version: str | None = None,
        public: Any = None,
        links: Any = None,
        curator: bool = False,
        as_: str = PANDAS,
    ) -> None:
        if not isinstance(curator, bool):
            raise ColumnTypeError(f"curator must be True or False, not of type {type(curator).__name__}.")
        if version is not None and ledger is None:
            raise ParameterError("version= names the state of the data for a ledger: pass ledger= as well.")
        declarations = {"bounds": bounds, "keys": keys, "missing": missing}
        self._several = type(data) is dict
        tables = streams_read(data if self._several else {ONE_TABLE: data})
        given = tables_given(tables)
        columns = None if self._several else column_table(tables[ONE_TABLE])
        self._form = checked_form(as_)
        self._public, with_it = public_tables(public)
        check_one_or_other({**tables, **with_it}, self._public)
        of_public = tables_given(with_it) if with_it else None
        header = None if columns is None else columns.header
        given, of_public = declared_in(given, of_public, header, schema, declarations)
        for frame in given.frames.values():
            check_no_na_of_r(frame)
        if columns is not None and ONE_TABLE in given.said:
            columns = columns.declared(partial(knowing, known=given.said[ONE_TABLE]))
        is_by_table = len(tables) > 1 or any(isinstance(e, Mapping) for e in (person, per_person, constant))
        self._of_tables = None
        if links is not None or (self._several and is_by_table):
            self._of_tables = of_tables(given, self._public, person, per_person, constant, unit_label, links)
            people = self._of_tables.people
        else:
            header = None if columns is None else columns.header
            people = people_given(given, header, person, per_person, constant, unit_label)
        frames = given.frames
        if columns is not None and ledger is not None:
            columns = columns.remembered(by_version=version is not None)
            frames = {} if columns.kept is None else {ONE_TABLE: columns.kept}
        self._held = held_table(given, columns)
        self._given = given if of_public is None else given.and_public(of_public)
        self._ledger = opened_ledger(ledger, name)
        self._name = None if name is None else named("name", name)
        if self._ledger is not None:
            self._name = self._ledger.dataset
            if curator:
                check_curator(self._ledger, "curator=True")
        self._kept = self._assigned = None
        self._derived = ()
        self._defaults = {"curator": curator}
        self._declared_design = checked_design(design, lambda: self._frame)
        in_memory = {**self._given.frames, **self._given.held}
        self._identity: Identity = Identity(
            {} if self._ledger is None else frames,
            version,
            people.label,
            public=[in_memory[public_name] for public_name in with_it if public_name in in_memory],
            held={} if self._ledger is None else {n: e for n, e in self._given.held.items() if n not in with_it},
        )
        if self._ledger is not None:
            self._ledger.identify(self._identity)
        random_bytes = secrets.token_bytes(32)
        self._known_people = replace(
            people, secret=secret if self._ledger is not None else partial(bytes, random_bytes)
        )

    @property
    def _design(self) -> Design | None:
        weights = None if self._several or self._declared_design is not None else declarations_of(self._stored).weights
        return self._declared_design if weights is None else Design(weights)

    @property
    def name(self) -> str | None:
        """Name of the dataset in a ledger."""
        return self._name

    @property
    def ledger(self) -> Ledger | None:
        """Ledger that pays for all answers."""
        return self._ledger

    def __repr__(self) -> str:
        named = "without a name" if self._name is None else repr(self._name)
        kept = "" if self._kept is None else f", where {printable(str(self._kept.text))}"
        return f"Dataset {named}{kept}; {self._offers(without=('name', 'ledger'))}"

    def query(self, condition: Any) -> Dataset:
        """Filtered Dataset: the records that a row-wise condition selects, with the same people and the same ledger.

        Parameters
        ----------
        condition : str, pd.col or Polars expression
            As ``where`` of every statistic, which may filter further: records are kept where it is known to be true.
            Nothing is read before an answer is paid.

        Returns
        -------
        Dataset

        Raises
        ------
        ParameterError, UnknownColumnError, ColumnTypeError
            If the condition is not row-wise, or does not fit the data.
        """
        frame = by_declarations(self._frame, self._ledger)
        if not isinstance(condition, (str, EXPRESSION)) and not is_of_polars(condition, "Expr"):
            raise ColumnTypeError(
                "query takes a query string, a pd.col or a Polars expression, which are checked to be row-wise, not a "
                f"value of type {type(condition).__name__}. A mask or a function is where= of each answer."
            )
        with advising(frame):
            kept = judged(self._rows(condition), frame, caller_names, lambda column: declared(frame, column).keys)
        assert kept is not None  # a condition
        kept.check_codes(codes_of(frame, kept.columns))
        selected = copy.copy(self)
        selected._kept = kept
        return selected

    def assign(self, **columns: str) -> Dataset:
        """Dataset with columns that are computed row by row, with the same people and the same ledger.

        Parameters
        ----------
        **columns : str
            Arithmetic or a comparison, as in ``decade="birth // 10 * 10"``. A column may use those before it. The
            declarations of a column that is replaced no longer hold. Nothing is computed before an answer is paid.

        Returns
        -------
        Dataset

        Raises
        ------
        ParameterError, UnknownColumnError, ColumnTypeError
            If an expression is not row-wise, or does not fit the data.
        """
        extended = copy.copy(self)
        for name, expression in columns.items():
            people, taken = self._people, (*self._people.columns, *(self._kept.columns if self._kept else ()))
            frame = by_declarations(extended._frame, self._ledger)
            with advising(frame):
                extended._assigned, extended._derived = assigned(
                    frame, name, expression, extended._derived, taken, people.constant
                )
        return extended

    def join(self, other: Any, on: str | list[str] | None = None, how: str = "inner") -> Dataset:
        """Joined Dataset: with a public table, or with another Dataset of the same people. The same ledger pays.

        Parameters
        ----------
        other : Dataset or table
            A Dataset of the same people with the same ledger. Or any other data that a Dataset takes, such as a list of
            codes: then you declare that nobody is in it.
        on : str or list of str, optional
            The columns that must be equal in both tables. For two Datasets these are the columns of people's ids, and
            no others unless they are listed here.
        how : {"inner", "left"}
            ``"inner"`` leaves out rows without a match; ``"left"`` keeps them, with missing values.

        Returns
        -------
        Dataset
            With the columns of both, after what `query` and `assign` did to either. A person's rows in both tables are
            multiplied, where their numbers are known, as with ``per_person="one"``; for a public table it is counted
            how many of its rows match one. So many rows of a person count, unless a question says otherwise.

        Raises
        ------
        ParameterError, UnknownColumnError, ColumnTypeError
            If a row would combine several people's data, or the columns do not fit.

        Examples
        --------
        >>> import pandas as pd, pdrisk
        >>> stays = pd.DataFrame({"pid": [1, 1, 2] * 50, "code": ["a", "b", "a"] * 50})
        >>> codes = pd.DataFrame({"code": ["a", "b"], "chapter": ["I", "II"]})
        >>> joined = pdrisk.Dataset(stays, person="pid").join(codes, on="code")
        >>> joined.count(by="chapter", keys=["I", "II"], groups=2, eps=1).index.tolist()
        ['I', 'II']
        """
        second = JoinSide(tables_given({ONE_TABLE: other})) if not isinstance(other, Dataset) else other._side()
        joined = copy.copy(self)
        joined._given = tables = joined_tables(self._side(), second, on, how)
        joined._of_tables, joined._public, joined._identity = tables.of_tables, tables.public, tables.identity
        joined._known_people = tables.people(self._people)
        joined._held, joined._assigned, joined._kept = DatabaseTable(tables), None, None
        joined._derived = ()
        return joined._done_again(self)._done_again(other)

    def _done_again(self, side: Any) -> Dataset:
        """The joined Dataset with the filters and columns of both applied again."""
        if not isinstance(side, Dataset):
            return self
        joined = self.assign(**{column.name: column.text for column in side._derived})
        if side._kept is not None:
            kept = judged_again(side._kept, joined._frame, lambda name: declared(joined._frame, name).keys)
            joined._kept = kept if self._kept is None else self._kept.and_also(kept)
        return joined

    def _side(self) -> JoinSide:
        """This Dataset as one table of a join."""
        if self._several:
            raise ParameterError("a Dataset of several tables joins them in d.sql(...): write the JOIN there.")
        rowwise = Rowwise.of(self._kept, self._derived)
        return JoinSide(self._given, self._people, self._public, self._ledger, self._identity, rowwise)

    def sql(
        self,
        query: str,
        *,
        eps: Eps | None = None,
        success: float | None = None,
        bounds: Bounds | None = None,
        keys: Keys | None = None,
        delta: float | None = None,
        least_group: int | None = None,
        per_person: str | None = None,
        rows: int | None = None,
        groups: int | None = None,
        unit: str | None = None,
        constant: str | int | Sequence[str | int] | None = None,
        ledger: object = None,
        fresh: bool = False,
        params: Sequence[object] | Mapping[str, object] | None = None,
        mechanism: str = "auto",
        interval: bool = False,
        clip: str | None = None,
        curator: bool | None = None,
        risk_columns: bool = False,
        measured: bool = False,
        explain: bool = False,
        n: int | None = None,
    ) -> pd.DataFrame:
        """Noisy answers to a SELECT from the table ``data``, or from the tables of a dict by their names.

        The options are those of `pdrisk.sql`.

        Raises
        ------
        ParameterError
            If the query is not understood or not supported; the text says what to write instead. Nothing is read.
        QueryFailedError
            If reading the data fails; the eps stays paid.
        """
        if self._kept is not None or self._derived:
            raise ParameterError(
                "sql asks the whole Dataset as it is stored, without what query() and assign() made of it: write those "
                "into the SELECT."
            )
        people = PeopleAsked(None, per_person, rows, groups, unit, constant, known=self._known_people)
        if self._of_tables is not None:
            people = self._of_tables.asked(people)
        table: pd.DataFrame = self._shown(answered(
            query, self._given.sources(self._public), eps=eps, success=success, bounds=bounds, keys=keys, delta=delta,
            least_group=least_group, ledger=self._payer(ledger), fresh=fresh, params=params, mechanism=mechanism,
            interval=interval, clip=clip, risk_columns=risk_columns, measured=measured, people=people, explain=explain,
            n=n, dataset=self._identity, curator=self._defaults["curator"] if curator is None else curator,
            weights=lambda: None if self._design is None else self._design.weights,
        ))  # fmt: skip
        return table

    def _shown(self, answer: Any) -> Any:
        return converted(answer, self._form)

    def _payer(self, ledger: object) -> Ledger | None:
        payer = ledger_for(self._ledger if ledger is None else ledger)
        if payer is not None and self._name not in (None, payer.dataset):
            raise ParameterError(
                f"the ledger is that of dataset {payer.dataset!r}, not of {self._name!r}: the same people share one "
                "budget, and others do not pay for them."
            )
        if payer is not None:
            payer.identify(self._identity)
        return payer
