"""Ledger files that are none, damaged or very long, and ``pdrisk ledger``."""

import datetime
import gc
import io
import re
import sqlite3
import threading
from contextlib import closing
from fractions import Fraction
from functools import partial

import pandas as pd
import pytest

import pdrisk
from ledgers import at_work, count
from pdrisk._cli import main
from pdrisk._ledger.rules.success_limits import mu2_of_pure
from pdrisk._ledger.store.records import chained

START = datetime.datetime(2190, 1, 30, tzinfo=datetime.UTC)


def text_file(path):
    path.write_text("no ledger at all, but a text that is long enough to be read as something" * 9)


def foreign(path, version=0):
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE customers (name TEXT)")
        other.execute(f"PRAGMA user_version = {version}")


def newer(path):
    at_work(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 99")


def of_version(path, version):
    at_work(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")


def overwritten(path, start, stop, by=b"\xa5"):
    at_work(path)
    held = bytearray(path.read_bytes())
    held[start:stop] = by * len(held[start:stop])
    path.write_bytes(held)


def replaced(path, old, new):
    at_work(path)
    path.write_bytes(path.read_bytes().replace(old, new))


NO_LEDGERS = {
    "a text": (text_file, "damaged or something else"),
    "a folder": (lambda path: path.mkdir(), "cannot be used"),
    "in no folder": (lambda path: path.parent.rmdir(), "folder exists"),
    "another database": (foreign, "database of something else"),
    "another database with a version": (lambda path: foreign(path, 1), "something else"),
    "newer": (newer, "newer pdrisk .version 99.*upgrade"),
    "older than it says": (lambda path: of_version(path, 0), "damaged"),
    "old, it says": (lambda path: of_version(path, 1), "damaged"),
    "without its head": (lambda path: overwritten(path, 0, 100), "damaged"),
    "damaged in the middle": (lambda path: overwritten(path, 4096, 30_000), "damaged|is broken"),
    "zeros at the end": (lambda path: overwritten(path, 8192, None, b"\0"), "damaged|is broken"),
    "of 0 bytes": (lambda path: path.touch(), "file of 0 bytes"),
    "a text that is none": (
        lambda path: replaced(path, b"records follow", b"records \xff\xfellow"),
        "damaged|is broken",
    ),
    "a name that is none": (
        lambda path: replaced(path, b"TABLE spending", b"TABLE sp\xff\xfeding"),
        "damaged|is broken",
    ),
    "cut off": (lambda path: (at_work(path), path.write_bytes(path.read_bytes()[:9000])), "damaged|is broken"),
}


class TestFiles:
    """What is no ledger, or no longer one, is said to be so, and left as it is."""

    @pytest.mark.parametrize(("make", "words"), NO_LEDGERS.values(), ids=NO_LEDGERS.keys())
    def test_no_ledger(self, tmp_path, make, words, capsys):
        path = tmp_path / "kept" / "budget.db"
        path.parent.mkdir()
        make(path)
        held = path.read_bytes() if path.is_file() else None
        with pytest.raises(pdrisk.LedgerError, match=words):
            pdrisk.Ledger(path, dataset="survey", analyst="ann", eps=2).verify()
        assert (path.read_bytes() if path.is_file() else None) == held
        assert main(["ledger", "verify", str(path)]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and re.fullmatch(r"pdrisk: .*\n", printed.err)

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        "statement",
        [
            *("UPDATE spending SET eps = 'much'", "UPDATE spending SET eps = '1/0'", "DELETE FROM datasets"),
            *("UPDATE datasets SET limits = 'none'", "UPDATE datasets SET limits = '{}'", "DROP TABLE spending"),
        ],
    )
    @pytest.mark.parametrize("call", [count, pdrisk.Ledger.remaining, repr], ids=["ask", "remaining", "repr"])
    def test_a_broken_one_answers_nothing(self, path, statement, call):
        ledger = at_work(path)
        with closing(sqlite3.connect(path)) as other:
            other.execute(statement)
            other.commit()
        with pytest.raises(pdrisk.LedgerError):
            call(ledger)

    @pytest.mark.slow
    def test_many_records(self, path):
        """Each query at a time of its own, over two months."""
        ledger = pdrisk.Ledger(path, dataset="survey", analyst="ann", eps=1)
        (number, before), rows, spent = ledger.verify(), [], {}
        for seq in range(number + 1, 100_001):
            time = (START + datetime.timedelta(seconds=4 * seq)).isoformat(timespec="microseconds")
            row = (seq, time, "survey", "ann", "paid", "1/1000000", '{"question":{"lines":[]}}')
            before = chained(before, *row)
            rows.append((*row, before))
            for window in ("", time[:7], time[:10]):
                spent[window] = spent.get(window, 0) + 1
        each = mu2_of_pure(Fraction(1, 10**6))  # as the records of older versions, which do not say it
        sums = [
            ("survey", who, at, str(Fraction(n, 10**6)), n, str(n * each))
            for who in ("", "ann")
            for at, n in spent.items()
        ]
        with closing(sqlite3.connect(path)) as other:
            other.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            other.executemany(
                "INSERT INTO spending (dataset, analyst, period, eps, queries, mu2) VALUES (?, ?, ?, ?, ?, ?)", sums
            )
            other.commit()
        assert (ledger.remaining().eps, ledger.history()["total"].iloc[-1]) == (0.900001, 0.099999)
        count(ledger)
        assert ledger.verify(head=(100_000, before))[0] == 100_001


class TestClose:
    """A ledger closes its connections when it is told to, and when nobody holds it any more."""

    def test_closed(self, path):
        with closing(pdrisk.Ledger(path, dataset="survey", eps=1)) as ledger:
            with ledger:
                count(ledger, 0.3)
            count(ledger, 0.3)  # the inner block says who pays, and closes nothing
        with pytest.raises(pdrisk.LedgerError, match="was closed; nothing was answered"):
            count(ledger, 0.1)
        ledger.close()
        assert pdrisk.Ledger(path, dataset="survey").remaining().eps == 0.4

    @pytest.mark.parametrize("way", ["closed", "let go", "thread ended"])
    def test_no_connection_is_left_open(self, path, monkeypatch, way):
        """Python 3.13 warns of those that are."""
        opened, shut = [], []

        class Counted(sqlite3.Connection):
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                opened.append(1)

            def close(self):
                shut.append(1)
                super().close()

        monkeypatch.setattr(sqlite3, "connect", partial(Counted, isolation_level=None))
        ledger = pdrisk.Ledger(path, dataset="survey", eps=9)
        thread = threading.Thread(target=count, args=(ledger, 0.1))
        thread.start()
        thread.join()
        count(ledger, 0.1)
        assert len(opened) == 2
        if way == "thread ended":
            assert len(shut) == 1
        ledger.close() if way == "closed" else None
        del ledger
        gc.collect()
        assert len(shut) == 2

    def test_who_makes_the_file_just_now_is_waited_for(self, path):
        path.touch()
        maker = threading.Timer(0.3, lambda: (path.unlink(), pdrisk.Ledger(path, dataset="survey", eps=1)))
        maker.start()
        ledger = pdrisk.Ledger(path, dataset="survey", eps=1)
        maker.join()
        assert ledger.remaining().eps == 1


class TestDamagedBodies:
    """History of what no ledger wrote: one sentence, from Python and from the shell."""

    @pytest.mark.parametrize(
        "body",
        ["{", "[]", "null", '{"of":99999999999999999999}', '{"of":"x"}', '{"limits":{}}', '{"question":{"lines":5}}'],
    )
    def test_history(self, path, body, capsys):
        ledger = at_work(path)
        with closing(sqlite3.connect(path)) as other:
            other.execute("DROP TRIGGER records_stay")
            other.execute("UPDATE records SET body = ? WHERE event = 'failed'", (body,))
            other.commit()
        for tell in (ledger.history, lambda: ledger.export(io.StringIO())):
            with pytest.raises(pdrisk.LedgerError, match=r"damaged.*verify"):
                tell()
        assert main(["ledger", "show", str(path), "--dataset", "survey"]) == 2
        assert re.fullmatch(r"pdrisk: .*\n", capsys.readouterr().err)

    @pytest.mark.parametrize("wrong", [None, 1, b"all.csv"])
    def test_export_to_nothing(self, path, wrong):
        with pytest.raises(pdrisk.ColumnTypeError, match="a path or an open file, not to"):
            at_work(path).export(wrong)

    def test_an_unknown_home(self):
        with pytest.raises(pdrisk.ParameterError, match="unknown home"):
            pdrisk.Ledger("~nobody-of-this-name/budget.db", dataset="x", eps=1)


class TestNames:
    """Where a ledger is, and whose it is: what would begin a second budget for the same people is refused."""

    def test_nothing_is_made_without_a_limit(self, path):
        with pytest.raises(pdrisk.ParameterError, match="'survey' would begin a new ledger: give it a limit, such as"):
            pdrisk.Ledger(path, dataset="survey")
        assert not path.exists()

    def test_another_dataset_without_a_limit(self, path):
        at_work(path)
        with pytest.raises(pdrisk.ParameterError, match="or write the name of one it knows: 'other', 'survey'"):
            pdrisk.Ledger(path, dataset="surveys")

    @pytest.mark.parametrize("name", ["Survey 2019", "survey  2019", " SURVEY 2019"])
    @pytest.mark.parametrize("limits", [{}, {"eps": 1}])
    def test_the_same_name_written_otherwise(self, path, name, limits):
        pdrisk.Ledger(path, dataset="survey 2019", eps=1)
        with pytest.raises(pdrisk.ParameterError, match="knows the dataset 'survey 2019', not"):
            pdrisk.Ledger(path, dataset=name, **limits)
        assert pdrisk.Ledger.datasets(path) == ["survey 2019"]

    def test_paths(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        for number, where in enumerate(["~/a.db", "sqlite:///b.db", f"sqlite:///{tmp_path}/c.db", tmp_path / "d.db"]):
            count(pdrisk.Ledger(where, dataset="survey", eps=1))
            assert pdrisk.Ledger(tmp_path / f"{'abcd'[number]}.db", dataset="survey").remaining().eps == 0.9

    @pytest.mark.parametrize(
        "where", ["", ":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://h/d", 5]
    )
    def test_no_paths(self, where, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(pdrisk.ParameterError, match=r"pass (the|a) path"):
            pdrisk.Ledger(where, dataset="survey", eps=1)
        assert list(tmp_path.iterdir()) == []


class TestCommandLine:
    """``pdrisk ledger`` shows, checks and exports without Python; what cannot be done is one sentence and status 2."""

    def test_show(self, path, capsys):
        at_work(path)
        assert main(["ledger", "show", str(path), "--dataset", "survey"]) == 0
        printed = capsys.readouterr().out
        for part in ("'budget.db'", "eps left          1.1", "count() where a mask", "opened", "failed", "amended"):
            assert part in printed

    def test_verify(self, path, capsys):
        number, last = at_work(path).verify()
        assert main(["ledger", "verify", str(path)]) == 0
        assert capsys.readouterr().out == f"{number} records, whole and in order; note down {number}:{last}\n"
        assert main(["ledger", "verify", str(path), "--head", f"{number}:{last}"]) == 0
        assert main(["ledger", "verify", str(path), "--head", f"{number}:{last[::-1]}"]) == 2
        assert "does not hold the record that was noted down" in capsys.readouterr().err
        assert main(["ledger", "verify", str(path), "--head", last]) == 2
        assert "NUMBER:HASH" in capsys.readouterr().err

    def test_export(self, path, tmp_path, capsys):
        at_work(path)
        assert main(["ledger", "export", str(path), "--dataset", "other", "--to", str(tmp_path / "all.csv")]) == 0
        assert pd.read_csv(tmp_path / "all.csv")["event"].tolist() == ["opened", "paid"]

    def test_export_without_a_file(self, path, capsys):
        ledger = at_work(path)
        assert main(["ledger", "export", str(path), "--dataset", "survey"]) == 0
        printed = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert printed["query"].tolist() == ledger.history()["query"].tolist()
        assert set(printed["dataset"]) == {"survey"} and '"mechanism": "geometric"' in printed["question"].iloc[1]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["show", "FILE"], "pass --dataset, one of other, survey"), (["show", "none.db"], "no ledger 'none.db'"),
            (["show", "FILE", "--dataset", "survy"], "unknown dataset 'survy'"),
            (["export", "FILE", "--dataset", "other", "--to", "a.xls"], "'.xls'"),
            (["export", "FILE", "--dataset", "other", "--to", "none/a.csv"], "none"),
        ],
        ids=str,
    )  # fmt: skip
    def test_errors(self, path, capsys, monkeypatch, arguments, words):
        at_work(path)
        monkeypatch.chdir(path.parent)
        assert main(["ledger", *(path.name if each == "FILE" else each for each in arguments)]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and words in printed.err
        assert re.fullmatch(r"pdrisk: .*\n", printed.err)
        assert [each.name for each in path.parent.iterdir()] == [path.name]
