"""What a ledger file holds: every request and nothing of the data, and whether anybody changed it."""

import json
import re
import resource
import sqlite3
from contextlib import closing, suppress
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import at_work, typed
from pdrisk._ledger import verify
from pdrisk._ledger.store.records import START, chained
from pdrisk._ledger.store.sqlite import SqliteStore

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

PARTS = {"bounds": (1, 675)}


def people() -> pd.DataFrame:
    return typed(pd.DataFrame({"distance": [3, 1, 10, 675, 17], "age": [30, 41, 52, 63, 40], "sex": list("fmmmf")}))


def count(ledger, eps=0.1, **options):
    return people().dprisk.count(eps=eps, ledger=ledger, **options)


@pytest.fixture
def change(path):
    """Runs statements on the file as somebody may who has it, the triggers out of the way."""

    def change(*statements, values=()):
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            triggers = other.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                other.execute(f"DROP TRIGGER {name}")
            answer = [other.execute(statement, values).fetchall() for statement in statements][-1]
            for _, sql in triggers:
                other.execute(sql)
            return answer

    return change


def written_anew(change, rows, spent):
    """Records with a right chain, and sums and limits that fit: only a head noted elsewhere can tell."""
    change("DELETE FROM records", "DELETE FROM spending", "DELETE FROM datasets")
    before = START
    for row in rows:
        before = chained(before, *row)
        change("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values=(*row, before))
        if row[4] in ("opened", "amended"):
            limits = json.dumps(json.loads(row[6]).get("limits"))
            change("INSERT OR REPLACE INTO datasets VALUES (?, ?)", values=(row[2], limits))
    for row in spent:
        change(f"INSERT INTO spending VALUES ({', '.join('?' * len(row))})", values=row)


ASKED = {
    "count()": lambda led: count(led, 1),
    "mean(distance)": lambda led: people().dprisk.mean("distance", eps=1, ledger=led, **PARTS),
    "quantile(0.9) of age": lambda led: people().dprisk.quantile("age", q=0.9, eps=1, ledger=led, **PARTS),
    "max(age), mean(age), count()": lambda led: people().dprisk.agg(
        {"age": ["max", "mean"], None: "count"}, eps=1, ledger=led, **PARTS
    ),
    "count() where age > 40 by sex": lambda led: count(led, 1, where="age > 40", by="sex", keys=["f"]),
    "count() by sex, age": lambda led: count(led, 1, by=["sex", "age"], keys=[("f", 30)]),
    "count() where a mask or function": lambda led: count(led, 1, where=lambda frame: frame["age"] > 40),
    "suggest_bounds(x)": lambda led: pd.DataFrame({"x": [42.0] * 500}).dprisk.suggest_bounds("x", eps=1, ledger=led),
}
IN_SQL = {
    "SELECT COUNT(*) FROM survey WHERE age > 40": [r'"age" > 40'],
    "SELECT AVG(age) FILTER (WHERE sex = 'f') FROM survey": [r"mean\(age\)", r"\"sex\" = 'f'"],
    "SELECT COUNT(*) FROM (SELECT * FROM survey WHERE age < 9) WHERE sex = 'f'": ['"age" < 9', "\"sex\" = 'f'"],
    "SELECT COUNT(*) FROM survey": ["survey"],
    "SELECT COUNT(*) FROM survey AS s": ["survey"],
}


COLUMNS = [
    *("time", "analyst", "event", "asked", "eps", "delta", "mu", "total", "query", "bounds", "mechanism", "of"),
    *("reason", "publication"),
]


class TestHistory:
    """Every request of a dataset in order: who asked what and when, what became of it, and what it cost."""

    def test_the_table(self, path):
        table = at_work(path).history()
        assert table.columns.tolist() == COLUMNS
        assert (table.index.name, table.index.tolist()) == ("seq", [1, 2, 3, 4, 5, 8, 9])
        assert table["event"].tolist() == ["opened", "paid", "refused", "paid", "failed", "amended", "paid"]
        assert table["eps"].tolist() == [0, 0.1, 0, 0.1, 0, 0, 0.7]
        assert table["total"].tolist() == [0, 0.1, 0.1, 0.2, 0.2, 0.2, 0.9]
        assert table["time"].is_monotonic_increasing and str(table["time"].dt.tz) == "UTC"
        assert set(table["analyst"]) == {"ann"}
        assert table["asked"].tolist() == [0, 0.1, 5, 0.1, 0, 0, 0.7]
        assert table["query"].notna().all() and table["query"][5] == table["query"][4]  # which failed
        assert table["of"].fillna(0).tolist() == [0, 0, 0, 0, 4, 0, 0]
        assert table["reason"].notna().tolist() == [False, False, True, False, False, False, False]

    def test_totals_are_exact(self, path):
        ledger = pdrisk.Ledger(path, dataset="survey", eps=1)
        for _ in range(10):
            count(ledger)
        assert ledger.history()["total"].tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]

    @pytest.mark.parametrize("text", ASKED)
    def test_says_what_was_asked(self, path, text):
        ledger = pdrisk.Ledger(path, dataset="survey", eps=1)
        ASKED[text](ledger)
        assert ledger.history()["query"].iloc[-1] == text

    @pytest.mark.parametrize("query", IN_SQL)
    def test_says_what_was_asked_in_sql(self, path, query):
        ledger = pdrisk.Ledger(path, dataset="survey", eps=1)
        pdrisk.sql(query, eps=1, bounds=(0, 99), ledger=ledger, survey=people())
        said = ledger.history()["query"].iloc[-1]
        assert all(re.search(part, said) for part in IN_SQL[query]), said

    def test_datasets_share_a_file_and_nothing_else(self, path):
        ledger = at_work(path)
        other = pdrisk.Ledger(path, dataset="other", analyst="ann")
        assert pdrisk.Ledger.datasets(path) == ["other", "survey"]
        assert (other.remaining().spent, other.remaining().queries, other.limits.eps) == (0.3, 4, None)
        assert (other.history().index.tolist(), ledger.remaining().spent) == ([6, 7], 0.9)
        assert ledger.verify() == other.verify()


