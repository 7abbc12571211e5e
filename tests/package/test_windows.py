"""Windows, as far as Linux can tell: files that are open, no fcntl, its separators and encodings, no fork."""

import errno
import ntpath
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import _atomic_file, _cli
from pdrisk._atomic_file import remove_leftovers, write_whole
from pdrisk._audit.questions import random_question
from pdrisk._ledger.store import secret as secrets_file
from pdrisk._ledger.store.location import is_address, is_there
from pdrisk.engines.sql.servers import parquet_scan
from pdrisk.errors import LedgerError, ParameterError

pytestmark = [
    pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning"),
    pytest.mark.skipif(sys.platform == "win32", reason="there all other tests tell"),
]

FRAME = pd.DataFrame({"x": [1.0, 2.0, 4.0, 8.0], "town": ["Åre", "Łódź", "Åre", "東京"]})
WINDOWS = SimpleNamespace(platform="win32")
# Every open() of pdrisk's must state its encoding, or Windows takes an old one: where it does not, that is an error.
RUN = """
import io, sys, warnings
import numpy, pandas, duckdb, pandera.pandas, tqdm, subprocess, multiprocessing, platform, sqlite3, tempfile
import concurrent.futures.thread, importlib.metadata, xml.etree.ElementTree, matplotlib.pyplot
warnings.filterwarnings("error", category=EncodingWarning, module=r"pdrisk(\\.|$)")
"""


@pytest.fixture
def windows(monkeypatch):
    """Files as on Windows: what is open is neither replaced nor removed, and there is no fcntl."""
    for module in (_atomic_file, _cli):
        monkeypatch.setattr(module, "sys", SimpleNamespace(**(vars(sys) | vars(WINDOWS))))
    monkeypatch.delattr(_atomic_file, "fcntl")
    monkeypatch.delattr(os, "O_NOFOLLOW")
    held = set()

    def forbidden(own):
        def checked(*paths, **options):
            if taken := [each for each in paths if isinstance(each, str | os.PathLike) and Path(each).name in held]:
                raise PermissionError(errno.EACCES, "it is used by another process", str(taken[0]))
            return own(*paths, **options)

        return checked

    opened = os.open

    def no_folder(path, flags, *rest, **options):
        if isinstance(path, str | os.PathLike) and os.path.isdir(path):
            raise PermissionError(errno.EACCES, "folders cannot be opened", str(path))
        return opened(path, flags, *rest, **options)

    def rename(source, target):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "it exists", str(target))
        replaced(source, target)

    replaced = os.replace
    monkeypatch.setattr(os, "open", no_folder)
    monkeypatch.setattr(os, "rename", rename)
    for name in ("replace", "unlink"):
        monkeypatch.setattr(os, name, forbidden(getattr(os, name)))
    return held


class TestFiles:
    def test_a_file_is_written_without_locks(self, windows, tmp_path):
        for text in ("one", "other"):
            write_whole(tmp_path / "report.html", lambda part, text=text: part.write_text(text, encoding="utf-8"))
        assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
        assert (tmp_path / "report.html").read_text(encoding="utf-8") == "other"

    def test_a_reader_keeps_it_for_a_moment(self, windows, tmp_path):
        """As virus scanners and readers of a share do."""
        path = tmp_path / "history.csv"
        path.write_text("before", encoding="utf-8")
        windows.add(path.name)
        threading.Timer(0.2, windows.clear).start()
        write_whole(path, lambda part: part.write_text("after", encoding="utf-8"))
        assert path.read_text(encoding="utf-8") == "after"

    def test_a_reader_keeps_it(self, windows, tmp_path, monkeypatch):
        """As a spreadsheet does: the file is as it was, nothing is left beside it, and the error says what to do."""
        monkeypatch.setattr(_atomic_file, "PATIENCE", 0.1)
        path = tmp_path / "history.csv"
        path.write_text("before", encoding="utf-8")
        windows.add(path.name)
        with pytest.raises(PermissionError, match=r"history\.csv cannot be replaced: close the program"):
            write_whole(path, lambda part: part.write_text("after", encoding="utf-8"))
        assert [each.name for each in tmp_path.iterdir()] == [path.name]
        assert path.read_text(encoding="utf-8") == "before"

    def test_elsewhere_a_refusal_is_not_waited_for(self, monkeypatch, tmp_path):
        def refused(*_):
            raise PermissionError(errno.EPERM, "not yours")

        monkeypatch.setattr(os, "replace", refused)
        since = time.monotonic()
        with pytest.raises(PermissionError, match="not yours"):
            write_whole(tmp_path / "report.html", lambda part: part.write_text("x", encoding="utf-8"))
        assert time.monotonic() - since < _atomic_file.PATIENCE / 2

    def test_leftovers_of_whoever_still_writes_stay(self, windows, tmp_path):
        stem = f".report.html.{'0' * 16}"
        for name in (f"{stem}.part", f"{stem}.lock"):
            (tmp_path / name).touch()
        windows.add(f"{stem}.lock")
        remove_leftovers(tmp_path)
        assert len([*tmp_path.iterdir()]) == 2
        windows.clear()
        remove_leftovers(tmp_path)
        assert not [*tmp_path.iterdir()]

    def test_the_secret_of_the_first_process_stays(self, windows, tmp_path, monkeypatch):
        """It is renamed to its place, since not all drives of a network know a second name of a file."""
        monkeypatch.delenv("PDRISK_SECRET", raising=False)
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
        monkeypatch.setenv("APPDATA", str(tmp_path))
        monkeypatch.delattr(os, "link")
        first = secrets_file.secret()
        own = secrets_file.part_of

        def late(path):  # both saw that there was none
            (tmp_path / "pdrisk" / "secret").write_bytes(first)
            return own(path)

        (tmp_path / "pdrisk" / "secret").unlink()
        monkeypatch.setattr(secrets_file, "part_of", late)
        assert secrets_file.secret() == first
        assert [each.name for each in (tmp_path / "pdrisk").iterdir()] == ["secret"]

    def test_a_study_and_its_parts(self, windows, tmp_path):
        asked = {"sample_sizes": [2], "repetitions": 3, "resume": tmp_path / "parts", "workers": 2}
        first = pdrisk.study.run(FRAME, ["x"], "mean", **asked)
        pd.testing.assert_frame_equal(first, pdrisk.study.run(FRAME, ["x"], "mean", **asked))


