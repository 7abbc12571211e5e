"""What somebody reads of an error."""

import traceback


def everything_said(error: BaseException) -> str:
    """All that a caller can read of an exception, along its causes, contexts and notes, also where it is unpickled."""
    said = [str(error), repr(error), repr(error.args), *getattr(error, "__notes__", [])]
    said += traceback.TracebackException.from_exception(error).format_exception_only()
    for other in (error.__cause__, error.__context__):
        said += [] if other is None else [everything_said(other)]
    return "\n".join(said)
