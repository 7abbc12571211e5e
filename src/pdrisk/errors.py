"""Exceptions and warnings of pdrisk.

Their texts hold declared things only, never a value, count or label from the data. Each exception keeps plain string
arguments, so it can be pickled, and also derives from the built-in exception that a pandas user would catch.
"""

from fractions import Fraction

from pdrisk._printing import printable

__all__ = [
    "BoundsNotFoundError",
    "BudgetExceededError",
    "ColumnTypeError",
    "DoubtfulReleaseWarning",
    "LedgerError",
    "NoisyReleaseWarning",
    "NotPublicError",
    "ParameterError",
    "PdriskError",
    "PolicyError",
    "QueryFailedError",
    "UnknownColumnError",
    "UnpaidReleaseWarning",
]


# One sentence for whatever happens on the data: even which part failed could tell of a record.
FAILED = (
    "the request failed while the data was read; it stays paid. "
    "Its cause is not shown because it could reveal a record."
)

TIMED_OUT = (
    "the request was ended by a time limit of the server, such as statement_timeout, while the data was read; it stays "
    "paid. Raise the limit for this role, or ask about fewer columns or groups at once."
)


class PdriskError(Exception):
    """Base class of all exceptions of pdrisk."""

    def __str__(self) -> str:
        # Names in it are the caller's or a file's, and a terminal must not obey them. Not super(): KeyError shows the
        # repr of its argument, which turns a sentence into a quoted one.
        return printable(Exception.__str__(self), keep="\n")


class ParameterError(PdriskError, ValueError):
    """Request that is wrong, as can be seen without reading the data."""

    lacks: str = ""  # what is missing, for an error that names all that is


class ColumnTypeError(ParameterError, TypeError):
    """Column, option or key of a type that cannot be used there."""


class UnknownColumnError(ParameterError, KeyError):
    """Name of a column that the frame does not have.

    Attributes
    ----------
    path : tuple of str
        Of a column in SQL: the name, after what stands before it.
    """

    path: tuple[str, ...] = ()


class QueryFailedError(PdriskError, RuntimeError):
    """Request that failed while the data was read. It stays paid, and hides its cause on purpose."""

    def __init__(self, message: str = FAILED) -> None:
        super().__init__(message)


class BoundsNotFoundError(PdriskError, RuntimeError):
    """Private search for bounds that found nothing but noise. It stays paid."""


class LedgerError(PdriskError, RuntimeError):
    """Ledger that cannot be read or written, or was damaged. Nothing was answered."""


class PolicyError(PdriskError, RuntimeError):
    """Request that the rules of a ledger do not allow. Nothing was paid, nothing was read."""


class BudgetExceededError(PdriskError, RuntimeError):
    """Request that goes over a limit of a ledger. Nothing was paid, nothing was read.

    Attributes
    ----------
    requested, remaining, missing : Fraction
        Amounts asked for, left, and lacking: eps in nats, delta, squares of mu, or numbers of queries.
    """

    def __init__(self, message: str, requested: Fraction, remaining: Fraction, missing: Fraction) -> None:
        super().__init__(message, requested, remaining, missing)
        self.requested, self.remaining, self.missing = requested, remaining, missing

    def __str__(self) -> str:
        return printable(str(self.args[0]), keep="\n")


class NotPublicError(PdriskError, ValueError):
    """Request for the public part of a result that may not be published."""


class DoubtfulReleaseWarning(UserWarning):
    """Warning of an eps that hardly hides anybody, or of bounds that nearly all values exceed."""


class NoisyReleaseWarning(UserWarning):
    """Warning of noise that is wider than the range in which the answer is known to lie, or that biases a sum."""


class UnpaidReleaseWarning(UserWarning):
    """Warning that no ledger pays for an answer, though a ``with`` block of one is open elsewhere in the process."""
