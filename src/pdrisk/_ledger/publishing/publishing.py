"""Publishing: the methods of a ledger that group answers and say in public how they were made."""

from __future__ import annotations

from pdrisk._core.foreign import own_errors
from pdrisk._ledger.accounts.payer import Payer
from pdrisk._ledger.accounts.publication import Publication, withdraw
from pdrisk._ledger.publishing.methods_note import Statement, statement_of


class Publishing(Payer):
    """Ledger as whoever publishes uses it."""

    @own_errors
    def publication(self, name: str, *, purpose: str | None = None, supersedes: str | None = None) -> Publication:
        """Block whose answers are published together, as in ``with ledger.publication("Households 2026", ...):``.

        The ledger pays inside, as in a ``with ledger:`` block, and everything that it answers there, anew or from
        memory, belongs to the publication. A known name goes on with its publication.

        Parameters
        ----------
        name : str
            Unique in the dataset; names that differ only in capitals or blanks are one.
        purpose : str, optional
            What the numbers are for, in one line. A new publication needs it.
        supersedes : str, optional
            Name of the publication in whose place this one stands.

        Returns
        -------
        Publication

        Raises
        ------
        ParameterError
            On entering the block: if the publication was withdrawn or begun with something else, if a new one has no
            purpose, or if there is none that it could supersede.
        """
        return Publication(self, name, purpose, supersedes)

    @own_errors
    def withdraw(self, name: str, *, reason: str) -> None:
        """Withdrawal of a publication, which the audit and its statement show from now on.

        No budget comes back, and remembered answers stay: what was told is told. Nothing can be added to it any more.

        Parameters
        ----------
        name : str
        reason : str
            Why, in one line that may be read by everybody.

        Raises
        ------
        ParameterError
            If there is no such publication, or it was withdrawn before.
        """
        with self._writing() as account:
            withdraw(account, name, reason)

    @own_errors
    def statement(self, name: str) -> Statement:
        """Methods note of a publication: what was asked, how it was answered, and what it can reveal.

        Everything in it may be published: it comes from the recorded questions and rules, and from no data.

        Parameters
        ----------
        name : str

        Returns
        -------
        Statement
            Its ``text``, its ``html``, and with ``to_dict()`` the fields of the public registry of
            differential-privacy deployments, as far as the ledger knows them.

        Raises
        ------
        ParameterError
            If there is no such publication in this dataset, or nothing was asked in it.
        NotPublicError
            If an answer took its bounds from the data.
        """
        with self._reading() as account:
            return statement_of(account, name)
