"""Names and texts of others command no terminal and compute nothing in a spreadsheet, wherever pdrisk shows them."""

import csv
import io
import json
import sys
import unicodedata

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import people, tables
from pdrisk._answer.answers import formatting
from pdrisk._cli import main
from pdrisk._mechanisms.contract import draws
from pdrisk._model.arguments import statistic
from pdrisk._model.query import written
from pdrisk._printing import inert, printable

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
DANGEROUS = [
    "\x1b[31mred", "\x1b]0;title\x07", "a\rb", "a\nb", "a\x08b", "\x9b31m", "a\x00b", "\u202egnp.exe", "\u2066x\u2069",
    "a\u2028b", "a\u2029b", "\u200bzero", "\ufeffmark", "\x85next", "a\vb", "a\fb", "\u061cx", "\U000e0041tag",
]  # fmt: skip
FORMULAS = [
    "=1+1", "+1+1", "-1+1", "@SUM(A1)", " =1", "\t=1", "\tx", "\rx", "\nx", "  +x", "\u200b=x", "\xa0=x", "\ufeff@x",
    "=cmd|' /C calc'!A0", "＝1", "＋x", "－x", "＠x", "-", "=", "@", "+a", "-age", "- a", "\x00=1", "=HYPERLINK(\"x\")",
]  # fmt: skip
HARMLESS = ["age", "a=b", "1-2", "x@y", "-1.5", "+3", "-1e5", "", " ", "'=1", "{\"a\": 1}", "ä", "a\tb"]  # fmt: skip


def shown(text):
    """Whether a terminal draws all of it, and does nothing else."""
    return all(
        sign in "\n\t" or unicodedata.category(sign)[0] not in "CZ" or unicodedata.category(sign) == "Zs"
        for sign in text
    )


class TestPrintable:
    """Signs that cannot be seen are written as numbers; all others stay."""

    def test_every_sign(self):
        signs = [
            *map(chr, range(0x3100)),
            *map(chr, range(0xD700, 0x10000)),
            *map(chr, range(2**16, sys.maxunicode, 101)),
        ]
        drawn = [unicodedata.category(sign)[0] not in "CZ" or unicodedata.category(sign) == "Zs" for sign in signs]
        pairs = zip(signs, drawn, strict=True)
        said = [sign if stays else sign.encode("unicode_escape").decode() for sign, stays in pairs]
        assert printable("".join(signs)) == "".join(said)
        assert printable("\ud800") == "\\ud800"
        assert printable("a\nb\tc\x1b", keep="\n") == "a\nb\\tc\\x1b"

    @pytest.mark.parametrize("text", ["", "plain", "Zoë Groß", "日本語", "20\xa0km", "±2", "€", "👍", "a\\x1b"])
    def test_what_stays(self, text):
        assert printable(text) == text


