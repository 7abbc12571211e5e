"""Reference pages that are made of the code when the site is built: Python names, options, and the command line.

``reference/options.md`` is written anew by each build. In ``reference/api.md`` a line ``::: name`` stands for what the
docstring of a public name says, and ``::: df.dprisk = class`` for the methods of a class by the name that users write.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import io
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from docutils import nodes

from pdrisk._answer.answers.described import Described
from pdrisk._cli import main
from pdrisk._pandas.requests.option_texts import OPTIONS_DOC
from pdrisk._pandas.requests.options import DEFAULTS


def options() -> str:
    """The options of all statistics, from the text that ``help`` shows, and what ``--help`` says of each command."""
    lines = ["# Which options and commands are there?", ""]
    lines += ["What every statistic takes, by name; `help(df.dprisk.mean)` says the same. Below: the command line.", ""]
    section = OPTIONS_DOC.split("Returns\n")[0].split("--\n", 1)[1]
    for name, told in re.findall(r"^(\S.*?)\n((?:    .*\n?|\n)+)", section, flags=re.MULTILINE):
        term, _, kind = name.partition(" : ")
        text = " ".join(told.split()).replace("``", "`")
        lines += [f"## {term}", "", *([f"*{kind}*", ""] if kind else []), text, ""]
    with mock.patch.dict("os.environ", {"COLUMNS": "80"}):
        for parser in parsers():
            lines += [f"## {parser.prog}", "", "```text", *parser.format_help().rstrip().splitlines(), "```", ""]
    return "\n".join(lines)


def parsers() -> Iterator[argparse.ArgumentParser]:
    """The command's parser, and that of each of its commands."""
    made: list[argparse.ArgumentParser] = []
    begun = argparse.ArgumentParser.__init__

    def noted(self: argparse.ArgumentParser, *args: Any, **given: Any) -> None:
        begun(self, *args, **given)
        made.append(self)

    with (
        mock.patch.object(argparse.ArgumentParser, "__init__", noted),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        main(["--version"])
    yield from made


def object_of(name: str) -> Any:
    """What a dotted name stands for."""
    module, _, rest = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(object_of(module), rest)


def methods(shown: str, kind: type, only: str = "") -> str:
    """Methods and properties of a class by the name that users write, such as ``df.dprisk.mean``."""
    module, _, name = shown.rpartition(".")
    stand_in = sys.modules.setdefault(module, types.ModuleType(module))
    users = getattr(stand_in, name, None) or type(name, (), {"__module__": module})
    setattr(stand_in, name, users)
    directives = []
    for member, value in vars(kind).items():
        wanted = member == only if only else not member.startswith("_")
        if wanted and (callable(value) or isinstance(value, property)):
            setattr(users, member, value)
            directives.append(f".. auto{'property' if isinstance(value, property) else 'method'}:: {shown}.{member}\n")
    return "\n".join(directives)


def directive(line: str) -> str:
    """The directive that a line ``::: name`` stands for."""
    shown, _, name = line.partition(" = ")
    name, _, only = name.partition(": ")
    value = object_of(name or shown)
    if name:
        body = methods(shown, value, only)
    elif inspect.ismodule(value):
        body = f".. automodule:: {shown}\n   :members:\n"
    elif inspect.isclass(value):
        body = f".. autoclass:: {shown}\n   :members:\n"
        if issubclass(value, Described):
            body += "   :inherited-members: Arithmetic\n"  # that is, of those before it
    elif callable(value):
        body = f".. autofunction:: {shown}\n"
    else:
        body = f".. autodata:: {shown}\n   :no-value:\n"
    return f"```{{eval-rst}}\n{body}\n```\n"


def write(app: Any) -> None:
    """Write the generated page, if it says something new."""
    page = Path(app.srcdir) / "reference" / "options.md"
    text = options()
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def read(app: Any, page: str, source: list[str]) -> None:
    """Put directives in the place of names."""
    if page == "reference/api":
        source[0] = re.sub(r"^::: (.+)\n", lambda line: directive(line[1]), source[0], flags=re.MULTILINE)


def without_options(app: Any, what: str, name: str, value: Any, settings: Any, lines: list[str]) -> None:
    """Leave out the texts that every statistic repeats for ``help``: their page has them."""
    text = "\n".join(lines)
    if "eps : float" in text:
        own = text.split("\nOther Parameters\n---", 1)[0]
        lines[:] = own.splitlines()


def short_signature(app: Any, what: str, name: str, value: Any, *rest: Any) -> tuple[str, str] | None:
    """Write ``**options`` for those that every statistic takes."""
    if "eps : float" not in (inspect.getdoc(value) or "") or not callable(value) or what == "class":
        return None
    signature = inspect.signature(value)
    own = [each for each in signature.parameters.values() if each.name not in {*DEFAULTS, "self"}]
    named = [each.replace(annotation=each.empty) for each in own if each.kind is not each.VAR_KEYWORD]
    written = str(inspect.Signature(named)).strip("()")
    return f"({written + ', ' if written else ''}**options)", ""


def readable_names(app: Any, domain: str, kind: str, content: Any) -> None:
    """Show ``Combined`` without the private module that it stands in, and ``df.dprisk.mean`` whole."""
    signature = content.parent[0]
    for part in signature.children:
        if type(part).__name__ == "desc_addname":
            text = part.astext()
            if "._" in text:
                part.clear()
            elif text == "dprisk.":
                part[0] = nodes.Text(f"{signature['module']}.dprisk.")


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write, priority=100)
    app.connect("source-read", read)
    app.connect("autodoc-process-signature", short_signature, priority=100)
    app.connect("autodoc-process-docstring", without_options, priority=100)
    app.connect("object-description-transform", readable_names)
    return {"version": "1", "parallel_read_safe": True}