class TestLedgers:
    def test_the_audit_closes_the_ledgers_of_folders_it_removes(self, monkeypatch):
        """A folder with an open file cannot be removed."""
        own, opened = sqlite3.connect, []

        def connect(*given, **options):
            opened.append(own(*given, **options))
            return opened[-1]

        questions = (random_question(np.random.default_rng(seed), "accessor") for seed in range(1000))
        question = next(each for each in questions if "paid by a ledger" in each.words)
        monkeypatch.setattr(sqlite3, "connect", connect)
        question.ask(question.first)
        assert opened
        for each in opened:
            with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
                each.execute("SELECT 1")

    def test_a_file_that_is_no_ledger_is_closed(self, monkeypatch, tmp_path):
        """Or Windows would keep whoever named it from removing it; and Python 3.13 warns."""
        own, opened = sqlite3.connect, []
        monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: opened.append(own(*a, **k)) or opened[-1])
        (tmp_path / "budget.db").write_text("this is no database, and long enough to be read as one" * 9, "utf-8")
        with pytest.raises(LedgerError, match="file is not a database"):
            pdrisk.Ledger(tmp_path / "budget.db", dataset="survey", eps=1)
        for each in opened:
            with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
                each.execute("SELECT 1")

    @pytest.mark.parametrize("path", [r"C:\data\budget.db", "c:/data/budget.db", r"\\server\share\budget.db", "b.db"])
    def test_paths_are_no_servers(self, path):
        assert not is_address(path)
        assert not is_there(path)

    def test_a_file_under_another_spelling(self, tmp_path):
        """Windows has one file under names in both cases: the file counts, as here that of a link."""
        with closing(pdrisk.Ledger(tmp_path / "budget.db", dataset="survey", analyst="ann", eps=1)) as ledger:
            (tmp_path / "BUDGET.csv").symlink_to(tmp_path / "budget.db")
            with pytest.raises(ParameterError, match="ledger"):
                ledger.export(tmp_path / "BUDGET.csv")


class TestNames:
    """The last part of a path, by Windows' rules: both separators, and one at the end."""

    @pytest.mark.parametrize("path", ["C:/data/people/", "C:\\data\\people\\", "people"])
    def test_a_folder_without_files(self, path, monkeypatch):
        found = SimpleNamespace(
            isdir=lambda _: True, **{name: getattr(ntpath, name) for name in ("join", "basename", "normpath")}
        )
        monkeypatch.setattr(parquet_scan, "os", SimpleNamespace(path=found, sep="\\"))
        with pytest.raises(ParameterError, match="no Parquet file in 'people'"):
            parquet_scan._files_of(path)

    def test_a_folder_is_named_without_its_separators(self, tmp_path):
        folder = tmp_path / "people"
        folder.mkdir()
        FRAME.to_parquet(folder / "a.parquet")
        for written in (f"{folder}{os.sep}", f"{folder}{os.sep}{os.sep}", str(folder)):
            with duckdb.connect() as con:
                answer = pdrisk.sql("SELECT COUNT(*) AS n FROM people", eps=1, people=written, con=con)
            assert answer.columns.tolist() == ["n"]


