"""What is done to a ledger's tables on a PostgreSQL server is refused there or found, and rights divide the work."""

import re

import pandas as pd
import pytest

import pdrisk
from ledgers import count
from paths import DOCS
from postgres_databases import connected, needs_server, role, run

pytestmark = [needs_server, pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")]


def opened(url, **said):
    return pdrisk.Ledger(url, **{"dataset": "survey"} | said)


def at_work(url):
    """Three payments, of one dataset."""
    ledger = opened(url, eps=1)
    for eps in (0.1, 0.2, 0.3):
        count(ledger, eps)
    return ledger


TAMPERED = {
    "a record changed": "UPDATE records SET eps = '0' WHERE seq = 2",
    "one taken out": "DELETE FROM records WHERE seq = 3",
    "the last taken out": "DELETE FROM records WHERE seq = 4",
    "all gone": "TRUNCATE records",
    "sums changed": "UPDATE spending SET eps = '1/100'",
    "sums gone": "TRUNCATE spending",
    "limits raised": """UPDATE datasets SET limits = replace(limits, '"1"', '"100"')""",
}
ADDED = "CREATE FUNCTION public.forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
CHANGED = {
    "a trigger disabled": "ALTER TABLE records DISABLE TRIGGER records_stay",
    "all disabled": "ALTER TABLE records DISABLE TRIGGER ALL",
    "one for replicas only": "ALTER TABLE records ENABLE REPLICA TRIGGER records_remain",
    "a trigger dropped": "DROP TRIGGER records_not_emptied ON records",
    "a trigger of other rows": "DROP TRIGGER records_follow ON records; CREATE TRIGGER records_follow BEFORE INSERT ON "
    "records FOR EACH ROW WHEN (NEW.eps <> '0') EXECUTE FUNCTION follow()",
    "a trigger more": ADDED
    + "CREATE TRIGGER forget BEFORE UPDATE ON spending FOR EACH ROW EXECUTE FUNCTION public.forget()",
    "a trigger's function": "CREATE OR REPLACE FUNCTION stay() RETURNS trigger SET search_path = pg_catalog, pg_temp "
    "LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "a function's settings": "ALTER FUNCTION follow() RESET search_path",
    "a function of an owner": "ALTER FUNCTION follow() SECURITY DEFINER",
    "a function more": "CREATE FUNCTION max(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1'",
    "another function": ADDED + "DROP TRIGGER records_stay ON records; "
    "CREATE TRIGGER records_stay BEFORE UPDATE ON records FOR EACH STATEMENT EXECUTE FUNCTION public.forget()",
    "an operator": "CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)",
    "an index dropped": "DROP INDEX records_of",
    "an index of other columns": "DROP INDEX records_of; CREATE INDEX records_of ON records (seq, dataset)",
    "an index of some": "DROP INDEX records_of; CREATE INDEX records_of ON records (dataset, seq) WHERE seq > 5",
    "a unique index": "CREATE UNIQUE INDEX ON records (hash)",
    "no primary key": "ALTER TABLE records DROP CONSTRAINT records_pkey",
    "another primary key": "ALTER TABLE curator_people DROP CONSTRAINT curator_people_pkey, ADD PRIMARY KEY (counted)",
    "a check": "ALTER TABLE records ADD CHECK (seq < 5)",
    "a foreign key": "ALTER TABLE records ADD FOREIGN KEY (dataset) REFERENCES datasets (name)",
    "a column more": "ALTER TABLE spending ADD COLUMN note TEXT",
    "a column less": "ALTER TABLE curator_people DROP COLUMN losses",
    "a column's type": "ALTER TABLE spending ALTER COLUMN queries TYPE integer",
    "a column's length": "ALTER TABLE spending ALTER COLUMN eps TYPE varchar(100)",
    "a default": "ALTER TABLE spending ALTER COLUMN eps SET DEFAULT '0'",
    "a column that may be null": "ALTER TABLE spending ALTER COLUMN eps DROP NOT NULL",
    "another order of texts": 'ALTER TABLE answers ALTER COLUMN body TYPE text COLLATE "C"',
    "a table more": "CREATE TABLE more (id TEXT)",
    "a table less": "DROP TABLE curator_releases",
    "a table lost by a power cut": "ALTER TABLE spending SET UNLOGGED",
    "a table with heirs": "CREATE TABLE public.heir () INHERITS (pdrisk.records)",
    "a view for a table": "ALTER TABLE spending SET SCHEMA public; "
    "CREATE VIEW spending AS SELECT * FROM public.spending",
    "a rule": "CREATE RULE forget AS ON UPDATE TO spending DO INSTEAD NOTHING",
    "a rule beside": "CREATE RULE noted AS ON INSERT TO answers DO ALSO NOTHING",
    "row security": "ALTER TABLE spending ENABLE ROW LEVEL SECURITY",
    "a policy": "CREATE POLICY none ON spending USING (false)",
}  # fmt: skip
COPY = (
    "INSERT INTO pdrisk.records SELECT {seq}, time, dataset, analyst, event, eps, body, hash FROM pdrisk.records "
    "WHERE seq = 4"
)


class TestTampering:
    """Whoever changes rows, tables, or what guards them is found out, be it a superuser."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED.keys())
    def test_rows(self, url, statement):
        ledger = at_work(url)
        head = ledger.verify()
        for quiet in ("SET session_replication_role = replica", "ALTER TABLE pdrisk.records DISABLE TRIGGER USER"):
            with connected(url) as other, other.transaction():
                other.execute("SET search_path = pdrisk")
                other.execute(quiet)
                other.execute(statement)
                other.execute("ALTER TABLE pdrisk.records ENABLE TRIGGER USER")
            for noted in (None, head):
                with pytest.raises(pdrisk.LedgerError, match=r"is broken|does not hold"):
                    ledger.verify(noted)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("statement", CHANGED.values(), ids=CHANGED.keys())
    def test_tables(self, url, statement):
        ledger = at_work(url)
        assert ledger.verify()[0] == 4
        run(url, "SET search_path = pdrisk", statement)
        with pytest.raises(pdrisk.LedgerError, match=r"somebody changed its tables or triggers|cannot be used"):
            ledger.verify()
        with pytest.raises(pdrisk.LedgerError, match=r"somebody changed its tables or triggers|cannot be used"):
            opened(url).verify()

    @pytest.mark.slow
    def test_what_is_not_a_change(self, url):
        """Rights, comments, statistics and what is beside the schema are its owner's."""
        ledger = at_work(url)
        with role(url) as (_, name):
            run(
                url, f"GRANT ALL ON SCHEMA pdrisk TO {name}", f"GRANT ALL ON ALL TABLES IN SCHEMA pdrisk TO {name}",
                "COMMENT ON TABLE pdrisk.records IS 'ours'", "VACUUM ANALYZE", "REINDEX SCHEMA pdrisk",
                "CREATE TABLE public.records (seq INT)", "CLUSTER pdrisk.records USING records_pkey",
                "ALTER TABLE pdrisk.records SET (autovacuum_enabled = false)",
            )  # fmt: skip
            assert ledger.verify()[0] == 4

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize(
        ("statement", "words"),
        [
            ("UPDATE pdrisk.records SET eps = '0'", "records stay"), ("DELETE FROM pdrisk.records", "records stay"),
            ("TRUNCATE pdrisk.records", "records stay"), (COPY.format(seq=0), "records follow"),
            (COPY.format(seq=4), "records follow"), (COPY.format(seq=6), "records follow"),
            (COPY.format(seq="NULL"), "records follow"),
            (COPY.format(seq=4) + " ON CONFLICT (seq) DO UPDATE SET eps = '0'", "records"),
        ],
    )  # fmt: skip
    def test_the_server_defends_its_records(self, url, statement, words):
        import psycopg

        ledger = at_work(url)
        with pytest.raises(psycopg.Error, match=words):
            run(url, statement)
        assert ledger.verify()[0] == 4

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("table", ["records", "spending"])
    def test_triggers_that_forget(self, url, table):
        ledger = at_work(url)
        run(
            url,
            ADDED,
            f"CREATE TRIGGER a BEFORE INSERT OR UPDATE ON pdrisk.{table} FOR EACH ROW EXECUTE FUNCTION public.forget()",
        )
        for _ in range(3):
            with pytest.raises(pdrisk.LedgerError, match=r"does not keep what is written|is damaged"):
                count(ledger)

    @pytest.mark.slow
    def test_hidden_rows_are_no_smaller_sum(self, url):
        ledger = at_work(url)
        with role(url) as (own, name):
            run(url, f"GRANT USAGE ON SCHEMA pdrisk TO {name}", f"GRANT ALL ON ALL TABLES IN SCHEMA pdrisk TO {name}")
            run(url, "ALTER TABLE pdrisk.spending ENABLE ROW LEVEL SECURITY")
            with pytest.raises(pdrisk.LedgerError, match="row-level security"):
                opened(own).remaining()
        assert ledger.remaining().eps == 0.4


def grants():
    """The statements that docs/ledger.md gives an owner."""
    text = (DOCS / "ledger.md").read_text("utf-8")
    return re.search(r"```sql\n(GRANT .*?)```", text, re.DOTALL)[1]


class TestRights:
    """With the rights that the documentation lists, analysts ask and pay, and change nothing else."""

    @pytest.fixture
    def analyst(self, url):
        owner = opened(url, eps=1)
        with role(url) as (own, name):
            run(url, re.sub(r"\banalysts\b", name, grants()))
            yield own, owner

    @pytest.mark.slow
    def test_an_analyst_pays(self, analyst):
        own, owner = analyst
        ledger = opened(own)
        with ledger:
            count(None, 0.3)
        for call in (lambda: count(ledger, 5), lambda: count(ledger, 0.2, where=lambda frame: 1 / 0)):
            with pytest.raises((pdrisk.BudgetExceededError, pdrisk.QueryFailedError)):
                call()
        assert (ledger.remaining().eps, owner.remaining().eps) == (0.5, 0.5)
        assert ledger.verify() == owner.verify() and pdrisk.Ledger.datasets(own) == ["survey"]

    @pytest.mark.slow
    def test_what_is_remembered_and_what_it_meant(self, analyst, url, tmp_path, monkeypatch):
        """All tables are written with these rights, the curator's too."""
        monkeypatch.setenv("PDRISK_SECRET", "ab" * 32)
        frame = pd.DataFrame({"pid": range(60), "age": [30, 41, 52] * 20})
        told = {"person": "pid", "per_person": "one"}
        owner = opened(url, dataset="kept", eps=1, policy={"curator_facts": True})
        owner.amend(policy={"curator_facts": True, "curators": [owner.analyst]})
        d = pdrisk.Dataset(frame, ledger=opened(analyst[0], dataset="kept"), **told)
        first, again = (d.count(eps=0.1, where="age > 40") for _ in range(2))
        d.sum("age", eps=0.2, bounds=(0, 99))
        with pytest.raises(pdrisk.PolicyError, match="not one of the curators"):
            d.ledger.facts()
        assert (first.value == again.value, owner.remaining().eps) == (True, 0.7)
        assert owner.facts()["eps"].tolist() == [0.1, 0.2] and len(owner.odometer(frame)) == 60
        policy = {"curator_facts": True, "curators": ["ann"]}
        in_file = opened(tmp_path / "budget.db", dataset="kept", eps=1, analyst="ann", policy=policy)
        held = pdrisk.Dataset(frame, ledger=in_file, **told)
        for _ in range(2):
            held.count(eps=0.1, where="age > 40")
        held.sum("age", eps=0.2, bounds=(0, 99))
        pd.testing.assert_frame_equal(
            *(each.facts().drop(columns="time", errors="ignore").reset_index(drop=True) for each in (owner, in_file))
        )
        pd.testing.assert_frame_equal(owner.odometer(frame), in_file.odometer(frame))
        assert owner.verify()[0] == len(owner.history()) + 1

    @pytest.mark.slow
    def test_an_analyst_changes_nothing(self, analyst, url):
        import psycopg

        own, owner = analyst
        ledger = opened(own)
        count(ledger, 0.3)
        head = owner.verify()
        for call in (lambda: ledger.amend(eps=9), lambda: opened(own, dataset="other", eps=1)):
            with pytest.raises(pdrisk.LedgerError, match="permission denied for table datasets"):
                call()
        for statement in (
            *(f"DELETE FROM pdrisk.{table}" for table in ("records", "spending", "datasets", "answers", "ledger")),
            *("UPDATE pdrisk.records SET eps = '0'", "TRUNCATE pdrisk.spending", "DROP TABLE pdrisk.spending"),
            *("ALTER TABLE pdrisk.records DISABLE TRIGGER ALL", "CREATE TABLE pdrisk.x ()"),
            *("UPDATE pdrisk.ledger SET version = 1", "SET session_replication_role = replica"),
        ):
            with pytest.raises(psycopg.Error, match=r"permission denied|must be owner"):
                run(own, statement)
        assert owner.verify() == head and owner.limits.eps == 1
