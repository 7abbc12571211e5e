"""Imports point one way, and the core runs without pandas."""

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from paths import DOCS, SOURCE, TESTS

# A module imports from lower layers and from its own; the order is that of docs/architecture.md.
LAYERS = [
    {"errors", "_printing", "_digits", "_caller_frame", "_imported"},
    {"_core"},
    {"_mechanisms", "_guard", "_atomic_file", "_pictures", "datasets"},
    {"risk", "_model"},
    {"_relations"},
    {"engines"},
    {"_tables"},
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


PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE)
MOST_MODULES, MOST_LINES, MOST_OF_ONE_NAME = 22, 400, 2


def packages_imported() -> set[tuple[str, str]]:
    """Pairs of packages, of which the first imports the second; the modules beside the packages are none."""
    places = {".".join(("pdrisk", *path.relative_to(SOURCE).with_suffix("").parts)): path for path in imported()}
    places = {name.removesuffix(".__init__"): path.parent for name, path in places.items()}
    found = set()
    for path, modules in imported().items():
        names = {name.module or "" for name in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                 if isinstance(name, ast.ImportFrom)}  # fmt: skip
        for module in modules | names:
            if module in places and SOURCE not in (path.parent, places[module]) and places[module] != path.parent:
                pair = (path.parent.relative_to(SOURCE), places[module].relative_to(SOURCE))
                found.add((pair[0].as_posix(), pair[1].as_posix()))
    return found


class TestHouse:
    """A stranger finds a rule by the tree: folders of a few modules, whose names say one thing."""

    def test_packages_say_in_one_sentence_what_they_hold(self) -> None:
        page = (DOCS / "architecture.md").read_text(encoding="utf-8")
        said = {
            package.relative_to(SOURCE).as_posix(): (
                ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
            ).split("\n")[0]
            for package in PACKAGES
        }
        assert [name for name, sentence in said.items() if f"| `{name}` | {sentence} |" not in page] == []

    def test_folders_and_files_are_small(self) -> None:
        modules = Counter(path.parent for folder in (SOURCE, TESTS) for path in folder.rglob("*.py"))
        assert {folder for folder, count in modules.items() if count > MOST_MODULES} == set()
        long = [path for path in imported() if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES]
        assert long == []

    def test_a_name_says_one_thing(self) -> None:
        names = [path.stem for path in imported() if path.stem not in ("__init__", "__main__")]
        assert {name for name in names if names.count(name) > MOST_OF_ONE_NAME} == set()

    def test_no_two_packages_import_each_other(self) -> None:
        pairs = packages_imported()
        assert {tuple(sorted(pair)) for pair in pairs if pair[::-1] in pairs} == set()


class TestWhatImportingCosts:
    """``import pdrisk`` loads neither the noise library nor anything a user did not ask for."""

    def test_what_few_ask_for_waits_until_it_is_asked_for(self) -> None:
        """Heavy modules at the import, and own ones after an answer: one process, as each of them takes long."""
        code = (
            "import sys, pdrisk; print({'opendp', 'scipy', 'duckdb', 'pandera', 'polars'} & sys.modules.keys()); "
            "import pandas; pandas.DataFrame({'x': [1, 2]}).dprisk.mean('x', eps=1, bounds=(0, 4)); "
            "late = ('study', 'attack', '_audit', '_sql', '_functions', 'dataset', '_polars_namespace', 'engines.sql', "
            "'_disclosure', 'identifiability', 'risk'); "
            "print([name for name in late if f'pdrisk.{name}' in sys.modules]); "
            "print([name for name in pdrisk.__all__ if not hasattr(pdrisk, name)], pdrisk.study.run.__name__, "
            "pdrisk.sql.__name__, pdrisk.Dataset.__name__, hasattr(pdrisk, 'sqll'))"
        )
        call = [sys.executable, "-W", "ignore", "-c", code]
        result = subprocess.run(call, capture_output=True, text=True, check=True)
        assert result.stdout.splitlines() == ["set()", "[]", "[] run sql Dataset False"]
