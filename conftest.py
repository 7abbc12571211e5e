"""Options of the tests: which run by default, how many examples hypothesis draws, on how many processes, and the bits
that noise is drawn from.
"""

import gc
import math
import os
import sys
import zlib
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from pdrisk._mechanisms.noise import entropy

collect_ignore_glob = ["docs/*.py", "docs/_ext/*.py", "docs/gallery/*.py"]  # those of the site, which Sphinx runs
os.environ.setdefault("PDRISK_SECRET", "of the tests, in the place of the file that pdrisk would make")
# Tests start many processes, and pytest rewrites each assertion: none of that is to be compiled anew each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Files of few tests that take long: the first, or one process works at them when the others are done.
LONG = (
    "test_audit.py",
    "test_conformance.py",
    "test_ledger_processes.py",
    "test_ledger_oracle.py",
    "test_cli_words.py",
)
MOST = 2  # parameters of one test that run by default, spread evenly over all of them
LENGTHY = 0.15  # seconds of a test, from which on it runs with --runslow only: see --time
LENGTHY_TESTS = Path(__file__).with_name("tests") / "lengthy.txt"

for name, examples in {"dev": 12, "ci": 24, "nightly": 2000}.items():
    settings.register_profile(name, max_examples=examples, deadline=None, derandomize=name != "nightly")


class Seeded:
    """Random bits in the place of the operating system's: each test has its own, and the same in every run.

    A test of noise that passed once passes until the code changes, and one that fails fails again. The few of where
    bits come from are marked ``system_entropy``.
    """

    def __init__(self) -> None:
        self.seed = 0
        self.of_system, self.of_numpy = entropy.urandom, np.random.default_rng
        self.start("")
        entropy.urandom, np.random.default_rng = self.urandom, self.default_rng
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.stop)  # or it would draw what its parent draws

    def start(self, name: str) -> None:
        """Draw from the test's own bits from here on."""
        self.bits: np.random.Generator | None = self.of_numpy(zlib.crc32(f"{self.seed} {name}".encode()))

    def stop(self) -> None:
        """Draw from the system's from here on."""
        self.bits = None

    def urandom(self, size: int) -> bytes:
        """As `os.urandom`."""
        return self.bits.bytes(size) if self.bits else self.of_system(size)

    def default_rng(self, seed: object = None) -> np.random.Generator:
        """As `numpy.random.default_rng`."""
        own = seed is None and self.bits
        return self.of_numpy(list(own.bytes(32)) if own else seed)


seeded = Seeded()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give the test its own bits."""
    name = f"tests/{item.path.name}::{item.nodeid.partition('::')[2]}"  # the same in whatever folder its file is
    seeded.stop() if item.get_closest_marker("system_entropy") else seeded.start(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--runslow``, ``--rest``, ``--time`` and ``--noise-seed``."""
    parser.addoption("--runslow", action="store_true", help="run all tests: the slow ones and whole cross products too")
    parser.addoption("--rest", action="store_true", help="run what only --runslow adds: other tests, or more examples")
    parser.addoption("--time", action="store_true", help=f"run all, and write those of {LENGTHY} s or more to a list")
    parser.addoption("--noise-seed", type=int, default=0, help="draw other noise: tests hold whatever is drawn")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and choose hypothesis' profile by ``--runslow`` or HYPOTHESIS_PROFILE."""
    for marker in (
        "slow: runs with --runslow only, or where it is named",
        "sampled(every): by default, only the first of the parameters and each one so many places after it",
        "whole: by default, all parameters, however many there are",
        "system_entropy: noise is drawn from the operating system's bits, other ones in each run",
    ):
        config.addinivalue_line("markers", marker)
    seeded.seed = config.getoption("noise_seed")
    if config.getoption("time") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Timed())
    profile = "ci" if config.getoption("runslow") or config.getoption("rest") else "dev"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", profile))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One process for tests of single files, where starting more takes longer than the tests."""
    return 0 if config.args_source is pytest.Config.ArgsSource.ARGS else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow, unless everything is asked for or a test is named; what takes long goes first."""
    items.sort(key=lambda item: item.path.name not in LONG)
    of_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    lengthy = (
        set(LENGTHY_TESTS.read_text(encoding="utf-8").split()) if of_all else set()
    )  # of files that are named, all
    files = {item.nodeid.partition("::")[0] for item in items}
    tests = {item.nodeid.partition("[")[0] for item in items}
    gone = [name for name in sorted(lengthy - tests) if name.partition("::")[0] in files]
    if gone and not config.getoption("time"):
        raise pytest.UsageError(f"tests/{LENGTHY_TESTS.name} names what is no test: {', '.join(gone)}")
    is_named = any("::" in argument for argument in config.args)
    if config.getoption("runslow") or config.getoption("time") or is_named:
        return
    rest = config.getoption("rest")
    kept, left, before = [], [], Counter()
    sizes = Counter(item.nodeid.partition("[")[0] for item in items)
    for item in items:
        function = item.nodeid.partition("[")[0]
        sampled = item.get_closest_marker("sampled")
        every = 1 if item.get_closest_marker("whole") else math.ceil(sizes[function] / MOST)
        every = max(every, sampled.args[0]) if sampled else every
        slow = function in lengthy or bool(item.get_closest_marker("slow") or before[function] % every)
        is_run = slow or hasattr(getattr(item, "obj", None), "hypothesis") if rest else not slow
        (kept if is_run else left).append(item)
        before[function] += 1
    items[:] = kept
    config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from walking through all the collected tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 50, 100)  # what a test leaves behind is little: look for it less often
        gc.enable()


class Timed:
    """How long each test took, with all its parts, in this process or in those that it started."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a part of a test: set-up, call or clean-up."""
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the list of tests of which one set of parameters took long; those marked slow need not be in it."""
        found = {test.partition("[")[0] for test, taken in self.seconds.items() if taken >= LENGTHY}
        LENGTHY_TESTS.write_text("\n".join(sorted(found)) + "\n", encoding="utf-8")
