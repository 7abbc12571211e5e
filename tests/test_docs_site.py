"""The site of the documentation: every page has its place, and reference pages say all that the code has."""

import importlib.util
import re
from pathlib import Path

import pytest

import pdrisk
from pdrisk._pandas.accessor import FrameAccessor
from pdrisk._pandas.curators.hints import Hinting
from pdrisk._pandas.requests.options import DEFAULTS

ROOT = Path(__file__).parent.parent
PAGES = ROOT / ".ci" / "reference_pages.py"

pytestmark = pytest.mark.skipif(not PAGES.is_file(), reason="built from a clone of the repository")


@pytest.fixture(scope="module")
def pages():
    found = importlib.util.spec_from_file_location("reference_pages", PAGES)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return {name: page() for name, page in module.PAGES.items()}


class TestPlaces:
    """Each page stands in the nav once, as one of four kinds."""

    def test_every_page(self):
        nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
        placed = re.findall(r": (\S+\.md)$", nav, flags=re.MULTILINE)
        there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
        assert sorted(placed) == sorted(there | {"reference/options.md", "reference/cli.md"})
        assert re.findall(r"^  - (Tutorial|How-to|Reference|Explanation):", nav, flags=re.MULTILINE) == [
            "Tutorial", "How-to", "Reference", "Explanation",
        ]  # fmt: skip


class TestReference:
    """Public names, options and commands are all in it."""

    def test_public_names(self):
        page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
        told = set(re.findall(r"^::: pdrisk\.(\w+)", page, flags=re.MULTILINE))
        errors = set(pdrisk.errors.__all__)
        assert set(pdrisk.__all__) - errors <= told | {"datasets", "study"} and "errors" in told

    def test_methods_of_frames(self):
        page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
        kinds = [kind for kind in FrameAccessor.__mro__ if kind not in (Hinting, object)]
        told = set(re.findall(r"^::: (\S+)", page, flags=re.MULTILINE))
        assert {f"{kind.__module__}.{kind.__name__}" for kind in kinds} <= told

    def test_options(self, pages):
        heads = ", ".join(re.findall(r"^## (.*)$", pages["options.md"], flags=re.MULTILINE)).split(", ")
        assert set(DEFAULTS) - set(heads) == {"prior", "metric"}  # told with risk
        assert all(f"`{name}`" in pages["options.md"] for name in ("prior", "metric"))
        assert max(map(len, pages["options.md"].splitlines())) <= 120

    def test_commands(self, pages):
        heads = re.findall(r"^## (.*)$", pages["cli.md"], flags=re.MULTILINE)
        assert heads[:1] == ["pdrisk"] and {"pdrisk study", "pdrisk assess", "pdrisk ledger"} < set(heads)
        assert "--statistics" in pages["cli.md"] and pages["cli.md"].count("```text") == len(heads)


class TestProse:
    """Lines that can be read: at most 120 letters, but for addresses, tables and what programs print."""

    def test_width(self):
        wide = []
        for path in sorted((ROOT / "docs").rglob("*.md")):
            prose = re.sub(r" *```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            lines = (line for line in prose.splitlines() if len(line) > 120 and not line.lstrip().startswith("|"))
            wide += [f"{path.name}: {line[:60]}" for line in lines]
        assert wide == []