class TestTerminals:
    def test_nobody_reads_on(self, windows, monkeypatch):
        """A closed pipe is an invalid argument there."""

        def closed(*_, **__):
            raise OSError(errno.EINVAL, "Invalid argument")

        monkeypatch.setattr(_cli, "demo", lambda **_: "")
        monkeypatch.setattr(_cli, "print", closed, raising=False)
        monkeypatch.setattr(os, "dup2", lambda *_: None)
        monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)
        assert _cli.main(["demo"]) == 141

    def test_another_failure_is_told(self, monkeypatch):
        def full(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(_cli, "demo", lambda **_: "")
        monkeypatch.setattr(_cli, "print", full, raising=False)
        with pytest.raises(OSError, match="No space"):
            _cli.main(["demo"])

    @pytest.mark.parametrize("encoding", ["cp1252", pytest.param("cp437", marks=pytest.mark.slow)])
    def test_the_demo_in_an_old_terminal(self, encoding):
        done = run("-m", "pdrisk._cli", "demo", PYTHONIOENCODING=encoding, PYTHONUTF8="0", LC_ALL="C")
        assert done.returncode == 0, done.stderr
        assert b"right 50 times out of 100" in done.stdout

    @pytest.mark.parametrize(
        "said",
        [
            "_cli.main(['demo'])",
            "_cli.main(['study', 'study', '--repetitions', '2', '--quiet'])",
            "_cli.main(['assess', 'own.csv', '--to', 'own'])",
            "pdrisk.audit(only=['noise'], seed=1, progress=False).save('audit.html')",
            "pdrisk.Ledger('budget.db', dataset='s', analyst='ann', eps=1).export('history.csv')",
        ],
        ids=["demo", "study", "assess", "audit", "export"],
    )
    @pytest.mark.slow
    def test_every_file_has_its_encoding(self, said, tmp_path):
        FRAME.to_csv(tmp_path / "own.csv", index=False)
        done = run(
            "-X", "warn_default_encoding", "-c", f"{RUN}\nimport pdrisk\nfrom pdrisk import _cli\n{said}", at=tmp_path
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]  # others' files may have none

    def test_this_tells_of_one_that_has_none(self, tmp_path):
        text = f"{RUN}\nsource = compile('open(\"x\", \"w\")', 'x', 'exec')\nexec(source, {{'__name__': 'pdrisk.x'}})"
        done = run("-X", "warn_default_encoding", "-c", text, at=tmp_path)
        assert done.returncode == 1
        assert b"EncodingWarning" in done.stderr


class TestWithoutWhatWindowsLacks:
    def test_a_ledger_a_study_and_a_report(self, tmp_path):
        """A process that has never had fcntl, os.fork, os.getuid and the like."""
        text = RUN + textwrap.dedent("""
            import os
            for name in ("fcntl", "pwd", "grp", "resource", "termios"):
                sys.modules[name] = None
            for name in ("fork", "getuid", "geteuid", "register_at_fork", "O_NOFOLLOW", "link"):
                delattr(os, name)
            sys.platform = "win32"
            import pdrisk
            from pdrisk import _cli
            assert "fcntl" not in vars(sys.modules["pdrisk._atomic_file"])
            frame = pandas.DataFrame({"x": [1.0, 2.0, 4.0, 8.0]})
            d = pdrisk.Dataset(frame, ledger=pdrisk.Ledger("budget.db", dataset="s", analyst="ann", eps=9))
            assert d.mean("x", eps=1, bounds=(0, 9)).value == d.mean("x", eps=1, bounds=(0, 9)).value
            d.ledger.export("history.csv")
            pdrisk.study.run(frame, ["x"], "mean", sample_sizes=[2], repetitions=2, resume="parts", workers=1)
            frame.to_csv("own.csv", index=False)
            assert _cli.main(["assess", "own.csv", "--to", "own", "--statistics", "mean"]) == 0
        """)
        done = run("-c", text, at=tmp_path, APPDATA=str(tmp_path / "settings"), PDRISK_SECRET="", XDG_CONFIG_HOME="")
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        assert {"budget.db", "history.csv", "own", "parts", "settings"} <= {each.name for each in tmp_path.iterdir()}
        assert (tmp_path / "settings" / "pdrisk" / "secret").stat().st_size == 32


def run(*words, at=None, **environment):
    paths = str(Path(pdrisk.__file__).parent.parent)
    said = os.environ | {"PYTHONPATH": paths, "MPLBACKEND": "agg"} | environment
    return subprocess.run([sys.executable, *words], env=said, cwd=at, capture_output=True, timeout=300, check=False)
