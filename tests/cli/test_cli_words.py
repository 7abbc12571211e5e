"""What can be written on the command line, what a shell is told of it, and which files it leaves alone."""

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from pdrisk._cli import main
from pdrisk.study.paper import FILES


@pytest.fixture
def here(tmp_path, monkeypatch):
    rng = np.random.default_rng(4)
    people = pd.DataFrame({"pay": rng.integers(0, 5000, 90), "age": rng.integers(18, 90, 90), "sex": [*"fmx"] * 30})
    people.assign(**{"net (EUR, month)": people["pay"] / 2}).to_csv(tmp_path / "p.csv", index=False)
    german = people["pay"].map(lambda value: f"{value + 1000.25:,.2f}".translate(str.maketrans(",.", ".,")))
    people.assign(pay=german).to_csv(tmp_path / "g.csv", index=False, sep=";")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys, *words):
    """Exit status, output and error of a command."""
    try:
        status = main(list(words))
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    return status, printed.out, printed.err


class TestSeveral:
    """Blanks and commas, once or repeated, are the same."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize(
        ("one", "others"),
        [
            ("--eps 0.5,2", ["--eps 0.5 2", "--eps 0.5 --eps 2", "--eps=0.5,2"]),
            ("--columns pay,age", ["--columns pay age", "--columns pay --columns age"]),
            ("--statistics mean,quantile(0.9),var(ddof=0)", ["--statistics mean quantile(q=0.9) var(ddof=0)"]),
            ("--by sex,age --columns pay", ["--columns pay --by sex age"]),
            ("--missing=-1,-2", ["--missing -1,-2", "--missing -1 -2", "--missing=-1 --missing -2"]),
            ("--bounds pay=0:9000 age=0:99", ["--bounds pay=0:9000 --bounds age=0:99", "--bounds pay=0:9000,age=0:99"]),
        ],
    )
    def test_all_ways(self, here, capsys, one, others):
        status, expected, _ = told(capsys, "assess", "p.csv", *one.split())
        assert status == 0
        for other in others:
            assert told(capsys, "assess", "p.csv", *other.split())[1] == expected, other
        assert told(capsys, "assess", "p.csv")[1] != expected or "missing" in one

    def test_codes_are_missing(self, here, capsys):
        pd.DataFrame({"x": [-1, -2, 3, 4, 5]}).to_csv("c.csv", index=False)
        assert re.search(r"x\s+3\s+5\s", told(capsys, "assess", "c.csv", "--missing", "-1,-2")[1])

    def test_names_with_commas_in_brackets(self, here, capsys):
        name = "net (EUR, month)"
        status, said, _ = told(capsys, "assess", "p.csv", "--columns", f"{name},age", "--bounds", f"{name}=0:4000")
        assert status == 0
        assert re.search(r"net \(EUR, month\)\s+0\s+4,000\s+given", said)

    @pytest.mark.parametrize("label", ["quantile(0.9)", "var(ddof=0)", "std(ddof=0)", "std"])
    def test_labels_are_read_as_they_are_printed(self, here, capsys, label):
        _, said, _ = told(capsys, "assess", "p.csv", "--columns", "pay", "--statistics", label)
        assert re.search(rf"^ *pay +{re.escape(label)} ", said, re.MULTILINE)


class TestRefused:
    """One line that a shell user can follow."""

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--statistics", "quantile"], r"in quotes for the shell: 'quantile\(0\.9\)'"),
            (["--statistics", "quantile(x)"], r"quantile\(x\) needs a number"),
            (["--statistics", "quantile(9)"], "q must be between 0 and 1"),
            (["--statistics", "mean(3)"], "mean takes no ddof="),
            (["--sep", ";;"], r"--sep must be one character, but is ';;'"),
            (["--sep", ""], "--sep must be one character"), (["--thousands", ".."], "--thousands must be one"),
            (["--decimal", ","], "--decimal and --sep cannot both be ','"),
            (["--thousands", "."], "--thousands and --decimal cannot both be '.'"),
            (["--columns", "sex"], "'sex': holds text, and a study needs numbers; leave it out.$"),
            (["--columns", "sex,wage"], "no column wage"), (["--to", ""], "name of the folder is empty"),
            (["--missing", "a"], "--missing=-1,-2"), (["--eps", "0.1,a"], "invalid float value"),
        ],
    )  # fmt: skip
    def test_one_line(self, here, capsys, words, said):
        status, out, error = told(capsys, "assess", "p.csv", *words)
        assert (status, out) == (2, "")
        last = error.splitlines()[-1]
        assert re.search(said, last)
        assert re.match("pdrisk( assess)?: ", last)
        assert error.startswith("usage") or len(error.splitlines()) == 1
        assert "to_numeric" not in error

    def test_several_columns(self, here, capsys):
        status, _, error = told(capsys, "assess", "g.csv", "--sep", ";", "--columns", "pay", "sex")
        assert (status, error.count("\n")) == (2, 1)
        assert "'pay': holds text, and a study needs numbers; leave it out, or read decimal commas with" in error

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("u.csv", "Größe\n180\n".encode("latin-1"), "u.csv is not written in the encoding 'utf-8': name"),
            ("e.csv", b"", "e.csv is empty"),
            ("text", b"", "text is neither a .csv nor a .parquet file"),
        ],
    )
    def test_files(self, here, capsys, name, content, said):
        (here / name).write_bytes(content)
        status, out, error = told(capsys, "assess", name)
        assert (status, out, error.count("\n")) == (2, "", 1)
        assert error.startswith(f"pdrisk: {said}")

    def test_a_folder_is_no_file(self, here, capsys):
        said = "pdrisk: . is neither a .csv nor a .parquet file: write the data to one of these first.\n"
        assert told(capsys, "assess", ".")[2] == said

    def test_what_a_dataset_opens_from_a_file_name(self, here, capsys):
        """A folder, a pattern, and folders such as sex=f, which are a column of text."""
        people = pd.read_csv("p.csv")
        people.to_parquet("p.parquet")
        for name, rows in people.groupby("sex"):
            (here / "parts" / f"sex={name}").mkdir(parents=True)
            rows.drop(columns="sex").to_parquet(here / "parts" / f"sex={name}" / "p.parquet")
        options = ["--columns", "age", "--bounds", "age=0:100", "--by", "sex"]
        csv, *others = (
            told(capsys, "assess", name, *options) for name in ("p.csv", "p.parquet", "parts", "parts/*/*.parquet")
        )
        assert csv[0] == 0
        assert {out.split("\n", 2)[2] for _, out, _ in others} == {csv[1].split("\n", 2)[2]}
        assert told(capsys, "assess", "parts", *options, "--to", "report")[0] == 0
        assert "neither a .csv nor" in told(capsys, "assess", "nothing/*")[2]
        assert "there is no file *.csv" in told(capsys, "assess", "*.csv")[2]
        assert "there is no Parquet file" in told(capsys, "assess", "nothing/*.parquet")[2]

    def test_a_file_after_an_option_for_several(self, here, capsys):
        last, first = (
            told(capsys, "assess", *words) for words in (("--columns", "age", "p.csv"), ("p.csv", "--columns", "age"))
        )
        assert last == first and last[0] == 0
        assert "name it before options" in told(capsys, "study", "--file", "p.csv", "--columns", "age", "out")[2]

    def test_an_empty_folder_of_a_study(self, here, capsys):
        assert "name of the folder is empty" in told(capsys, "study", " ", "--file", "p.csv")[2]
        assert sorted(os.listdir()) == ["g.csv", "p.csv"]


class TestOtherSigns:
    """Decimal commas and points between thousands, as in Germany."""

    def test_are_read_if_they_are_named(self, here, capsys):
        _, plain, _ = told(capsys, "assess", "p.csv", "--columns", "pay", "--bounds", "pay=-1000:8999.75")
        options = ["--sep", ";", "--decimal", ",", "--thousands", ".", "--bounds", "pay=0.25:10000"]
        status, german, _ = told(capsys, "assess", "g.csv", "--columns", "pay", *options)
        assert status == 0
        exposed = [re.search(r"pay +max +90 +(\S+)", said)[1] for said in (plain, german)]
        assert exposed[0] == exposed[1]

    def test_else_it_says_so_before_the_ranking(self, here, capsys):
        said = " ".join(told(capsys, "assess", "g.csv", "--sep", ";")[1].split())
        out = "Left out: pay (holds text; read decimal commas with --decimal=, and --thousands=.); sex (holds text)."
        assert said.index(out) < said.index("Most exposed answers")

    def test_a_tab_as_it_is_typed(self, here, capsys):
        pd.read_csv("p.csv").to_csv("t.csv", sep="\t", index=False)
        assert told(capsys, "assess", "t.csv", "--sep", r"\t")[1:] == told(capsys, "assess", "t.csv", "--sep", "\t")[1:]


class TestFiles:
    """What pdrisk did not write is never written over."""

    COMMANDS = (["assess", "p.csv", "--to", "o"], ["study", "o", "--file", "p.csv", "--quiet", "--repetitions", "1"])

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("there", ["report.html", "columns.csv", "adult.csv", "notes.txt"])
    @pytest.mark.parametrize("words", COMMANDS, ids=["assess", "study"])
    def test_others_files(self, here, capsys, words, there):
        (here / "o").mkdir()
        (here / "o" / there).write_text("mine")
        status, _, error = told(capsys, *words)
        ours = {"assess": ["report.html", "columns.csv"], "study": [*FILES]}[words[0]]
        assert status == (2 if there in ours else 0)
        assert (f"holds {there} already, and not as pdrisk wrote it" in error) is (there in ours)
        assert (here / "o" / there).read_text() == "mine"
        if there in ours:
            assert os.listdir("o") == [there]

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("words", COMMANDS, ids=["assess", "study"])
    def test_its_own(self, here, capsys, words):
        assert told(capsys, *words)[0] == 0
        (here / "o" / "report.html").unlink()  # as after a run that was stopped
        assert told(capsys, *words)[0] == 0
        assert {*os.listdir("o")} - {"parts", ".pdrisk"} <= {*(here / "o" / ".pdrisk").read_text().split()}
        (here / "o" / "report.html").write_text("mine")  # under a name that was pdrisk's
        assert told(capsys, *words)[0] == 2
        assert (here / "o" / "report.html").read_text() == "mine"

    def test_what_it_has_not_written_yet(self, here, capsys):
        assert told(capsys, "assess", "p.csv", "--to", "o", "--statistics", "nope")[0] == 2
        (here / "o").mkdir(exist_ok=True)
        (here / "o" / "report.html").write_text("mine")
        assert told(capsys, "assess", "p.csv", "--to", "o")[0] == 2

    @pytest.mark.slow
    def test_what_an_earlier_run_alone_wrote_goes(self, here, capsys):
        assert told(capsys, "assess", "p.csv", "--to", "o", "--by", "sex")[0] == 0
        assert (here / "o" / "groups.csv").is_file()
        assert told(capsys, "assess", "p.csv", "--to", "o")[0] == 0
        assert not (here / "o" / "groups.csv").exists()

    @pytest.mark.slow
    def test_a_study_names_all_its_files(self, here, capsys):
        assert told(capsys, *self.COMMANDS[1])[0] == 0
        assert set(os.listdir("o")) == {*FILES, ".pdrisk", "parts"} - {"weighted.csv"}  # which --weights asks for


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no pipes that break")
def test_nobody_reads_on(here):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "pdrisk._cli", "assess", "p.csv"], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


class TestSampled:
    """The page says which samples there were."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            (2, "Its only sample is the whole of it, and"),
            (10, "without replacement, 3 of each of 3 sizes (20 % to 100 %; of the whole there is one), and"),
        ],
    )
    def test_sizes(self, here, capsys, rows, said):
        pd.DataFrame({"x": range(rows)}).to_csv("x.csv", index=False)
        assert told(capsys, "study", "o", "--file", "x.csv", "--repetitions", "3", "--quiet")[0] == 0
        assert said in (here / "o" / "report.html").read_text(encoding="utf-8")
