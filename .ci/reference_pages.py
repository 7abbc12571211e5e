"""Reference pages that are made of the code when the site is built: options of all statistics, and the command line.

A hook of mkdocs, named in mkdocs.yml.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import textwrap
from collections.abc import Iterator
from typing import Any
from unittest import mock

from pdrisk._cli import main
from pdrisk._pandas.requests.options import OPTIONS_DOC

WIDTH = 120


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to those of the folder."""
    from mkdocs.structure.files import File

    for name, page in PAGES.items():
        files.append(File.generated(config, f"reference/{name}", content=page()))
    return files


def options() -> str:
    """The options of all statistics, from the text that ``help`` shows."""
    lines = ["# Options", "", "What every statistic takes, by name; `help(df.dprisk.mean)` says the same.", ""]
    section = OPTIONS_DOC.split("Returns\n")[0].split("-------\n", 1)[1]
    for name, told in re.findall(r"^(\S.*?)\n((?:    .*\n?|\n)+)", section, flags=re.MULTILINE):
        term, _, kind = name.partition(" : ")
        text = " ".join(told.split()).replace("``", "`")
        lines += [f"## {term}", "", *([f"*{kind}*", ""] if kind else []), *textwrap.wrap(text, WIDTH), ""]
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


def command_line() -> str:
    """What ``--help`` says of each command."""
    lines = ["# Command line", "", "What `pdrisk --help` and `pdrisk COMMAND --help` say.", ""]
    with mock.patch.dict("os.environ", {"COLUMNS": "100"}):
        for parser in parsers():
            lines += [f"## {parser.prog}", "", "```text", *parser.format_help().rstrip().splitlines(), "```", ""]
    return "\n".join(lines)


PAGES = {"options.md": options, "cli.md": command_line}
