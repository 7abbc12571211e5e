"""`pdrisk study FOLDER`: everything is there, says what it is, and asks for nothing from elsewhere."""

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._atomic_file import write_whole
from pdrisk._cli import main
from pdrisk.study.lee_clifton import adult, toy
from pdrisk.study.page import Page, cell, shown

pytest.importorskip("matplotlib")
FIGURES = ["noise-against-risk", "risk-by-eps", "risk-by-query", "risk-by-sample"]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("study")
    assert main(["study", str(found), "--repetitions", "3", "--quiet"]) == 0
    return found


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A person's own file."""
    path = tmp_path_factory.mktemp("own") / "own.csv"
    rng = np.random.default_rng(0)
    people = {"pay": rng.integers(0, 900, 300), "sex": rng.choice(["f", "m"], 300)}
    pd.DataFrame(people).to_csv(path, index=False)
    return path


class Tags(HTMLParser):
    """Every tag and attribute, and whether tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.slow
class TestFolder:
    """Tables, pictures, page."""

    def test_files(self, folder):
        names = {path.name for path in folder.iterdir()}
        assert names >= {f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")}
        assert names >= {"study.csv", "findings.csv", "lee-clifton.csv", "adult.csv", "report.html"}
        assert not [name for name in names if name.endswith(".part")]
        if os.name == "posix":  # the curator's alone
            assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}

    def test_the_tables_are_those_of_the_library(self, folder):
        survey = pdrisk.datasets.soep_like().pipe(pdrisk.datasets.soep_like_schema().validate)
        columns = ["hours", "distance", "income"]
        expected = pdrisk.study.run(survey, columns, repetitions=3, bounds="column", progress=False)
        found = pd.read_csv(folder / "study.csv")
        assert found.columns.tolist() == expected.columns.tolist()
        assert found["column"].tolist() == expected["column"].tolist()
        for name in expected.select_dtypes("number"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)
        assert len(pd.read_csv(folder / "findings.csv")) == len(pdrisk.study.findings(expected))

    @pytest.mark.parametrize(("sizes", "title"), [("0.1", "One of the largest samples"), ("0.1 1.0", "The whole data")])
    def test_a_part_is_not_called_the_whole(self, own, tmp_path, sizes, title):
        options = ["--sizes", *sizes.split(), "--repetitions", "2", "--quiet"]
        assert main(["study", str(tmp_path), "--file", str(own), *options]) == 0
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert f"<h2>{title}, at eps" in page
        assert ("the sampling error is that of all values" in page) == ("1.0" not in sizes)

    def test_png(self, folder):
        assert all((folder / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in FIGURES)

    def test_once_more_gives_the_same(self, own, tmp_path):
        pages = []
        for seed in ("0", "0", "1"):
            assert (
                main(["study", str(tmp_path), "--file", str(own), "--repetitions", "2", "--quiet", "--seed", seed]) == 0
            )
            page = (tmp_path / "report.html").read_text(encoding="utf-8")
            pages.append(re.sub(r"<dl.*?</dl>", "", page))  # the head, with the date and the command
        assert pages[0] == pages[1] != pages[2]


class TestPage:
    """One page that needs nothing else."""

    @pytest.mark.slow
    def test_is_well_formed_and_asks_for_nothing(self, page):
        tags = Tags()
        tags.feed(page)
        assert tags.open == []
        for tag, attributes in tags.seen:
            assert tag not in ("script", "iframe", "object", "embed", "img"), tag
            for name, value in attributes.items():
                if name in ("src", "href", "xlink:href", "action", "data"):
                    assert value.startswith(("#", "data:")), (tag, name, value)
        assert "@import" not in page
        assert not re.search(r"url\((?!#|&quot;#|'#|\"#)", page)

    @pytest.mark.slow
    def test_reads_like_a_paper(self, page):
        parts = [
            "What was",
            "The whole data",
            "Figures",
            "Findings",
            "Where the paper",
            "Differential",
            "What to tell",
            "How this was",
        ]
        places = [page.index(f"<h2>{part}") for part in parts]
        assert places == sorted(places)
        assert page.count("<figure>") == len(FIGURES) + 1 == page.count("<details>")
        assert "Seed 0, 3 repetitions" in page
        assert f"pdrisk {pdrisk.__version__}" in page
        assert ">pass<" in page

    @pytest.mark.slow
    def test_it_says_whose_it_is(self, page, tmp_path):
        assert "nobody in them is real" in page
        rng = np.random.default_rng(0)
        pd.DataFrame({"pay": rng.integers(0, 900, 300), "sex": rng.choice(["f", "m"], 300)}).to_csv(
            tmp_path / "own.csv"
        )
        arguments = ["study", str(tmp_path / "out"), "--file", str(tmp_path / "own.csv"), "--columns", "pay"]
        assert main([*arguments, "--repetitions", "2", "--quiet", "--bounds", "pay=0:1000"]) == 0
        own = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert "Curator only: these figures come from the data without noise" in own
        assert "nobody in them is real" not in own
        assert re.search(
            r"<td[^>]*>pay</td><td[^>]*>300</td><td[^>]*>0</td><td[^>]*>1,000</td><td[^>]*>given</td>", own
        )

    @pytest.mark.slow
    @pytest.mark.skipif(BROWSER is None, reason="no Chromium to open the page with")
    def test_in_a_browser(self, folder, tmp_path):
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom",
             "--enable-logging=stderr", (folder / "report.html").as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        assert "CONSOLE" not in done.stderr  # neither an error nor a request that the page's own policy stopped
        assert done.stdout.count("<svg") == len(FIGURES) + 1

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--columns", "state"], "state"), (["--columns", "wage"], "wage"), (["--repetitions", "0"], "repetitions"),
            (["--file", "none.csv"], "there is no file"), (["--seed", "-1"], "seed"),
            (["--missing=-3"], "--file"), (["--schema", "no.py:schema"], "--file"),
        ],
    )  # fmt: skip
    def test_clear_errors(self, tmp_path, arguments, words, capsys):
        assert main(["study", str(tmp_path), "--quiet", *arguments]) == 2
        assert words in capsys.readouterr().err
        assert not (tmp_path / "report.html").exists()


class TestStops:
    """What goes wrong is said before the work, and in one line."""

    def test_without_matplotlib(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr("pdrisk._cli.study.find_spec", lambda name: None)
        assert main(["study", str(tmp_path / "new"), "--quiet"]) == 2
        assert "pip install" in capsys.readouterr().err
        assert not (tmp_path / "new").exists()

    def test_stopped_by_hand(self, tmp_path, monkeypatch, capsys):
        def stops(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("pdrisk._cli.study.run", stops)
        assert main(["study", str(tmp_path), "--quiet"]) == 130
        assert capsys.readouterr().err.count("\n") == 1

    def test_a_file_for_a_folder(self, tmp_path, capsys):
        (tmp_path / "here").write_text("x")
        assert main(["study", str(tmp_path / "here"), "--quiet"]) == 2
        assert "name a folder" in capsys.readouterr().err

    @pytest.mark.slow
    def test_columns_that_cannot_be_studied_are_left_out_and_named(self, tmp_path, capsys):
        people = pd.DataFrame({"pay": [*range(49), 7], "always": 3, "sex": ["f", "m"] * 25})
        people.to_csv(tmp_path / "own.csv", index=False)
        out = tmp_path / "out"
        assert main(["study", str(out), "--file", str(tmp_path / "own.csv"), "--repetitions", "2", "--quiet"]) == 0
        said = capsys.readouterr().err
        assert "left out: always (has one value only" in said
        assert "left out: sex (holds text" in said
        assert set(pd.read_csv(out / "study.csv")["column"]) == {"pay"}


class TestParts:
    """What pages are made of."""

    def test_labels_are_text(self):
        page = Page("<b>", "a & b")
        page.table(pd.DataFrame({"<i>": ["<script>", "x"], "n": [1, 2]}), "cap<tion", {"n": "<u>"})
        page.figure('<?xml?><!DOCTYPE x "http://x"><svg width="1"></svg>', 'a "quoted" <caption>', "<pre>")
        for raw in ("<b>", "<i>", "<script>", "<u>", "<caption>", "DOCTYPE x", "<?xml"):
            assert raw not in page.html.replace("<table><caption>", "")
        assert 'role="img" aria-label="a &quot;quoted&quot; &lt;caption&gt;"' in page.html

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.5, "0.5"), (0.73107, "0.7311"), (1234.5, "1,234"), (2_700_000.0, "2,700,000"), (1.09e13, "1.09e+13"),
            (0.00001234, "1.23e-05"), (0.0, "0"), (float("nan"), "–"), (None, "–"), (12345, "12,345"), (True, "yes"),
            ("x", "x"), (-1234.0, "-1,234"),
        ],
    )  # fmt: skip
    def test_shown(self, value, text):
        assert shown(value) == text

    @pytest.mark.parametrize(
        ("name", "value", "text"),
        [
            ("worst_case", 1.0, "> 0.9999"), ("two_worlds", 0.50004, "0.5001"), ("exact", 0.1672, "0.1672"),
            ("identifiability", 0.000036, "3.6e-05"), ("many_worlds", float("nan"), "–"), ("exposure", 1.0, "1"),
        ],
    )  # fmt: skip
    def test_risks_are_rounded_up_and_never_certain(self, name, value, text):
        assert cell(name, value) == cell(name, np.float64(value)) == text

    def test_whole_or_not_at_all(self, tmp_path):
        (tmp_path / "a").write_text("before")

        def fails(path):
            path.write_text("half")
            raise OSError("full")

        with pytest.raises(OSError, match="full"):
            write_whole(tmp_path / "a", fails)
        assert (tmp_path / "a").read_text() == "before"
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_toy(self):
        # Lee & Clifton 2012, section 4, with the digits of docs/reproducing.md.
        found = toy().set_index("risk").loc[[0.2, 0.25, 0.5, 0.75, 0.9, 0.99]]
        loose = [0.559616, 0.847298, 1.945910, 3.044522, 4.143135, 6.541030]
        tight = [0.939244, 1.460950, 3.766763, 6.664430, 10.115656, 18.782325]
        np.testing.assert_allclose(found["loose_eps"], loose, atol=6e-7)
        np.testing.assert_allclose(found["tight_eps"], tight, atol=6e-7)
        assert toy().set_index("risk").loc[1 / 3, "scale"] == pytest.approx(2.1286282671, abs=1e-10)
        ratio = toy()["tight_eps"] / toy()["loose_eps"]
        assert (round(ratio.min(), 1), round(ratio.max(), 1)) == (1.7, 2.9)  # as the page says

    def test_adult(self):
        # Lee & Clifton 2012, tables 3 and 4: the scale at 0.1 and at 0.001, "infeasible" for three of them.
        found = adult().pivot(index="column", columns="risk", values="scale").round(4)
        assert found[0.1].to_dict() == {
            "age": 0.0007, "education-num": 0.0006, "capital-gain": 0.2198, "capital-loss": 0.0144,
            "hours-per-week": 0.0008,
        }  # fmt: skip
        assert found[0.001].dropna().to_dict() == {"capital-gain": 0.4445, "capital-loss": 0.0606}
