"""Where the parts of the repository are."""

from pathlib import Path

__all__ = ["BENCHMARKS", "DOCS", "GOLDEN", "ROOT", "SOURCE", "SUPPORT", "TESTS"]

ROOT = Path(__file__).parents[2]
BENCHMARKS, DOCS, SOURCE, TESTS = ROOT / "benchmarks", ROOT / "docs", ROOT / "src" / "pdrisk", ROOT / "tests"
GOLDEN = TESTS / "golden"  # what must not change unnoticed
SUPPORT = TESTS / "support"  # modules that several folders import: on the path of every test
