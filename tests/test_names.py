"""Names: one class, one name; what Tab shows of pdrisk; what the first line of each module says."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import pdrisk

SOURCE = Path(__file__).parent.parent / "src" / "pdrisk"

pytestmark = pytest.mark.whole
TREES = {path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
MOST = 40  # public names: more than anybody reads in a list
QUESTIONS = {"what", "who", "whose", "which", "whom", "why", "how", "where", "when", "it", "they"}
# Whose first lines still begin with a question.
LATER = ("_answer", "_core", "_ledger", "engines", "identifiability")


def test_no_two_classes_have_one_name():
    """Whoever reads ``Plan`` in an error, a review or a search must find one class."""
    found = defaultdict(list)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{path}:{node.lineno}")
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


class TestPublicNames:
    """``pdrisk.<tab>`` lists what the reference lists."""

    def test_tab_shows_what_is_public_and_nothing_else(self):
        assert dir(pdrisk) == sorted(pdrisk.__all__)
        assert not [name for name in dir(pdrisk) if name.startswith("_")]

    def test_each_is_there(self):
        assert [name for name in pdrisk.__all__ if not hasattr(pdrisk, name)] == []

    def test_a_list_that_people_can_read(self):
        assert len(set(pdrisk.__all__)) == len(pdrisk.__all__) <= MOST


@pytest.mark.parametrize("path", TREES, ids=str)
class TestFirstLines:
    """The first line of a module's docstring names what the module holds."""

    def test_it_is_there(self, path):
        line = (ast.get_docstring(TREES[path]) or "").partition("\n")[0]
        assert len(line.split()) >= 2, "a name alone says nothing"
        assert line.endswith((".", ":")), "a whole sentence, on one line"

    def test_it_begins_with_a_noun(self, path):
        """A question word has its noun elsewhere: "Whose budget, and who asks." is a riddle."""
        first = (ast.get_docstring(TREES[path]) or "").split(maxsplit=1)[0].lower()
        assert first not in QUESTIONS or path.parts[0] in LATER