class TestInert:
    """Texts that a spreadsheet would compute are quoted, in every kind of column; numbers stay."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("text", FORMULAS)
    @pytest.mark.parametrize("dtype", [object, "string", "category", "str", "string[pyarrow]"])
    def test_formulas(self, text, dtype):
        table = inert(pd.DataFrame({text: pd.Series([text, "x", None], dtype=dtype), "n": [-1.5, 2, 3]}))
        assert table.iloc[:2, 0].tolist() == ["'" + text, "x"] and pd.isna(table.iloc[2, 0])
        assert table.columns.tolist() == ["'" + text, "n"] and table["n"].tolist() == [-1.5, 2, 3]

    @pytest.mark.parametrize("text", HARMLESS)
    def test_others(self, text):
        frame = pd.DataFrame({text: [text, -1, None, 2.5, ("=", 1)]}, dtype=object)
        pd.testing.assert_frame_equal(inert(frame), frame)

    def test_numbers(self):
        frame = pd.DataFrame(
            {"a": [-1.5, np.nan], "b": [-1, 2], "c": pd.array([-1, None], dtype="Int64"), "d": [True, False]}
        )
        pd.testing.assert_frame_equal(inert(frame), frame)
        assert inert(pd.DataFrame()).empty

    def test_what_is_given_stays_as_it_is(self):
        frame = pd.DataFrame({"=a": ["=1", "x"]})
        inert(frame)
        assert frame.to_dict("list") == {"=a": ["=1", "x"]}


def asked(ledger, label, where=None):
    frame = people(9).rename(columns={"age": label})
    try:
        frame.dprisk.mean(label, eps=1, bounds=(0, 99), ledger=ledger)
        frame.dprisk.count(eps=1, by=label, keys=["x", label], where=where, ledger=ledger)
    except pdrisk.ParameterError:  # such as of a label that is no text
        pass


def cells(text):
    """Every cell of a CSV text."""
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


class TestExports:
    """No cell of a CSV file that pdrisk writes begins a formula, whoever named what is in it."""

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("name", [text for text in FORMULAS if text.isprintable()])
    def test_names(self, path, tmp_path, name, capsys):
        ledger = pdrisk.Ledger(path, dataset=name, analyst=name, eps=9)
        asked(ledger, name, where="hours > 3")
        with pytest.raises(pdrisk.BudgetExceededError):
            people(9).rename(columns={"age": name}).dprisk.count(name, eps=10, ledger=ledger)
        text = ledger.export(tmp_path / "all.csv").read_text("utf-8")
        found = cells(text)
        assert "'" + name in found
        assert not [cell for cell in found if cell.strip()[:1] in "=+-@＝＋－＠\t\r" and cell.strip()]
        table = pd.read_csv(io.StringIO(text))
        assert table["eps"].sum() == ledger.remaining().spent and table["analyst"].unique().tolist() == ["'" + name]
        assert main(["ledger", "export", str(path)]) == 0
        assert "'" + name in cells(capsys.readouterr().out)
        file = io.StringIO()
        ledger.export(file)
        assert file.getvalue() == text
        whole = json.loads(ledger.export(tmp_path / "all.json").read_text("utf-8"))
        assert {each["analyst"] for each in whole} == {name}  # no spreadsheet reads it

    @pytest.mark.parametrize("label", FORMULAS)
    def test_labels(self, book, label):
        ledger, file = book(), io.StringIO()
        asked(ledger, label)
        ledger.export(file)
        assert not [cell for cell in cells(file.getvalue()) if cell.strip()[:1] in "=+-@＝＋－＠" and cell.strip()]

    @pytest.mark.slow
    def test_what_is_asked_of(self, book, tmp_path):
        """Reports of pdrisk assess, with names of columns and groups."""
        frame = pd.DataFrame({"=age": [30, 41, 52, 63] * 5, "@sex": ["=f", "-m", "+x", "-1.5"] * 5})
        frame.to_csv(tmp_path / "data.csv", index=False)
        folder = tmp_path / "out"
        assert (
            main(["assess", str(tmp_path / "data.csv"), "--by", "@sex", "--bounds", "=age=0:99", "--to", str(folder)])
            == 0
        )
        files = sorted(folder.glob("*.csv"))
        found = [cell for file in files for cell in cells(file.read_text("utf-8"))]
        assert {"'=age", "'=f", "'-m", "'+x", "-1.5"} <= set(found) and len(files) >= 3
        assert not [cell for cell in found if cell[:1] in ("=", "@", "+", "-") and cell != "-1.5" and not number(cell)]


def number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


class TestTerminals:
    """What pdrisk prints, shows and says holds no sign that a terminal would obey."""

    @pytest.mark.parametrize("label", DANGEROUS)
    def test_releases(self, label):
        frame = people(9).rename(columns={"age": label})
        release = frame.dprisk.mean(label, eps=1, bounds=(0, 99))
        several = frame.dprisk.identifiability(label, "mean", eps=1, bounds=(0, 99))
        for text in (repr(release), release._repr_html_(), str(release.name), repr(several), several._repr_html_()):
            assert shown(text), text
        for audience in ("participant", "analyst", "curator", "publication"):
            assert shown(release.explain(audience))
        with pytest.raises(pdrisk.PdriskError) as caught:
            frame.dprisk.max(label, eps=1)
        assert shown(str(caught.value)) and "\n" not in str(caught.value)
        with pytest.raises(pdrisk.UnknownColumnError) as caught:
            frame.dprisk.count("agf" + label, eps=1)
        assert shown(str(caught.value)) and not str(caught.value).startswith("'")

    @pytest.mark.parametrize("label", DANGEROUS)
    def test_filters(self, label):
        frame = people(9).assign(word=label)
        if "\x00" in label:
            with pytest.raises(pdrisk.ParameterError) as caught:
                frame.dprisk.count(eps=1, where=f"word == '{label}'")
            assert shown(str(caught.value))
        else:
            release = frame.dprisk.count(eps=1, where=f"word == {label!r}")
            assert shown(repr(release)) and shown(release._repr_html_()) and shown(release.explain("publication"))

    @pytest.mark.parametrize("label", DANGEROUS)
    def test_warnings(self, label, monkeypatch):
        """Before the answer, by eps alone, and after it, by its interval: all possible answers if nobody is seen."""
        monkeypatch.setattr(draws, "discrete_laplace", lambda exact, change, eps: exact * 0)
        frame = people(9).rename(columns={"age": label})
        for mechanism in ("laplace", "two_sums"):
            with pytest.warns(pdrisk.NoisyReleaseWarning) as heard:
                frame.dprisk.mean(label, eps=0.01, bounds=(0, 99), mechanism=mechanism)
            assert len(heard) == 1
            assert shown(str(heard[0].message)) and "\n" not in str(heard[0].message)

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("label", DANGEROUS)
    def test_the_history(self, path, book, label, capsys):
        ledger = book(eps=5)
        asked(ledger, label, where="hours > 3")
        frame = people(9).rename(columns={"age": label})
        with pytest.raises(pdrisk.BudgetExceededError):
            frame.dprisk.count(label, eps=9, ledger=ledger)
        assert main(["ledger", "show", str(path)]) == 0
        printed = capsys.readouterr().out
        assert shown(printed) and len(printed.splitlines()) == len(repr(ledger).splitlines()) + 3 + len(
            ledger.history()
        )
        assert all(shown(text) and "\n" not in text for text in ledger.history()["query"])
        assert all(shown(text) for text in ledger.history()["reason"].dropna())

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("name", DANGEROUS)
    def test_names_that_somebody_wrote_into_the_file(self, path, name, capsys):
        """No ledger takes such names; a file may hold them."""
        ledger = pdrisk.Ledger(path, dataset="survey", analyst="ann", eps=1)
        people(9).dprisk.count(eps=0.1, ledger=ledger)
        tables(path, "DROP TRIGGER records_stay")
        tables(path, "UPDATE records SET analyst = ?", name)
        tables(path, "UPDATE datasets SET name = ?", name)
        tables(path, "UPDATE records SET dataset = ?", name)
        for arguments in (["show"], ["show", "--dataset", "x"], ["show", "--dataset", name], ["export"], ["verify"]):
            main(["ledger", *arguments[:1], str(path), *arguments[1:]])
            printed = capsys.readouterr()
            assert shown(printed.out + printed.err)
            assert arguments[0] == "export" or name not in printed.out + printed.err

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("name", DANGEROUS)
    def test_analysts(self, path, name, capsys):
        """A server takes any name for a role, and a file any that somebody writes there."""
        ledger = pdrisk.Ledger(path, dataset="survey", analyst="ann", eps=1)
        people(9).dprisk.count(eps=0.1, ledger=ledger)
        tables(path, "DROP TRIGGER records_stay")
        tables(path, "UPDATE records SET analyst = ?", name)
        for action in ("show", "export"):
            assert main(["ledger", action, str(path)]) == 0
            printed = capsys.readouterr().out
            assert shown(printed) and ("\n" in name or printable(name) in printed)

    @pytest.mark.parametrize("name", DANGEROUS)
    def test_tables_of_reprs(self, name):
        rows = [(name, name)]
        for text in (formatting.text(name, rows, rows), formatting.html(name, rows, rows)):
            assert shown(text) and text.count(printable(name)) == 5 and text.count("\n") <= 3

    @pytest.mark.parametrize("name", DANGEROUS)
    def test_places(self, tmp_path, name, capsys):
        from pdrisk._ledger.store.postgres_store import PostgresStore

        store = PostgresStore.__new__(PostgresStore)
        store._where = f"db/{name}"
        assert shown(store.place)
        if "\x00" not in name:
            with pytest.raises(pdrisk.PdriskError) as caught:
                pdrisk.Ledger.datasets(tmp_path / f"{name}.db")
            assert shown(str(caught.value))
            assert main(["ledger", "show", str(tmp_path / f"{name}.db")]) == 2
            assert shown(capsys.readouterr().err)

    @pytest.mark.parametrize("name", DANGEROUS)
    def test_errors(self, name):
        for kind in (pdrisk.ParameterError, pdrisk.UnknownColumnError, pdrisk.LedgerError, pdrisk.PolicyError):
            error = kind(f"unknown {name}")
            assert shown(str(error)) and str(error).startswith("unknown ")
        assert shown(str(pdrisk.BudgetExceededError(f"x {name}", 1, 1, 0)))
        assert str(pdrisk.ParameterError("one\ntwo")) == "one\ntwo"  # pdrisk's own layout

    def test_names_of_statistics(self):
        assert written(statistic("mean").label, "a\x1bb") == "mean(a\\x1bb)"
        assert written("quantile(0.9)", "a\nb") == "quantile(0.9) of a\\nb"
