"""Progress bar on terminals and in notebooks, for work that takes longer than a second."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds before anything is shown


@contextmanager
def progress_bar(total: int, *, shown: bool = True, name: str = "study") -> Iterator[Callable[[int], object]]:
    """Progress bar that is removed at the end; nothing if stderr is neither a terminal nor a notebook's.

    ``total``: size of the work, in any unit.
    ``shown``: False: never draw.
    ``name``: what stands before it.
    Returns: tells that so much more is done; any thread may call it.
    """
    if not (shown and _visible()):
        yield lambda _: None
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # without ipywidgets, a notebook shows a line of text
        from tqdm.auto import tqdm
    form = "{desc}: {percentage:3.0f} %|{bar}| about {remaining} left"
    # miniters: every report looks at the clock. tqdm would guess how many to pass over, but pieces differ in size.
    with tqdm(total=total, desc=name, bar_format=form, delay=PATIENCE, leave=False, miniters=1) as bar:
        yield bar.update


def _visible() -> bool:
    """Whether somebody sees what is redrawn on stderr: on a terminal, or below a notebook's cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", bool)()
    return "IPKernelApp" in getattr(shell, "config", ()) or (sys.stderr is not None and sys.stderr.isatty())
