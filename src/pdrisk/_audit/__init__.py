"""Audit: pdrisk tests itself on this machine, with the versions that are installed here."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

import numpy as np

from pdrisk._audit.black_box import black_box_checks
from pdrisk._audit.findings import SECTIONS, AuditReport, Check, versions
from pdrisk._audit.noise import noise_checks
from pdrisk._audit.replay_checks import replay_checks
from pdrisk._core.foreign import own_errors, shown
from pdrisk._model.arguments import checked_flag
from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.study.progress import progress_bar

__all__ = ["AuditReport", "Check", "audit"]

NOISE_DRAWS: Final = 40_000
ANSWERS: Final = 20_000  # about each of two neighbours
QUESTIONS: Final = {"accessor": 600, "sql": 120, "people": 200, "joins": 60}
PIECES: Final = 20  # into which the questions of a front end are parted, for the progress bar
DEEP: Final = {"noise": 25, "black box": 10, "replay": 100}  # times as much


@own_errors
def audit(
    *, deep: bool = False, seed: int | None = None, only: Collection[str] | None = None, progress: bool = True
) -> AuditReport:
    """Self-test of this installation: noise distributions, black-box privacy loss, record and replay.

    Nothing of your data is read: all tests are about invented records. It takes less than two minutes.

    - *noise*: the discrete Laplace distribution at several scales, by either sampler, is accepted as such and as that
      of no scale a tenth off; draws are independent; points are chosen with their exact weights; random bits are fair.
    - *black box*: the privacy loss that answers show about the most telling neighbours, for every statistic and
      mechanism, by the accessor and in SQL, is at most the eps that was asked for.
    - *replay*: random questions about random frames are asked of two neighbours in another order of rows, with the same
      noise frozen in both. Then the same draws must be asked for, the exact numbers under the noise be no farther apart
      than was declared, and nothing else differ in what is shown, warnings and errors included.

    Parameters
    ----------
    deep : bool
        Test 10 to 100 times as much, for an hour or more.
    seed : int, optional
        Of the random questions, to ask the same ones again; noise has no seed.
    only : list of {"noise", "black box", "replay"}, optional
        Which sections to run.
    progress : bool
        Show a bar on terminals and in notebooks.

    Returns
    -------
    AuditReport
        ``passed``, ``failures``, ``table``; ``save("audit.html")`` or ``.json`` files it.

    Notes
    -----
    Of sound software all checks of a run pass but for one run in millions: thresholds lie 7 standard deviations from
    what is claimed, and replay has no chance in it.
    """
    for name, value in (("deep", deep), ("progress", progress)):
        checked_flag(name, value)
    wanted = tuple(SECTIONS) if only is None else tuple(only)
    if unknown := [each for each in wanted if each not in SECTIONS]:
        raise ParameterError(f"there is no section {shown(unknown[0])}; there are {', '.join(SECTIONS)}.")
    own = _seed(seed)
    began, started = time.monotonic(), datetime.datetime.now(datetime.UTC)
    work = [check for section in wanted for check in _checks(section, own, deep)]
    checks = []
    with progress_bar(len(work), shown=progress, name="audit") as done:
        for check in work:
            checks.append(check())
            done(1)
    return AuditReport(
        tuple(checks), versions(), started.isoformat(timespec="seconds"), time.monotonic() - began, own, deep
    )


def _checks(section: str, seed: int, deep: bool) -> Iterator[Callable[[], Check]]:
    times = DEEP[section] if deep else 1
    if section == "noise":
        return noise_checks(NOISE_DRAWS * times)
    if section == "black box":
        return black_box_checks(ANSWERS * times)
    return replay_checks({front: many * times for front, many in QUESTIONS.items()}, PIECES * times, seed)


def _seed(seed: object) -> int:
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ColumnTypeError(f"seed is a whole number of 0 or more, not {shown(seed)}.")
    return int(seed)
