"""The site of the documentation: every page has its place and one question, and the reference says all the code has."""

import ast
import html
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

import pdrisk
from paths import DOCS, ROOT
from pdrisk._pandas.accessor import FrameAccessor
from pdrisk._pandas.curators.hints import Hinting
from pdrisk._pandas.requests.options import DEFAULTS

MADE = {"examples/index", "reference/options"}  # by the build
UNLISTED = {"architecture"}  # for those who change the code: linked from CONTRIBUTING.md, found by the search
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(not (DOCS / "conf.py").is_file(), reason="built from a clone of the repository")


def pages():
    return {path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}


def written():
    """The pages that stand in the repository, not those that a build leaves there."""
    made = ("reference/options", "examples/", "gallery/", "_build/")
    return {name: text for name, text in pages().items() if not name.startswith(made)}


def extension(name):
    """A module of the site's, which needs Sphinx only where it is used."""
    pytest.importorskip("docutils")
    pytest.importorskip("sphinx")
    found = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


class TestPlaces:
    """Each page stands in the navigation once, which has at most 30 entries, and answers one question."""

    def navigation(self):
        tree = ast.parse((DOCS / "conf.py").read_text(encoding="utf-8"))
        named = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
        return ast.literal_eval(named["NAVIGATION"])

    def test_every_page(self):
        placed = [page for pages in self.navigation().values() for page in pages]
        assert sorted({*placed, *UNLISTED}) == sorted({*written(), *MADE})
        assert len(placed) == len(set(placed)) <= 30

    def test_one_question(self):
        titles = {name: re.findall(r"^# (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)
                  for name, text in written().items() if name not in UNLISTED | {"index"}}  # fmt: skip
        assert {name: found for name, found in titles.items() if len(found) != 1 or not found[0].endswith("?")} == {}

    def test_links(self):
        """Links between pages lead to pages, and to headings that are there."""
        texts, lost = written(), []
        for name, text in texts.items():
            prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
            for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose):
                path, _, anchor = target.partition("#")
                there = (DOCS / f"{name}.md").parent / path if path else DOCS / f"{name}.md"
                page = there.resolve().relative_to(DOCS.resolve()).with_suffix("").as_posix() if path else name
                if page in MADE or there.suffix != ".md":
                    continue
                if page not in texts or (anchor and anchor not in {slug(head) for head in headings(texts[page])}):
                    lost.append(f"{name}: {target}")
        assert lost == []


def headings(text):
    return re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)


def slug(heading):
    """GitHub's anchor of a heading, which MyST makes, too."""
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


class TestLength:
    """Prose that one can read: at most 45,000 words in all, as the README's and the pages' together."""

    def test_words(self):
        words = sum(len(re.findall(r"[A-Za-z][A-Za-z'-]*", prose(text))) for text in written().values())
        words += len(re.findall(r"[A-Za-z][A-Za-z'-]*", prose((ROOT / "README.md").read_text(encoding="utf-8"))))
        assert words <= 45_000

    def test_width(self):
        """Lines of at most 120 letters, but for addresses, tables and what programs print."""
        wide = []
        for name, text in written().items():
            lines = re.sub(r" *```.*?```", "", text, flags=re.DOTALL).splitlines()
            wide += [f"{name}: {line[:60]}" for line in lines if len(line) > 120 and not line.lstrip().startswith("|")]
        assert wide == []