CHANGES = {
    "time": "'2020-01-01T00:00:00.000000+00:00'", "dataset": "'else'", "analyst": "'eve'", "event": "'reused'",
    "eps": "'1/100'", "body": "'{}'", "hash": f"'{'f' * 64}'", "seq": "seq + 100",
    "eps, written otherwise": "eps || '/1'", "body, a blank": "body || ' '", "analyst, of another kind": "x'ff'",
}  # fmt: skip
SUMS = {
    "less eps": "UPDATE spending SET eps = '1/100' WHERE analyst = ''",
    "fewer queries": "UPDATE spending SET queries = 0 WHERE analyst = 'ann' AND period = ''",
    "a delta": "UPDATE spending SET delta = '1/1000' WHERE analyst = 'ann'",
    "less of m": "UPDATE spending SET mu2 = '1/1000' WHERE analyst = ''",
    "none": "DELETE FROM spending",
    "none of a day": "DELETE FROM spending WHERE length(period) = 10",
    "of somebody else": "UPDATE spending SET analyst = 'eve' WHERE analyst = 'ann'",
    "of another month": "UPDATE spending SET period = '2000-01' WHERE length(period) = 7",
    "one more": "INSERT INTO spending VALUES ('survey', 'eve', '', '0', 0, '0', '0')",
    **{
        f"{value} for eps": f"UPDATE spending SET eps = {value}"
        for value in ("'much'", "''", "'1/0'", "x'ff'", "'nan'")
    },
    "a text for queries": "UPDATE spending SET queries = 'few'",
}
RULES = {
    "raised": """UPDATE datasets SET limits = replace(limits, '"2"', '"2000"')""",
    "rules taken away": """UPDATE datasets SET limits = replace(limits, 'y": {}', 'y": {"keys_from_data": true}')""",
    "no JSON": "UPDATE datasets SET limits = 'none'",
    "forgotten": "DELETE FROM datasets WHERE name = 'survey'",
    "renamed": "UPDATE datasets SET name = 'mine' WHERE name = 'survey'",
    "one more": "INSERT INTO datasets SELECT 'mine', limits FROM datasets WHERE name = 'survey'",
}
COPY = "INSERT INTO records SELECT {}, time, dataset, analyst, event, eps, body, hash FROM records WHERE seq = {}"
MOVED = {
    "swapped": [f"UPDATE records SET seq = {to} WHERE seq = {seq}" for seq, to in ((3, -1), (4, 3), (-1, 4))],
    "copied": [COPY.format(10, 9)],
    "before the first": [COPY.format(0, 1)],
    "without a number": [COPY.format("NULL", 1)],
    "cut off with the sums left": ["DELETE FROM records WHERE seq = 9"],
    "all gone": ["DELETE FROM records"],
}


