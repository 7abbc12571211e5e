"""The page "From R": its R lines, and what becomes of NA on the way, by Rscript with reticulate."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paths import DOCS

PAGE = DOCS / "r.md"
#: Columns as R has them: each has 500 NA among 2,000.
TYPES = """
typed <- data.frame(
  double = c(38.5, NA, 20, 40), integer = c(38L, NA, 20L, 40L), logical = c(TRUE, NA, FALSE, TRUE),
  character = c("f", NA, "m", "m"), factor = factor(c("f", NA, "m", "m")),
  Date = as.Date(c("2020-01-01", NA, "2020-02-01", "2020-03-01")),
  POSIXct = as.POSIXct(c("2020-01-01 12:00", NA, "2020-02-01", "2020-03-01"), tz = "UTC")
)[rep(1:4, 500), ]
known <- function(name, data) {
  ask <- function() py_to_r(pdrisk$Dataset(data)$count(name, eps = 1)$curator$n)
  found <- tryCatch(as.character(ask()), error = function(e) gsub("\\n", " ", conditionMessage(e)))
  cat("KNOWN", name, found, "\\n")
}
"""
EACH = "for (name in names(typed)) known(name, {data})\n"


def blocks() -> list[str]:
    """The R blocks of the page, in their order."""
    return re.findall(r"```r\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(script: str, folder: Path) -> list[str]:
    """Lines that an R script prints, with this Python."""
    path = folder / "script.R"
    path.write_text(f"options(warn = 1, width = 200)\n{script}", encoding="utf-8")
    own = {"RETICULATE_PYTHON": sys.executable, "RETICULATE_USE_MANAGED_VENV": "no", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        ["Rscript", "--vanilla", str(path)],
        capture_output=True,
        text=True,
        env=os.environ | own,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def has(package: str) -> bool:
    """Whether R has a package that works with this Python."""
    if shutil.which("Rscript") is None:
        return False
    probe = f'if (!requireNamespace("{package}", quietly = TRUE)) quit(status = 1)'
    if package == "reticulate":  # older ones do not start newer Pythons
        probe += '\nreticulate::py_run_string("import pdrisk")'
    if package == "nanoarrow":
        probe += '\nlibrary(reticulate); if (!py_module_available("nanoarrow")) quit(status = 1)'
    own = {"RETICULATE_PYTHON": sys.executable, "RETICULATE_USE_MANAGED_VENV": "no"}
    found = subprocess.run(
        ["Rscript", "--vanilla", "-e", probe], capture_output=True, env=os.environ | own, check=False
    )
    return found.returncode == 0


@pytest.fixture(scope="module", autouse=True)
def _r():
    if not has("reticulate"):
        missing = "no R with a reticulate for this Python: apt-get install r-base-core r-cran-reticulate"
        if os.environ.get("PDRISK_NEEDS_R"):
            pytest.fail(missing)
        pytest.skip(missing)


@pytest.fixture(scope="module")
def by_type(tmp_path_factory) -> dict[str, dict[str, str]]:
    """How many values each type is found to have, as it is and by ``keep_na``; and the version of reticulate."""
    setup, keep = (next(each for each in blocks() if name in each) for name in ("import(", "keep_na <-"))
    keep = keep.partition("survey <-")[0]
    script = f"{setup}{keep}{TYPES}cat('VERSION', as.character(packageVersion('reticulate')), '\\n')\n"
    script += EACH.format(data="typed[name]") + "cat('KEPT\\n')\n" + EACH.format(data="keep_na(typed)[name]")
    lines = run(script, tmp_path_factory.mktemp("r"))
    version = next(line.split()[1] for line in lines if line.startswith("VERSION"))
    at, found = lines.index("KEPT"), {}
    for name, part in (("as it is", lines[:at]), ("kept", lines[at:])):
        found[name] = dict(line.split(maxsplit=2)[1:] for line in part if line.startswith("KNOWN"))
    return {**found, "version": {"reticulate": version}}


class TestMissing:
    """The table of the page says what becomes of NA."""

    def test_doubles_and_factors_keep_it(self, by_type):
        own = by_type["as it is"]
        assert own["double"].strip() == own["factor"].strip() == "1500"

    def test_whole_numbers_are_refused(self, by_type):
        assert "holds -2147483648, which is R's NA as a number" in by_type["as it is"]["integer"]

    def test_the_other_types(self, by_type):
        own, version = by_type["as it is"], tuple(map(int, by_type["version"]["reticulate"].split(".")[:2]))
        assert own["logical"].strip() == "2000"
        assert "is out of range" in own["Date"]
        if version < (1, 38):  # which cannot use numpy 2
            assert own["character"].strip() == "2000" and "NumPy" in own["POSIXct"]
        else:
            assert own["character"].strip() == own["POSIXct"].strip() == "1500"

    def test_kept_in_doubles_and_factors(self, by_type):
        assert {name: found.strip() for name, found in by_type["kept"].items()} == dict.fromkeys(
            ("double", "integer", "logical", "character", "factor", "Date", "POSIXct"), "1500"
        )

    def test_by_arrow(self, tmp_path):
        if not has("nanoarrow"):
            pytest.skip("no nanoarrow for R and Python")
        script = f"{blocks()[0]}library(nanoarrow)\n{TYPES}" + EACH.format(
            data="as_nanoarrow_array_stream(typed[name])"
        )
        lines = [line.split() for line in run(script, tmp_path) if line.startswith("KNOWN")]
        assert len(lines) == 7 and {line[2] for line in lines} == {"1500"}


class TestPage:
    """The R lines of the page run as they stand."""

    def test_lines(self, tmp_path):
        own = [each for each in blocks() if "library(nanoarrow)" not in each or has("nanoarrow")]
        check = (
            "\ncat('TABLE', names(as_frame(table)), '\\n')\nstopifnot(is.data.frame(as_frame(table)))\n"
            "stopifnot(nrow(as_frame(table)) == 2, abs(py_to_r(answer$value) - 39.33) < 1)\n"
            "bins <- as_frame(survey$hist('hours', bins = c(0, 20, 40, 80), eps = 1))\n"
            "stopifnot(bins$left == c(0, 20, 40))\n"
            "middle <- as_frame(survey$agg(dict(hours = c('mean', 'median')), eps = 1))\n"
            "stopifnot(is.numeric(middle$low), is.na(middle$low[2]))\n"
            "stopifnot(py_to_r(survey$count('sex', eps = 1)$curator$n) == 1500)\n"
        )
        lines = run("".join(own) + check, tmp_path)
        assert "TABLE sex value low high eps worst_case " in lines
        assert any(line.startswith("Imagine the hardest case") for line in lines)
        assert (tmp_path / "hours.png").read_bytes().startswith(b"\x89PNG")