def prose(text):
    """Text without code, tables, addresses and comments."""
    text = re.sub(r"^ *```.*?^ *```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("|") and not line.startswith("    "))
    return re.sub(r"`[^`]*`|\]\([^)]*\)", " ", "\n".join(lines))


class TestReference:
    """Public names, options and commands are all in it."""

    def test_public_names(self):
        told = set(re.findall(r"^::: pdrisk\.(\w+)", pages()["reference/api"], flags=re.MULTILINE))
        errors = set(pdrisk.errors.__all__)
        assert set(pdrisk.__all__) - errors - set(pdrisk.risk.__all__) <= told | {"datasets", "study"}
        assert {"errors", "risk"} <= told

    def test_methods_of_frames(self):
        kinds = [kind for kind in FrameAccessor.__mro__ if kind not in (Hinting, object)]
        told = set(re.findall(r"^::: df\.dprisk = (\S+)", pages()["reference/api"], flags=re.MULTILINE))
        assert {f"{kind.__module__}.{kind.__name__}" for kind in kinds} <= told

    def test_options_and_commands(self):
        page = extension("reference_pages").options()
        heads = ", ".join(re.findall(r"^## (.*)$", page, flags=re.MULTILINE)).split(", ")
        assert set(DEFAULTS) - set(heads) == {"prior", "metric"}  # told with risk
        assert all(f"`{name}`" in page for name in ("prior", "metric"))
        assert {"pdrisk", "pdrisk study", "pdrisk assess", "pdrisk ledger"} < set(heads)
        assert "--statistics" in page and page.count("```text") == sum(head.startswith("pdrisk") for head in heads)


class TestExecuted:
    """What the site shows below the code of a page: the outputs of an execution, marked where noise differs."""

    PAGE = """# Title

```python
>>> import random, pandas as pd
>>> pd.DataFrame({"a": [1]})
   a
...
>>> random.SystemRandom().random() < 2, "a" "b"  # doctest: +ELLIPSIS
(True, 'ab')
>>> random.SystemRandom().random()
0...
>>> int("x")
Traceback (most recent call last):
ValueError: ...

```

<!--
>>> hidden = 3

-->

1. In a list:

   ```python
   >>> print(hidden)
   3

   ```
"""

    def test_outputs(self, tmp_path):
        shown = extension("executed_examples").executed("page", self.PAGE, tmp_path)
        assert ">>>" not in shown and "hidden = 3" not in shown and "doctest:" not in shown
        assert "<table" in shown and "(True, &#x27;ab&#x27;)" in shown and "ValueError: invalid literal" in shown
        assert "\n   ```python\n   print(hidden)\n   ```" in shown
        assert shown.count("one draw") == 1 and shown.index("random()\n```") < shown.index("one draw")

    def test_a_picture(self, tmp_path):
        pytest.importorskip("matplotlib").use("Agg")
        page = "```python\n>>> import matplotlib.pyplot as plt\n>>> axes = plt.figure().subplots()\n\n```\n"
        shown = extension("executed_examples").executed("page", page, tmp_path)
        assert "/_executed/page-1.png" in shown and (tmp_path / "page-1.png").is_file()

    @pytest.mark.parametrize(
        "page",
        [
            "```python\n>>> 1 / 0\n0\n\n```\n",
            "```python\n>>> 1\nTraceback (most recent call last):\nE: e\n\n```\n",
            ">>> 1\n1\n",
        ],
    )
    def test_what_fails_stops_the_build(self, page, tmp_path):
        errors = pytest.importorskip("sphinx.errors")
        with pytest.raises(errors.ExtensionError):
            extension("executed_examples").executed("page", page, tmp_path)


NAMES = """# Which functions are there?

```{eval-rst}
.. py:function:: df.dprisk.mean
.. py:class:: pdrisk.Ledger

   .. py:property:: table
.. py:function:: pdrisk.attack.ledger
.. py:class:: pdrisk._answer.combined.Combined

   .. py:method:: explain
```
"""
WRITTEN_NAMES = ["ledger", "Ledger", "mean", "dprisk.mean(", "table", "explain"]
QUESTIONS = {  # what people typed, and the page that they looked for
    "several visits per patient": "people",
    "NaN in column": "schemas",
    "weighted mean survey weights": "surveys",
    "income limits min max": "schemas",
    "choose bounds": "schemas",
    "quarterly report same data": "ledger",
    "save budget between sessions": "ledger",
    "postgres group by count": "engines",
    "error list of categories": "groups",
    "negative count": "releases",
    "ethics board explain": "explaining",
    "margin of error": "releases",
    "use from R": "r",
    "check table small cells": "disclosure",
    "finished table counts csv": "disclosure",
    "parquet too big memory": "tables",
    "install without internet": "install",
    "chart error bars excel": "releases",
    "delete a person": "ledger",
    "how much noise": "mechanisms",
    "which packages does it need": "install",
    "empty cells": "schemas",
    "csv larger than memory": "tables",
    "percentiles income by region": "groups",
    "groups missing result": "groups",
    "compare two years difference": "releases",
    "count below zero": "releases",
    "dashboard refresh": "releases",
    "same query different result": "releases",
    "result columns meaning": "releases",
    "publish table csv excel": "releases",
    "publish every year": "ledger",
    "quota per analyst": "ledger",
    "noise too large": "epsilon",
    "recommended epsilon": "epsilon",
    "share a file with researchers": "disclosure",
    "one person many records": "people",
    "subtotals": "margins",
    "sampling error strata": "surveys",
    "sql join customers orders": "sql",
    "is it secure": "threat-model",
    "what is a curator": "glossary",
}
ASKING = f"""<pre id="found"></pre><script>
const results = (query) => Search._performSearch(...Search._parseQuery(query)).reverse();
addEventListener("load", () => {{
  const found = {json.dumps([*QUESTIONS, *WRITTEN_NAMES])}.map((query) => [query, results(query)]);
  document.getElementById("found").textContent = JSON.stringify(Object.fromEntries(found));
}});
</script></body>"""


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, *told):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a site of the pages as they are written, with a few names in place of the reference."""
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    folder = tmp_path_factory.mktemp("search")
    for name, text in {**written(), "reference/api": NAMES}.items():
        path = folder / "docs" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    told = [f"-Dhtml_search_scorer={DOCS / '_static' / 'search.js'}", "-Dextensions=myst_parser"]
    made = [sys.executable, "-m", "sphinx", "-Q", "-C", *told, folder / "docs", folder / "site"]
    subprocess.run(made, timeout=300, check=True)
    search = (folder / "site" / "search.html").read_text(encoding="utf-8")
    (folder / "site" / "questions.html").write_text(search.replace("</body>", ASKING), encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder / "site"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def opened(address, folder):
    """A page as Chromium has it once its scripts have run without a complaint."""
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", f"--user-data-dir={folder}", "--virtual-time-budget=8000",
         "--enable-logging=stderr", "--dump-dom", address],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def found(site, tmp_path_factory):
    """The results of all questions and names, best first."""
    page = opened(f"{site}/questions.html", tmp_path_factory.mktemp("browser"))
    return json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', page)[1]))


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium to search with")
class TestSearch:
    """The search ranks pages by the words they have; none has to have all of them."""

    def test_questions(self, found):
        """The page that answers is among the first three, and of most questions the first."""
        ranks = {query: [page for page, *_ in found[query]].index(page) + 1 for query, page in QUESTIONS.items()}
        assert {query: rank for query, rank in ranks.items() if rank > 3} == {}
        assert sum(rank == 1 for rank in ranks.values()) >= 0.8 * len(ranks)

    def test_names(self, found):
        """The reference comes first for a name, once, and last for words; private modules are not shown."""
        first = {query: results[0][1] for query, results in found.items()}
        assert (first["ledger"], first["Ledger"]) == ("pdrisk.Ledger", "pdrisk.Ledger")
        assert (first["mean"], first["dprisk.mean("]) == ("df.dprisk.mean", "df.dprisk.mean")
        assert found["ledger"][1][0] == "ledger" and found["ledger"][-1][1] == "pdrisk.attack.ledger"
        assert found["table"][-1][1] == "pdrisk.Ledger.table"  # nobody means a property by this
        assert found["explain"][0][0] == "explaining" and found["explain"][-1][1] == "Combined.explain"

    def test_what_is_shown(self, site, tmp_path):
        """Below a result stands the part of the page, or of its section, that has the words."""
        page = opened(f"{site}/search.html?q={quote('nonsensical next session')}", tmp_path)
        first = re.search(r'<ul[^>]*class="search".*?</li>', page, flags=re.DOTALL)[0]
        assert 'href="ledger.html#publish-again-next-quarter-or-year-open-the-same-file-in-the-next-session"' in first
        assert "session" in re.search(r'class="context">(.*?)</p>', first, flags=re.DOTALL)[1]