class TestVerify:
    """Whoever changes the file is found out; who writes all of it anew, by a head that was noted elsewhere."""

    def broken(self, ledger, head=None):
        with pytest.raises(pdrisk.LedgerError, match=r"is broken|does not hold|cannot be used"):
            ledger.verify(head)

    def test_an_honest_one(self, path):
        ledger = pdrisk.Ledger(path, dataset="survey", eps=1)
        heads = [(0, START), ledger.verify()]
        count(ledger)
        ledger = at_work(path.with_name("other.db")) and ledger
        heads.append(ledger.verify())
        assert [number for number, _ in heads] == [0, 1, 2]
        assert all(re.fullmatch("[0-9a-f]{64}", text) for _, text in heads)
        assert all(ledger.verify(head=head) == heads[-1] for head in (*heads, list(heads[1]), None))

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("seq", [1, 2, 5, 9])
    @pytest.mark.parametrize("field", CHANGES)
    def test_every_field_of_every_record(self, path, change, field, seq):
        ledger = at_work(path)
        change(f"UPDATE records SET {field.partition(',')[0]} = {CHANGES[field]} WHERE seq = {seq}")
        self.broken(ledger)

    @pytest.mark.parametrize("seq", range(1, 9))
    def test_a_record_taken_out(self, path, change, seq):
        ledger = at_work(path)
        change(f"DELETE FROM records WHERE seq = {seq}")
        with pytest.raises(pdrisk.LedgerError, match=f"is broken: record {seq} is missing"):
            ledger.verify()

    @pytest.mark.parametrize("statements", MOVED.values(), ids=MOVED.keys())
    def test_records_moved(self, path, change, statements):
        ledger = at_work(path)
        change(*statements)
        self.broken(ledger)

    @pytest.mark.parametrize("statement", SUMS.values(), ids=SUMS.keys())
    def test_sums_changed(self, path, change, statement):
        ledger = at_work(path)
        change(statement)
        self.broken(ledger)

    @pytest.mark.parametrize("statement", RULES.values(), ids=RULES.keys())
    def test_limits_changed_without_a_record(self, path, change, statement):
        ledger = at_work(path)
        change(statement)
        self.broken(ledger)

    def test_a_dataset_entered_twice(self, path, change):
        at_work(path)
        change("DELETE FROM datasets WHERE name = 'survey'")
        with pytest.raises(pdrisk.LedgerError):
            pdrisk.Ledger(path, dataset="survey", eps=50).verify()

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("kept", [8, 7, 1, 0])
    def test_cut_off_or_written_anew(self, path, change, kept, monkeypatch):
        ledger = at_work(path)
        head = ledger.verify()
        rows = change("SELECT seq, time, dataset, analyst, event, eps, body FROM records ORDER BY seq")
        spent = change("SELECT * FROM spending")
        written_anew(change, [(*row[:3], "eve", *row[4:]) for row in rows], [])
        self.broken(ledger, head)
        written_anew(change, rows, spent)
        assert ledger.verify(head) == head
        rows = [row if row[4] != "paid" else (*row[:4], "refused", "0", row[6]) for row in rows]
        written_anew(change, rows[:kept], [])
        self.broken(ledger)
        monkeypatch.setattr("pdrisk._ledger.store.rollback.SEEN", {})  # as in a process that has seen nothing of it
        other = SqliteStore(path)
        assert verify(other)[0] == kept
        with pytest.raises(pdrisk.LedgerError, match="does not hold"):
            verify(other, head)

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize(
        ("at", "field", "value"), [(1, 1, "now"), (1, 5, "much"), (1, 5, "1/0"), (0, 6, "{}"), (0, 6, "[")], ids=str
    )
    def test_nonsense_with_a_right_chain(self, path, change, at, field, value):
        ledger = at_work(path)
        rows = change("SELECT seq, time, dataset, analyst, event, eps, body FROM records ORDER BY seq")
        rows[at] = (*rows[at][:field], value, *rows[at][field + 1 :])
        with suppress(ValueError):
            written_anew(change, rows, change("SELECT * FROM spending"))
        self.broken(ledger)

    @pytest.mark.parametrize("head", [5, "head", (1,), (1, 2, 3), (10, "f" * 64), (9, START)], ids=str)
    def test_a_wrong_head(self, path, head):
        with pytest.raises(pdrisk.PdriskError):
            at_work(path).verify(head)

    @pytest.mark.parametrize(
        "statement",
        [
            *("UPDATE records SET eps = '0'", "DELETE FROM records", "DELETE FROM records WHERE seq = 9"),
            "INSERT OR REPLACE INTO records SELECT seq, time, dataset, 'eve', event, eps, body, hash FROM records",
        ],
    )
    def test_the_file_defends_its_records(self, path, statement):
        ledger = at_work(path)
        with closing(sqlite3.connect(path)) as other, pytest.raises(sqlite3.IntegrityError, match=r"records|UNIQUE"):
            other.execute(statement)
        assert ledger.verify()[0] == 9


