"""Stack frame of the code that called pdrisk: for the variables that a filter names, and for the line of a warning."""

import sys
from types import FrameType


def caller() -> tuple[FrameType, int]:
    """The nearest frame outside the package, and its number of levels above the caller of this function."""
    level, frame = 1, sys._getframe(1)
    while (f"{frame.f_globals.get('__name__')}.").startswith("pdrisk.") and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return frame, level
