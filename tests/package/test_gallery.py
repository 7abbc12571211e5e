"""The gallery of the site: fifteen short scripts, each about one thing that it names, shows and draws.

The site's build runs them, and fails with them.
"""

import ast
import re

import pytest

from paths import DOCS

GALLERY = DOCS / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))
WORDS = 1_300  # of all scripts and the header together

pytestmark = pytest.mark.skipif(not GALLERY.is_dir(), reason="made of a clone of the repository")


def cells(script):
    """The docstring of a script, and the text and code of each cell."""
    source = script.read_text(encoding="utf-8")
    first, *others = source.split("\n# %%\n")
    title = ast.get_docstring(ast.parse(first))
    found = [("", first[first.rindex('"""') + 3 :])]
    for cell in others:
        lines = cell.splitlines()
        end = next(at for at, line in enumerate(lines) if not line.startswith("#"))
        found.append((" ".join(line.removeprefix("#").strip() for line in lines[:end]), "\n".join(lines[end:])))
    return title, found


class TestScripts:
    """A script has a title, says what is learned, and asks in few lines of code."""

    def test_there_are_fifteen(self):
        numbers = [int(script.name.split("_")[1]) for script in SCRIPTS]
        assert numbers == list(range(1, 16))
        assert (GALLERY / "GALLERY_HEADER.rst").is_file()

    @pytest.mark.whole
    @pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
    def test_form(self, script):
        compile(script.read_text(encoding="utf-8"), script, "exec")
        title, found = cells(script)
        heading, underline, _, *text = title.splitlines()
        assert underline == "=" * len(heading)
        assert heading.count(" ") <= 5
        assert not heading.endswith((".", "?"))
        assert "You learn" in " ".join(" ".join(text).split())
        assert 2 <= len(found) - 1 <= 4
        assert all(text for text, _ in found[1:])
        code = [line for _, part in found for line in part.splitlines() if line.strip()]
        assert 10 <= len(code) <= 30
        assert code[-1].strip() == "plt.show()"

    def test_words(self):
        header = (GALLERY / "GALLERY_HEADER.rst").read_text(encoding="utf-8")
        texts = [header]
        for script in SCRIPTS:
            title, found = cells(script)
            texts += [title, *(text for text, _ in found)]
        assert len(re.findall(r"\w[\w'.,%-]*", " ".join(texts))) <= WORDS