ROWS = 104_729
SECRETS = ("987654321", "SENTINEL", str(ROWS), "1987-06-05")


class TestNothingOfTheData:
    """No value, label, count, exact answer or local sensitivity ever reaches the file."""

    def test_the_bytes_of_the_file(self, path):
        frame = pd.DataFrame({"x": np.full(ROWS, 987654321.5), "g": "SENTINEL", "day": pd.Timestamp("1987-06-05")})
        frame["kind"] = frame["g"].astype("category")
        rules = {"bounds_from_data": True, "keys_from_data": True, "curators": ["ann"]}
        ledger = pdrisk.Ledger(path, dataset="survey", eps=100, analyst="ann", policy=rules)
        ranged = frame.assign(x=[1.0, *frame["x"][1:-1], 987654444.5])
        with ledger:
            releases = [
                frame.dprisk.mean("x", eps=1, bounds=(0, 1e9), curator=True),
                ranged.dprisk.max("x", eps=1, bounds="column", curator=True),
                frame.dprisk.count(eps=1, where=frame["x"] > 5), frame.dprisk.count(eps=1, where=lambda f: f["x"] > 5),
            ]  # fmt: skip
            frame.dprisk.count(eps=1, by=["g", "kind", "day"], keys="observed")
            frame.dprisk.suggest_bounds("x", eps=1)
            pdrisk.sql("SELECT g, AVG(x) FROM t GROUP BY g", eps=1, bounds=(0, 1e9), keys="observed", t=frame)
            for where in (lambda f: {}[f["g"][0]], lambda f: f["g"]):
                with pytest.raises(pdrisk.QueryFailedError):
                    frame.dprisk.count(eps=1, where=where)
            with pytest.raises(pdrisk.BudgetExceededError):
                frame.dprisk.agg({"x": "max", "g": "count"}, eps=100, bounds=(0, 1e9), where="x > 3")
        held = path.read_bytes().decode("latin-1")
        found = [
            *SECRETS,
            *(repr(r.curator.local_sensitivity) for r in releases[:2]),
            *(repr(r.value) for r in releases),
        ]
        assert [secret for secret in found if secret in held] == []
        assert '"x > 3"' in held


class TestExport:
    """A history leaves as CSV or JSON with every digit, whole or not at all."""

    @pytest.fixture
    def ledger(self, path):
        ledger = at_work(path)
        for eps in (Fraction(1, 3), Fraction(1, 10**11), 0.123456789012345):
            count(ledger, eps, where="age > 40 and sex == 'ü,\"'")
        return ledger

    @pytest.mark.parametrize("ending", ["csv", "json"])
    def test_round_trip(self, ledger, tmp_path, ending):
        target = tmp_path / f"history.{ending}"
        assert ledger.export(str(target)) == target
        table = pd.read_csv(target) if ending == "csv" else pd.DataFrame(json.loads(target.read_text("utf-8")))
        known = ledger.history().reset_index()
        for name in ("seq", "analyst", "event", "eps", "total"):
            assert table[name].tolist() == known[name].tolist()
        for name in ("query", "reason"):
            assert table[name].fillna("").tolist() == known[name].fillna("").tolist()
        assert pd.to_datetime(table["time"]).tolist() == known["time"].tolist()

    @pytest.mark.parametrize("name", ["history.xlsx", "history", ".csv", "history.CSV.gz"])
    def test_other_endings(self, ledger, tmp_path, name):
        with pytest.raises(pdrisk.ParameterError, match=r"\.csv or \.json"):
            ledger.export(tmp_path / name)

    @pytest.mark.parametrize("ending", ["csv", "json"])
    def test_a_failing_write(self, ledger, tmp_path, ending):
        target = tmp_path / "out" / f"history.{ending}"
        target.parent.mkdir()
        target.write_text("old")
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, most[1]))
            with pytest.raises((OSError, pdrisk.PdriskError)):
                ledger.export(target)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)
        assert target.read_text() == "old"
        assert [each.name for each in target.parent.iterdir()] == [target.name]
