"""Findings of an audit: what was tested, what was claimed and measured, and the report of all."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pandas as pd

from pdrisk._atomic_file import write_whole
from pdrisk._core.foreign import shown
from pdrisk.errors import ParameterError
from pdrisk.study.page import Page

PACKAGES: Final = ("pdrisk", "numpy", "pandas", "opendp", "duckdb", "pandera", "pyarrow", "tqdm")
NOT_COMPARED: Final = (
    'The noise was not compared with OpenDP\'s, which is not installed: pip install "pdrisk[opendp]", and audit again.'
)
SECTIONS: Final = {
    "noise": "Noise: the distributions that are drawn from, and the random bits below them",
    "black box": "Black box: the privacy loss seen in answers about the most telling neighbours, at eps as asked",
    "replay": "Record and replay: random questions about random neighbours, with the same noise frozen in both",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One test of an audit.

    Attributes
    ----------
    section : {"noise", "black box", "replay"}
    name : str
        What was tested.
    passed : bool
    claimed, measured : float or None
        In the unit of the test: a scale, a privacy loss in nats.
    tests : int
        Draws, or questions.
    finding : str
        What was found, if it failed.
    """

    section: str
    name: str
    passed: bool
    claimed: float | None
    measured: float | None
    tests: int
    finding: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport:
    """What an audit of this installation found.

    Attributes
    ----------
    checks : tuple of Check
    versions : dict of str to str
        Of Python, the machine, and the packages that answers depend on.
    started : str
        When, in UTC.
    seconds : float
    seed : int
        Of the random questions; noise has none.
    deep : bool
    """

    checks: tuple[Check, ...]
    versions: dict[str, str]
    started: str
    seconds: float
    seed: int
    deep: bool

    @property
    def passed(self) -> bool:
        """Whether all tests passed."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each test: ``section name verdict claimed measured tests finding``."""
        rows = [dataclasses.asdict(check) for check in self.checks]
        table = pd.DataFrame(rows, columns=[field.name for field in dataclasses.fields(Check)])
        table["passed"] = table["passed"].map({True: "pass", False: "fail"})
        return table.rename(columns={"passed": "verdict"})

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain values."""
        return {"verdict": self._verdict, **dataclasses.asdict(self)}

    def to_json(self) -> str:
        """The whole report as JSON, to be filed."""
        return json.dumps(self.to_dict(), indent=1)

    def to_html(self) -> str:
        """The whole report as a self-contained page, to be filed."""
        page = Page(f"pdrisk audit: {self._verdict}", self._said)
        known = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        page.text(f"Started {self.started}, {self.seconds:.0f} seconds, questions of seed {self.seed}.", known)
        if not self._is_compared:
            page.text(NOT_COMPARED)
        table = self.table
        for section, caption in SECTIONS.items():
            rows = table[table["section"] == section].drop(columns="section")
            if len(rows):
                page.heading(caption.partition(":")[0])
                page.table(rows, caption.partition(": ")[2])
        page.heading("What this does not show")
        page.text(
            "An audit looks for faults and finds none, or some: it does not prove that there are none. It tests the "
            "software on invented data, and neither your data, your bounds nor your word for them."
        )
        return page.html

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report; the ending ``.html`` or ``.json`` decides its form.

        Raises
        ------
        ParameterError
            For another ending.
        """
        target = Path(path)
        kinds = {".html": self.to_html, ".json": self.to_json}
        if target.suffix.lower() not in kinds:
            raise ParameterError(f"a report is saved as .html or .json, not as {shown(target.suffix)}.")
        text = kinds[target.suffix.lower()]()
        return write_whole(target, lambda part: part.write_text(text, encoding="utf-8"))

    @property
    def _verdict(self) -> str:
        return "passed" if self.passed else "failed"

    @property
    def _is_compared(self) -> bool:
        """Whether OpenDP's noise was drawn, too, if noise was checked at all."""
        names = [check.name for check in self.checks if check.section == "noise"]
        return not names or any("OpenDP" in name for name in names)

    @property
    def _said(self) -> str:
        if self.passed:
            return f"All {len(self.checks)} checks passed on this machine with these versions."
        return f"{len(self.failures)} of {len(self.checks)} checks failed: do not publish answers of this installation."

    def __repr__(self) -> str:
        lines = [f"pdrisk audit: {self._verdict}. {self._said}"]
        for section in SECTIONS:
            checks = [check for check in self.checks if check.section == section]
            if checks:
                tests = sum(check.tests for check in checks)
                good = sum(check.passed for check in checks)
                lines.append(f"  {section:<10} {good} of {len(checks)} checks passed, {tests:,} draws or questions")
        lines += [f"  FAILED {failure.section}, {failure.name}: {failure.finding}" for failure in self.failures]
        if not self._is_compared:
            lines.append(f"  {NOT_COMPARED}")
        lines.append(f"  {self.seconds:.0f} seconds, seed {self.seed}, pdrisk {self.versions.get('pdrisk', '?')}")
        return "\n".join(lines)


def versions() -> dict[str, str]:
    """Versions of the installed software that answers depend on."""
    installed = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed[name] = "not installed"
    return installed
