"""Stack frame of whoever called pdrisk: for the variables a filter names, and for the line a warning points to."""

import sys
from types import FrameType

__all__ = ["caller"]


def caller() -> tuple[FrameType, int]:
    """The nearest frame outside the package, and how many levels above the caller of this function it is."""
    level, frame = 1, sys._getframe(1)
    while (f"{frame.f_globals.get('__name__')}.").startswith("pdrisk.") and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return frame, level
