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

    It reads none of your data: all tests are about invented records. It takes less than two minutes.

    - *noise*: the draws of the discrete Laplace distribution, at several scales and by both samplers, fit that
      distribution, and fit no scale a tenth larger or smaller. Draws are independent, points are chosen with their
      exact weights, and random bits are fair.
    - *black box*: for every statistic and mechanism, by the accessor and in SQL, the privacy loss that answers about
      the most telling neighbours show is at most the eps that was asked for.
    - *replay*: random questions about random frames are asked of two neighbours whose rows stand in another order, with
      the same noise frozen in both. Both must ask for the same draws, their exact numbers under the noise may differ by
      no more than was declared, and nothing else may differ in what is shown, warnings and errors included.

    Parameters
    ----------
    deep : bool
        Test 10 to 100 times as much, for an hour or more.
    seed : int, optional
        Seed of the random questions, to ask the same ones again. Noise has no seed.
    only : list of {"noise", "black box", "replay"}, optional
        Sections to run; by default all.
    progress : bool
        Show a bar on terminals and in notebooks.

    Returns
    -------
    AuditReport
        ``passed``, ``failures``, ``table``; ``save("audit.html")`` or ``.json`` writes it to a file.

    Notes
    -----
    For correct software, one run in millions has a check that fails by chance: thresholds lie 7 standard deviations
    from what is claimed, and replay does not depend on chance.
    """
    for name, value in (("deep", deep), ("progress", progress)):
        checked_flag(name, value)
    wanted = tuple(SECTIONS) if only is None else tuple(only)
    if unknown := [section for section in wanted if section not in SECTIONS]:
        raise ParameterError(f"unknown section {shown(unknown[0])}; available: {', '.join(SECTIONS)}.")
    used_seed = _seed(seed)
    began, started = time.monotonic(), datetime.datetime.now(datetime.UTC)
    work = [check for section in wanted for check in _checks(section, used_seed, deep)]
    checks = []
    with progress_bar(len(work), shown=progress, name="audit") as done:
        for check in work:
            checks.append(check())
            done(1)
    return AuditReport(
        tuple(checks), versions(), started.isoformat(timespec="seconds"), time.monotonic() - began, used_seed, deep
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
