"""Imports point one way, and the core runs without pandas."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "pdrisk"

# A module imports from lower layers and from its own; the order is that of docs/architecture.md.
LAYERS = [
    {"errors", "_printing", "_digits", "_caller_frame", "_imported"},
    {"_core"},
    {"_mechanisms", "_guard", "_atomic_file", "datasets"},
    {"risk", "_model"},
    {"_relations"},
    {"engines"},
    {"_ledger"},
    {"_answer", "attack"},
    {"_pandas", "_disclosure", "identifiability"},
    {"_sql", "_functions"},
    {"dataset"},
    {"_polars_namespace"},
    {"study", "_audit"},
    {"__init__"},
    {"_cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported_modules(path: Path) -> set[str]:
    """Every module a file imports by name, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "pdrisk":
                found |= {f"pdrisk.{alias.name}" for alias in node.names}
            else:
                found.add(node.module or "")
    return found


@cache
def imported() -> dict[Path, set[str]]:
    """What each module imports."""
    return {path: imported_modules(path) for path in sorted(SOURCE.rglob("*.py"))}


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


class TestLayers:
    """Nothing imports from a layer above its own."""

    def test_every_module_has_a_layer(self) -> None:
        assert [path for path in imported() if layer_of(path) not in LEVEL] == []

    def test_imports_point_down(self) -> None:
        upward = [
            f"{path.relative_to(SOURCE)} imports {module}"
            for path, modules in imported().items()
            for module in modules
            if module.startswith("pdrisk.")
            and LEVEL.get(module.split(".")[1], LEVEL["__init__"]) > LEVEL[layer_of(path)]
        ]
        assert upward == []

    def test_the_core_needs_numpy_only(self) -> None:
        foreign = [
            f"{path.relative_to(SOURCE)} imports {module}"
            for path, modules in imported().items()
            for module in modules
            if layer_of(path) == "_core"
            and module.split(".")[0] not in sys.stdlib_module_names | {"numpy"}
            and not module.startswith(("pdrisk._core", "pdrisk.errors"))
        ]
        assert foreign == []


class TestWords:
    """A sentence for people stands in one file: two would drift apart."""

    def test_a_long_text_stands_in_one_file(self) -> None:
        files: dict[str, set[str]] = {}
        for path in sorted(SOURCE.rglob("*.py")):
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            for node in nodes:
                said = node.value if isinstance(node, ast.Constant) and id(node) not in docstrings else None
                if isinstance(said, str) and len(said) > 60:
                    files.setdefault(said, set()).add(f"{path.relative_to(SOURCE)}")
        assert {text: where for text, where in files.items() if len(where) > 1} == {}


class TestWhatImportingCosts:
    """``import pdrisk`` loads neither the noise library nor anything a user did not ask for."""

    def test_what_few_ask_for_waits_until_it_is_asked_for(self) -> None:
        """Heavy modules at the import, and own ones after an answer: one process, as each of them takes long."""
        code = (
            "import sys, pdrisk; print({'opendp', 'scipy', 'duckdb', 'pandera', 'polars'} & sys.modules.keys()); "
            "import pandas; pandas.DataFrame({'x': [1, 2]}).dprisk.mean('x', eps=1, bounds=(0, 4)); "
            "late = ('study', 'attack', '_audit', '_sql', '_functions', 'dataset', '_polars_namespace'); "
            "print([name for name in late if f'pdrisk.{name}' in sys.modules]); "
            "print([name for name in pdrisk.__all__ if not hasattr(pdrisk, name)], pdrisk.study.run.__name__, "
            "pdrisk.sql.__name__, pdrisk.Dataset.__name__, hasattr(pdrisk, 'sqll'))"
        )
        call = [sys.executable, "-W", "ignore", "-c", code]
        result = subprocess.run(call, capture_output=True, text=True, check=True)
        assert result.stdout.splitlines() == ["set()", "[]", "[] run sql Dataset False"]
