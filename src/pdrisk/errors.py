"""Every exception and warning of pdrisk.

All of them speak of declared things only: no value, count or label of the data. They keep plain string
arguments, so they survive pickling, and also derive from the built-in a pandas user would catch.
"""

__all__ = [
    "BoundsNotFoundError",
    "ColumnTypeError",
    "NoisyReleaseWarning",
    "NotPublicError",
    "ParameterError",
    "PdriskError",
    "QueryFailedError",
    "UnknownColumnError",
]


# One sentence for whatever happens on the data: even which part failed could tell of a record.
FAILED = (
    "the request failed while the data was read; it stays paid. "
    "Its cause is not shown because it could reveal a record."
)


class PdriskError(Exception):
    """Base of everything pdrisk raises on purpose."""


class ParameterError(PdriskError, ValueError):
    """A request that can be seen to be wrong without looking at the data."""


class ColumnTypeError(ParameterError, TypeError):
    """A column, option or key of a kind that cannot be used there."""


class UnknownColumnError(ParameterError, KeyError):
    """A column name the frame does not have."""

    # KeyError shows the repr of its argument, which turns a sentence into a quoted one.
    __str__ = Exception.__str__


class QueryFailedError(PdriskError, RuntimeError):
    """A request that failed while the data was read. It stays paid, and it hides its cause on purpose."""

    def __init__(self, message: str = FAILED) -> None:
        super().__init__(message)


class BoundsNotFoundError(PdriskError, RuntimeError):
    """A private search for bounds that found nothing but noise. It stays paid."""


class NotPublicError(PdriskError, ValueError):
    """A result that holds nothing publishable was asked for its public part."""


class NoisyReleaseWarning(UserWarning):
    """The noise is wider than the range the answer is known to lie in."""
