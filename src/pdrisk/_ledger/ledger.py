"""Ledger: the budget of one dataset, as people use it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO, TypeVar

import pandas as pd

from pdrisk._core.foreign import own_errors
from pdrisk._ledger.accounts import ambient
from pdrisk._ledger.accounts.audit import verify
from pdrisk._ledger.accounts.curator_facts import facts_table, people_table, who_by
from pdrisk._ledger.accounts.history import exported, listed, table_of, words, write
from pdrisk._ledger.accounts.remaining import Remaining, remaining_of
from pdrisk._ledger.accounts.replay import EVERYBODY, paid_in
from pdrisk._ledger.publishing.promise import doubts_of
from pdrisk._ledger.publishing.publishing import Publishing
from pdrisk._ledger.reserving import Reserving
from pdrisk._ledger.rules.limits import Limits, Spent
from pdrisk._ledger.rules.names import check_asker, named, names_of, user
from pdrisk._ledger.rules.policy import Policy
from pdrisk._ledger.rules.rules import Rules, each_given
from pdrisk._ledger.store.location import is_there, store_at
from pdrisk._ledger.store.secret import secret
from pdrisk._ledger.store.store import Head, Rows, decoded
from pdrisk._printing import preformatted
from pdrisk.errors import ColumnTypeError, ParameterError

Told = TypeVar("Told")


class Ledger(Publishing, Reserving):
    """Privacy budget of one dataset: its limits, its payments and an audit of every request.

    Parameters
    ----------
    where : path or URL
        A file, which is made if it does not exist, or a database of a PostgreSQL server, as in
        ``postgresql://user@host/database``. Many datasets may share it.
    dataset : str
        Name of the dataset: all data about the same people share one budget.
    eps, eps_per_day, eps_per_month, eps_per_query : float, optional
        Largest privacy loss, in nats: in total, in a calendar day or month (UTC), of one query.
    queries, queries_per_day, queries_per_month : int, optional
        Largest number of queries.
    risk : float, optional
        Highest worst-case risk of all releases together; another way to write ``eps``.
    delta : float, optional
        Largest sum of the ``delta`` of all answers with ``keys="private"``. Without it such answers are refused.
    success : float, optional
        How often the best attacker, who gives even odds, may be right about whether a person is in these data, by all
        answers together, however they are combined and whatever later questions have to do with earlier answers. With
        ``keys="private"`` delta comes on top.
    analyst : str, optional
        Name of the analyst; by default that of the operating system's user. Names that differ only in capitals or
        spaces are the same. On a PostgreSQL server the analyst is the role of the session: leave it out.
    each_analyst : dict, optional
        The same limits for each analyst alone, as in ``{"eps": 1, "queries_per_day": 20}``. Whoever enters the dataset,
        its owner, has none of her own; `amend` sets those of single analysts.
    policy : dict, optional
        Rules beside the budget. ``refuse_statistics`` and ``refuse_columns`` are lists of names. ``round_to`` is a dict
        from statistic to the base to which its answers are rounded. ``bounds_from_data`` and ``keys_from_data`` allow
        ``bounds="column"`` and ``keys="observed"``. ``least_group={"size": 20, "eps": 0.1}`` withholds answers about
        fewer people, as decided by a noisy number of them that costs eps. ``curator_facts`` lets the ledger keep what
        the answers meant. ``curators`` lists the analysts who may see what depends on the data, as in `facts` and
        `odometer`.
    head : (int, str), optional
        An earlier result of `verify`, kept elsewhere. A ledger that no longer holds this record is refused.

    Raises
    ------
    ParameterError
        If a new dataset gets no limit, or an existing one other limits than it has.
    LedgerError
        If the file cannot be used, or was put back to an earlier state than this process, or ``head``, knows of.

    Notes
    -----
    Every answer is paid for in one transaction before the data is read. Whatever fails later stays paid. Sums are
    exact. Limits are set when a dataset is entered; afterwards only `amend` changes them, and the audit shows it. A
    ledger itself knows no data. To have answers remembered, hand it to a `Dataset`.

    Examples
    --------
    >>> import tempfile, pandas as pd, pdrisk
    >>> ledger = pdrisk.Ledger(tempfile.mkdtemp() + "/budget.db", dataset="survey 2019", eps=1)
    >>> df = pd.DataFrame({"distance": [3, 1, 10, 675, 17]})
    >>> with ledger:
    ...     answer = df.dprisk.count(eps=0.1)
    >>> ledger.remaining().eps
    0.9
    """

    @own_errors
    def __init__(
        self,
        where: str | os.PathLike[str],
        *,
        dataset: str,
        eps: float | None = None,
        eps_per_day: float | None = None,
        eps_per_month: float | None = None,
        eps_per_query: float | None = None,
        queries: int | None = None,
        queries_per_day: int | None = None,
        queries_per_month: int | None = None,
        risk: float | None = None,
        delta: float | None = None,
        success: float | None = None,
        analyst: str | None = None,
        each_analyst: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
        head: Head | None = None,
    ) -> None:
        name, asker = named("dataset", dataset), named("analyst", user() if analyst is None else analyst)
        whole = Limits.given(
            {
                "eps": eps, "eps_per_day": eps_per_day, "eps_per_month": eps_per_month, "eps_per_query": eps_per_query,
                "queries": queries, "queries_per_day": queries_per_day, "queries_per_month": queries_per_month,
                "risk": risk, "delta": delta, "success": success,
            }
        )  # fmt: skip
        rules = Rules(
            whole,
            Limits() if each_analyst is None else each_given(each_analyst),
            Policy() if policy is None else Policy.given(policy),
        )
        if not rules.has_limits and not is_there(where):
            raise ParameterError(f"{name!r} would begin a new ledger: give it a limit, such as eps=1.")
        super().__init__(store_at(where, head=head), name, asker)  # now that nothing else is wrong: it makes the file
        check_asker(self._store, analyst)
        self._enter_dataset(rules, each_analyst is not None, policy is not None)

    @classmethod
    def datasets(cls, where: str | os.PathLike[str], *, head: Head | None = None) -> list[str]:
        """Names of the datasets in a ledger.

        Parameters
        ----------
        where : path or URL
            The ledger, as for `Ledger`.
        head : (int, str), optional
            As for `Ledger`.

        Returns
        -------
        list of str

        Raises
        ------
        LedgerError
            If there is no such ledger, or it does not hold the record that ``head`` names.
        """
        store = store_at(where, known=True, head=head)
        with store.reading() as ask:
            return names_of(ask, store.place)

    @property
    def limits(self) -> Limits:
        """Limits of the dataset for all analysts together."""
        with self._reading() as account:
            return account.rules().whole

    def __repr__(self) -> str:
        return f"{self._store.place}, dataset {self._dataset!r}, analyst {self.analyst!r}\n{self.remaining()!r}"

    def _repr_html_(self) -> str:
        return preformatted(repr(self))

    def __enter__(self) -> Ledger:
        ambient.enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        ambient.leave(self)

    def close(self) -> None:
        """Close the ledger's connections, of all threads; it cannot be used afterwards. What was paid stays paid.

        The end of a ``with ledger:`` block leaves the ledger open: the block says which ledger pays. To close it, too,
        write ``with contextlib.closing(pdrisk.Ledger(...)) as ledger:``. A ledger that nobody holds any more closes by
        itself.
        """
        self._store.close()

    # --- Looking --------------------------------------------------------------------------------------------------

    def remaining(self) -> Remaining:
        """Remaining budget of this analyst."""
        with self._reading() as account:
            rules, spent, paid = account.rules(), account.spent(), account.paid()[EVERYBODY][""]
            promises = account.largest("success"), account.largest("delta") or Fraction(0), account.largest("eps")
            doubts, is_of_people = doubts_of(account), account.person() is not None
        left = remaining_of(
            {EVERYBODY: rules.whole, account.analyst: rules.of_analyst(account.analyst)},
            spent,
            EVERYBODY,
            paid,
            promises,
        )
        late = 0 if left.success_limit is None else doubts[1]
        return replace(left, is_of_people=is_of_people, older=doubts[0], late=late)

    def history(self) -> pd.DataFrame:
        """Audit of this dataset: every request with its time, its analyst, its outcome and its cost.

        Returns
        -------
        DataFrame
            Indexed by ``seq``, with columns ``time analyst event asked eps delta mu total query bounds mechanism of
            reason publication``. ``asked`` is the eps that was asked for, ``eps`` the eps that was paid, ``total`` the
            eps paid so far. ``mu`` is what a budget in ``success`` pays: its squares add up. ``of`` is the number of
            the record that this one refers to, such as the payment of a query that failed, and ``publication`` that of
            the record that began the publication.
        """
        return self._told(table_of)

    def verify(self, head: Head | None = None) -> Head:
        """Check of the audit: no record was changed, inserted or removed, and the sums are those of the records.

        Parameters
        ----------
        head : (int, str), optional
            An earlier result of this method, kept elsewhere. With it the check also finds records cut off at the end,
            and a chain whose hashes were all computed anew.

        Returns
        -------
        (int, str)
            Number and hash of the last record. Note them down.

        Raises
        ------
        LedgerError
            If the check fails; the text says at which record.
        """
        return verify(self._store, head)

    def _told(self, tell: Callable[[Rows], Told]) -> Told:
        """A view of all records of this dataset."""
        with self._store.reading() as ask:
            rows = ask(
                "SELECT seq, time, analyst, event, eps, body FROM records WHERE dataset = ? ORDER BY seq",
                (self._dataset,),
            )
        return decoded(self._store.place, lambda: tell(rows))

    def export(self, path: str | os.PathLike[str] | TextIO) -> Path | None:
        """Export of the history, with every question as it was recorded.

        Parameters
        ----------
        path : path or open text file
            A CSV or JSON file, which is written whole or not at all. An open file gets CSV.

        Returns
        -------
        Path or None
            The file that was written; None for an open file.

        Raises
        ------
        ParameterError
            If the name ends in neither ``.csv`` nor ``.json``.
        """
        if not isinstance(path, str | os.PathLike):
            if not hasattr(path, "write"):
                raise ColumnTypeError(f"export writes to a path or an open file, not to {type(path).__name__}.")
            write(self._told(listed), self._dataset, path)
            return None
        if not _names_a_file(path):
            raise ParameterError("export cannot write to a path with NUL or half of a surrogate pair: name another.")
        if self._store.holds(Path(path)):
            raise ParameterError("export would overwrite the ledger itself: name another file.")
        return exported(self._told(listed), self._dataset, path)

    def amend(
        self,
        each_analyst: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
        analysts: Mapping[str, Any] | None = None,
        **limits: Any,
    ) -> None:
        """Change of limits and rules by the owner, from now on; the audit shows it. What is not named stays.

        Parameters
        ----------
        each_analyst, policy : dict, optional
            All limits of each analyst alone, and all rules: they replace the old ones.
        analysts : dict, optional
            Limits of single analysts, which hold in place of ``each_analyst``: an eps, a dict of limits, or None for
            none, as in ``{"ann": 2, "dpo": None}``. Who is not named keeps hers.
        **limits
            As for `Ledger`. None removes a limit; ``risk=None`` removes that of eps.
        """
        with self._writing() as account:
            account.amend(account.rules().amended(each_analyst, policy, analysts, limits))

    # --- The curator's --------------------------------------------------------------------------------------------

    def facts(self) -> pd.DataFrame:
        """Curator only: privacy loss that each paid answer meant for the most exposed person in these very data.

        The facts are kept if the policy says ``curator_facts``, for a Dataset with a declared ``person``. An answer
        without facts counts with its full eps.

        Returns
        -------
        DataFrame
            Indexed by ``seq``, with columns ``query eps loss known total two_worlds mu fixed_success local_sensitivity
            n``. ``loss``, in nats, is that of the most exposed group, added up over the releases of an answer.
            ``total`` adds up the answers, and ``two_worlds`` is the risk that this total means. ``mu`` is that between
            the data with and without that person, and ``fixed_success`` how often the best attacker would be right
            about them at most, had all eps so far been fixed beforehand.

        Raises
        ------
        PolicyError
            If the policy does not name you as a curator.
        """
        self.check_curator("facts()")
        with self._reading() as account:
            rows = account.facts()
        return decoded(
            self._store.place,
            lambda: facts_table([_fact_of(*row) for row in rows]),
        )

    def odometer(self, people: pd.DataFrame | Iterable[Hashable]) -> pd.DataFrame:
        """Curator only: privacy loss of each of these people, by all answers together.

        It is kept for a Dataset that declares the column of people's ids: ``Dataset(df, person="pid", per_person="one",
        ledger=ledger)``. Where pdrisk cannot tell whom an answer concerns (SQL, a frame without a Dataset, a filter
        that failed), everybody is charged the full eps.

        Parameters
        ----------
        people : DataFrame with that column, or list or Series of ids

        Returns
        -------
        DataFrame
            One row for each id, in the given order, indexed by id. ``loss``, in nats, is the sum of ``eps |f(D) - f(D -
            x)| / GS`` over all answers; ``two_worlds`` is the risk that it means, and ``fixed_success`` how often the
            best attacker would be right about this person at most, had all eps been fixed beforehand. NaN if the id is
            missing, or if no question was about data with this id.

        Raises
        ------
        PolicyError
            If the policy does not name you as a curator.
        """
        self.check_curator("odometer()")
        with self._reading() as account:
            column = account.person()
            paid, kept = account.paid()[EVERYBODY][""], account.odometer(who_by(column, secret()))
        return people_table(people, column, kept, paid, secret())

    def _enter_dataset(self, rules: Rules, each_given: bool, policy_given: bool) -> None:
        with self._reading() as account:
            known = account.is_known
        if not known:
            with self._writing() as account:
                known = account.is_known  # by somebody else, meanwhile
                if not known:
                    account.enter(rules)
        with self._reading() as account:
            account.check_same(rules, each_given, policy_given)
            self._analyst = account.analyst


def _fact_of(seq: int, body: str, eps: str, fact: str | None) -> tuple[int, str | None, Spent, str | None]:
    content = json.loads(body)
    return seq, words(content), paid_in(eps, content)[0], fact


def _names_a_file(path: str | os.PathLike[str]) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False
