"""Names: one class, one name; what Tab shows of pdrisk; what the first line of each module says."""

import re
from collections import defaultdict
from functools import cache

import pdrisk
from paths import SOURCE

MOST = 50  # public names: more than anybody reads in a list
QUESTIONS = {"what", "who", "whose", "which", "whom", "why", "how", "where", "when", "it", "they"}


@cache
def modules():
    """The text of every module, by its path."""
    return {path.relative_to(SOURCE): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


@cache
def first_lines():
    """The first line of every module's docstring."""
    firsts = {path: text.partition("\n")[0] for path, text in modules().items()}
    return {path: line[3:].removesuffix('"""') if line.startswith('"""') else "" for path, line in firsts.items()}


def test_no_two_classes_have_one_name():
    """Whoever reads ``Plan`` in an error, a review or a search must find one class."""
    found = defaultdict(list)
    for path, text in modules().items():
        for name in re.findall(r"^ *class (\w+)[(:]", text, flags=re.MULTILINE):
            found[name].append(str(path))
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


class TestFirstLines:
    """The first line of a module's docstring names what the module holds."""

    def test_it_is_there(self):
        """A whole sentence, on one line; a name alone says nothing."""
        lines = first_lines().items()
        assert [path for path, line in lines if len(line.split()) < 2 or not line.endswith((".", ":"))] == []

    def test_it_begins_with_a_noun(self):
        """A question word has its noun elsewhere: "Whose budget, and who asks." is a riddle."""
        firsts = {path: line.split(maxsplit=1)[0].lower() for path, line in first_lines().items()}
        assert [path for path, word in firsts.items() if word in QUESTIONS] == []
