"""Every exception and warning of pdrisk.

All of them speak of declared things only: no value, count or label of the data. They keep plain string
arguments, so they survive pickling, and also derive from the built-in a pandas user would catch.
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


class PdriskError(Exception):
    """Base of everything pdrisk raises on purpose."""

    def __str__(self) -> str:
        # Names in it are the caller's or a file's, and a terminal must not obey them. Not super(): KeyError shows the
        # repr of its argument, which turns a sentence into a quoted one.
        return printable(Exception.__str__(self), keep="\n")


class ParameterError(PdriskError, ValueError):
    """A request that can be seen to be wrong without looking at the data."""

    lacks: str = ""  # what is missing, for an error that names all that is


class ColumnTypeError(ParameterError, TypeError):
    """A column, option or key of a kind that cannot be used there."""


class UnknownColumnError(ParameterError, KeyError):
    """A column name the frame does not have."""


class QueryFailedError(PdriskError, RuntimeError):
    """A request that failed while the data was read. It stays paid, and it hides its cause on purpose."""

    def __init__(self, message: str = FAILED) -> None:
        super().__init__(message)


class BoundsNotFoundError(PdriskError, RuntimeError):
    """A private search for bounds that found nothing but noise. It stays paid."""


class LedgerError(PdriskError, RuntimeError):
    """A ledger that cannot be read or written, or is not whole. Nothing was answered."""


class PolicyError(PdriskError, RuntimeError):
    """A request that the rules of a ledger do not allow. Nothing was paid, nothing read."""


class BudgetExceededError(PdriskError, RuntimeError):
    """A request that goes over a limit. Nothing was paid, nothing read.

    Attributes
    ----------
    requested, remaining, missing : Fraction
        Of eps, or of a number of queries.
    """

    def __init__(self, message: str, requested: Fraction, remaining: Fraction, missing: Fraction) -> None:
        super().__init__(message, requested, remaining, missing)
        self.requested, self.remaining, self.missing = requested, remaining, missing

    def __str__(self) -> str:
        return printable(str(self.args[0]), keep="\n")


class NotPublicError(PdriskError, ValueError):
    """A result that holds nothing publishable was asked for its public part."""


class DoubtfulReleaseWarning(UserWarning):
    """An eps that hardly hides anybody, or bounds that nearly all values lie beyond."""


class NoisyReleaseWarning(UserWarning):
    """The noise is wider than the range the answer is known to lie in."""


class UnpaidReleaseWarning(UserWarning):
    """No ledger pays for an answer, though a ``with`` block of one is open elsewhere in the process."""
