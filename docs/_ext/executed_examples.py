"""Execution of a page's examples when the site is built: code without prompts, and below it what it really shows.

The examples of a page are the ones that pytest runs as doctests. Each page is executed twice: where the second run
shows something else, noise was drawn, and the output is marked as one draw. An example that fails stops the build.
"""

from __future__ import annotations

import contextlib
import doctest
import html
import io
import os
import re
import sys
import tempfile
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

BLOCK = re.compile(
    r"^(?P<indent> *)(?:```python\n(?P<code>.*?)^ *```$|<!--\n(?P<hidden>.*?)^ *-->$)\n?",
    flags=re.DOTALL | re.MULTILINE,
)
FOLDER = "_executed"  # of pictures, beside the pages
DRAW = "one draw: run it, and other noise gives other values"


@dataclass
class Output:
    """What one statement showed: text, HTML as in a notebook, or a picture."""

    kind: str
    content: str  # of a picture, the name of its file
    drawn: bytes = b""
    differs: bool = False  # between two runs


@dataclass
class Cell:
    """Statements up to one that shows something."""

    code: list[str]
    outputs: list[Output] = field(default_factory=list)


class Run:
    """One execution of a page: its statements share their names."""

    def __init__(self, page: str, pictures: Path | None) -> None:
        self.page, self.pictures = page, pictures
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.number = 0

    def block(self, text: str, *, hidden: bool) -> list[Cell]:
        """The cells of a block of examples; assertions that readers do not see are for pytest alone."""
        cells, before = [Cell([])], dict(self.names)
        for example in doctest.DocTestParser().get_examples(text):
            if hidden and example.source.startswith("assert "):
                continue
            cell = cells[-1]
            cell.code.append(re.sub(r"[ ]*# doctest: .*", "", example.source.rstrip("\n")))
            if example.options.get(doctest.SKIP):
                cell.outputs += [Output("text", example.want)] if example.want else []
            else:
                cell.outputs += self.statement(example)
            if cell.outputs:
                cells.append(Cell([]))
        bound = (value for name, value in self.names.items() if before.get(name) is not value)
        cells[-1].outputs += map(self.value, {id(each): each for each in bound if is_plot(each)}.values())
        cells[-1].outputs += self.figures()
        return [cell for cell in cells if cell.code or cell.outputs]

    def statement(self, example: doctest.Example) -> Iterator[Output]:
        """Execute one statement; text first, then its value, as in a notebook."""
        shown: list[Any] = []
        printed = io.StringIO()
        hook, sys.displayhook = sys.displayhook, shown.append
        try:
            with (
                contextlib.redirect_stdout(printed),
                contextlib.redirect_stderr(io.StringIO()),
                warnings.catch_warnings(record=True) as warned,
            ):
                warnings.simplefilter("always")
                exec(compile(example.source, f"<{self.page}>", "single"), self.names)
        except Exception as error:
            if example.exc_msg is None:
                where = f"{self.page}: {example.source}"
                raise ExtensionError(f"{where}\n{traceback.format_exc()}") from error
            printed.write("".join(traceback.format_exception_only(error)))
        else:
            if example.exc_msg is not None:
                raise ExtensionError(f"{self.page}: {example.source} did not fail, but its page says so")
        finally:
            sys.displayhook = hook
        own = [each for each in warned if each.category.__module__.startswith("pdrisk")]
        for warning in dict.fromkeys(f"{each.category.__name__}: {each.message}" for each in own):
            yield Output("warning", warning)
        if printed.getvalue().strip():
            yield Output("text", printed.getvalue())
        yield from (self.value(value) for value in shown if value is not None)

    def value(self, value: Any) -> Output:
        """A value as a notebook shows it."""
        if is_plot(value):
            return self.picture(value if hasattr(value, "savefig") else value.figure)
        rich = getattr(value, "_repr_html_", None)
        made = rich() if rich is not None and not isinstance(value, type) else None
        return Output("html", made) if made else Output("text", repr(value))

    def figures(self) -> Iterator[Output]:
        """Pictures that pyplot holds open, which are closed."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        for number in pyplot.get_fignums() if pyplot else ():
            yield self.picture(pyplot.figure(number))
            pyplot.close(number)

    def picture(self, figure: Any) -> Output:
        """A figure as a file."""
        self.number += 1
        name = f"{self.page.replace('/', '-')}-{self.number}.png"
        held = io.BytesIO()
        figure.savefig(held, dpi=150, bbox_inches="tight", facecolor="white", format="png")
        if self.pictures:
            self.pictures.mkdir(exist_ok=True)
            (self.pictures / name).write_bytes(held.getvalue())
        return Output("picture", name, held.getvalue())


def is_plot(value: Any) -> bool:
    """Whether it is a figure or axes that pyplot does not know."""
    return hasattr(value, "_repr_png_") and not isinstance(value, type)


def without_addresses(text: str) -> str:
    """Text without what differs from run to run, although no noise was drawn."""
    return re.sub(r"0x[0-9a-f]+|/tmp/\S+|#T_\w+|T_\w+", "", text)


def written(cell: Cell) -> str:
    """A cell as Markdown."""
    parts = []
    if cell.code:
        parts.append("```python\n" + "\n".join(cell.code) + "\n```\n")
    for output in cell.outputs:
        mark = f'<p class="draw-mark">{DRAW}</p>' if output.differs else ""
        content = output.content
        if output.kind == "picture":
            picture = f"```{{image}} /{FOLDER}/{content}\n:alt: Picture that this code draws\n:width: 640px\n```\n"
            parts.append(picture + (f"\n`````{{raw}} html\n{mark}\n`````\n" if mark else ""))
            continue
        if output.kind != "html":
            content = f"<pre>{html.escape(content.rstrip())}</pre>"
        kinds = f"output {output.kind}" + (" one-draw" if output.differs else "")
        inside = f'<div class="{kinds}"><div class="shown">{content}</div>{mark}</div>'
        parts.append("`````{raw} html\n" + re.sub(r"\n\s*\n", "\n", inside) + "\n`````\n")
    return "\n".join(parts) + "\n"


def mark_draws(first: list[Cell], second: list[Cell]) -> None:
    """Mark the outputs of the second run that the first one had otherwise, or not at all."""

    def shown(output: Output) -> tuple[str, bytes]:
        return without_addresses(output.content), output.drawn

    before, after = ([output for cell in cells for output in cell.outputs] for cells in (first, second))
    for at, output in enumerate(after):
        output.differs = len(before) != len(after) or shown(before[at]) != shown(output)


def executed(page: str, text: str, pictures: Path) -> str:
    """The page with the outputs of its examples."""
    blocks = [match for match in BLOCK.finditer(text) if ">>>" in match[0]]
    if text.count(">>> ") != sum(match[0].count(">>> ") for match in blocks):
        raise ExtensionError(f"{page}: an example stands outside of a block of ```python")
    runs = []
    before = Path.cwd()
    for target in (None, pictures):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                run = Run(page, target)
                runs.append(
                    [run.block(match["code"] or match["hidden"], hidden=match["code"] is None) for match in blocks]
                )
            finally:
                os.chdir(before)
    made, end = [], 0
    for match, first, second in zip(blocks, *runs, strict=True):
        mark_draws(first, second)
        shown = "".join(map(written, second)) if match["code"] else ""
        made += [text[end : match.start()], textwrap.indent(shown, match["indent"])]
        end = match.end()
    return "".join([*made, text[end:]])


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Execute the examples of a page of Markdown that has any."""
    if Path(app.env.doc2path(page)).suffix == ".md" and ">>> " in source[0]:
        source[0] = executed(page, source[0], Path(app.srcdir) / FOLDER)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("PDRISK_SECRET", "of the site, in the place of the file that pdrisk would make")
    app.connect("source-read", read)
    return {"version": "1", "parallel_read_safe": True}
