"""Who asks: in a file a name as people read it, on a PostgreSQL server the role of the session."""

import pickle
import re
from contextlib import nullcontext
from urllib.parse import urlsplit

import pytest

import pdrisk
from ledgers import people, script, tables
from paths import DOCS
from postgres_databases import connected, needs_server, role, run

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
SAME = ["Anna", "anna", "ANNA", " anna", "Anna "]
ALIKE = [("Zoë Groß", "ZOE\u0308  GROSS"), ("ﬁona", "Fiona"), ("Ｂｏｂ", "bob")]


def count(ledger, eps):
    return people(9).dprisk.count(eps=eps, ledger=ledger).eps


def answered(ledger, eps):
    try:
        return count(ledger, eps)
    except pdrisk.BudgetExceededError:
        return 0


def opened(where, analyst=None, **said):
    return pdrisk.Ledger(where, dataset="survey", analyst=analyst, **said)


class TestInAFile:
    """Whoever is one person to people who read the names has one budget, under the spelling of the first payment."""

    @pytest.mark.parametrize("first", SAME)
    def test_one_budget(self, path, first):
        opened(path, "the owner", eps=9, each_analyst={"eps": 1, "queries": 7})
        known = opened(path, first)
        assert count(known, 0.3) == 0.3
        others = [opened(path, name) for name in SAME]
        assert [other.analyst for other in others] == [first] * 5
        assert [answered(other, 0.2) for other in others] == [0.2, 0.2, 0.2, 0, 0]
        with pytest.raises(pdrisk.BudgetExceededError, match=f"analyst {first!r}"):
            count(opened(path, "aNNa"), 0.2)
        assert tables(path, "SELECT DISTINCT analyst FROM records WHERE event = 'paid'") == [(first,)]
        assert tables(path, "SELECT DISTINCT analyst FROM spending WHERE analyst <> ''") == [(first,)]
        known.verify()

    @pytest.mark.parametrize(("one", "other"), ALIKE, ids=str)
    def test_letters_put_together_otherwise(self, path, one, other):
        opened(path, "x", eps=9, each_analyst={"eps": 1})
        assert sum(answered(opened(path, name), 0.6) for name in (one, other)) == 0.6

    def test_opened_by_both_before_either_pays(self, path):
        opened(path, "x", eps=9, each_analyst={"eps": 1})
        both = [opened(path, "Anna"), opened(path, "anna")]
        assert [answered(ledger, 0.4) for ledger in both * 2] == [0.4, 0.4, 0, 0]
        assert [ledger.remaining().eps for ledger in both] == [0.2, 0.2]

    def test_others_have_their_own(self, path):
        opened(path, "x", eps=9, each_analyst={"eps": 1})
        assert [answered(opened(path, name), 0.9) for name in ("anna", "anna b", "annab", "bob")] == [0.9] * 4

    def test_the_same_dataset(self, path):
        pdrisk.Ledger(path, dataset="Zoë", eps=1)
        for name in ("zoë", "ZOE\u0308", "Zoe\u0308"):
            with pytest.raises(pdrisk.ParameterError, match="knows the dataset 'Zoë'"):
                pdrisk.Ledger(path, dataset=name, eps=1)

    @pytest.mark.slow
    def test_in_another_process(self, path):
        opened(path, "x", eps=9, each_analyst={"eps": 1})
        text = """
            ledger = pdrisk.Ledger(sys.argv[1], dataset="survey", analyst=sys.argv[2])
            pd.DataFrame({"x": [1]}).dprisk.count(eps=0.3, ledger=ledger)
            print(ledger.remaining().eps)
        """
        assert [script(text, path, name) for name in ("anna", "ANNA", "Anna")] == [["0.7"], ["0.4"], ["0.1"]]


class TestLimitsOfOne:
    """``amend(analysts=)`` sets the limits of single analysts; the owner has none unless she sets one."""

    def test_the_owner_has_none(self, path):
        owner = opened(path, "Dpo", eps=9, each_analyst={"eps": 1, "queries": 2})
        assert [answered(owner, 1) for _ in range(3)] == [1, 1, 1]
        assert (owner.remaining().eps, owner.remaining().queries) == (6, None)
        assert answered(opened(path, "dPO"), 5) == 5 and answered(opened(path, "ann"), 2) == 0
        owner.verify()

    def test_of_one(self, path):
        owner = opened(path, "dpo", eps=9, each_analyst={"eps": 1})
        ann, bob, eve = (opened(path, name) for name in ("ann", "bob", "eve"))
        owner.amend(analysts={"ANN": 2, "eve": None, "dpo": {"queries": 1}})
        assert [answered(ledger, 1.5) for ledger in (ann, bob, eve, owner, owner)] == [1.5, 0, 1.5, 1.5, 0]
        assert [ledger.remaining().eps for ledger in (ann, bob, eve)] == [0.5, 1, 4.5]
        owner.amend(analysts={"bob": 0.25})  # the others keep theirs
        assert answered(ann, 0.6) == 0 and answered(bob, 0.3) == 0 and answered(ann, 0.5) == 0.5
        said = owner.history()["query"].tolist()
        assert "eps for ann=2, queries for dpo=1, limits of eve=None" in said[1]
        with pytest.raises(pdrisk.ParameterError, match=r"eps=2 for analyst 'ann', .* no limit for analyst 'eve'"):
            opened(path, "ann", eps=1)
        owner.verify()

    def test_what_the_error_says_can_be_written(self, path):
        owner = opened(path, "dpo", eps=9, each_analyst={"eps": 1})
        ann = opened(path, "ann")
        with pytest.raises(pdrisk.BudgetExceededError) as caught:
            count(ann, 2)
        call = re.search(r"ledger\.(amend\(.*\))\.", str(caught.value))[1].replace("...", "2")
        eval(f"owner.{call}", {"owner": owner})
        assert answered(ann, 2) == 2

    def test_verify_finds_what_went_over(self, path, monkeypatch):
        owner = opened(path, "dpo", eps=9, each_analyst={"eps": 5})
        owner.amend(analysts={"ann": 1})
        count(opened(path, "ann"), 0.7)
        owner.verify()
        monkeypatch.setattr("pdrisk._ledger.accounts.account.check", lambda *_: None)
        count(opened(path, "ann"), 0.7)
        with pytest.raises(pdrisk.LedgerError, match="record 4 went over the limits that held then"):
            owner.verify()

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            (["ann"], "a dict from name to limit"),
            ({5: 1}, "analyst must be a name"),
            ({"ann": "2"}, "None, not of type str"),
            ({"ann": True}, "None, not of type bool"),
            ({"ann": 0}, "eps"),
            ({"ann": {"epsi": 1}}, "unknown limit 'epsi'"),
            ({"ann": 1, "ANN ": 2}, "twice"),
        ],
    )
    def test_wrong_ones(self, path, said, words):
        owner = opened(path, "dpo", eps=9)
        with pytest.raises((pdrisk.ParameterError, pdrisk.ColumnTypeError), match=words):
            owner.amend(analysts=said)
        assert len(owner.history()) == 1


def grants():
    """The statements that docs/ledger.md gives an owner."""
    text = (DOCS / "ledger.md").read_text("utf-8")
    return re.search(r"```sql\n(GRANT .*?)```", text, re.DOTALL)[1]


@needs_server
class TestOnAServer:
    """The name is that of the session's role, whatever the caller says, and the server sees to it."""

    @pytest.fixture
    def analyst(self, url):
        owner = opened(url, eps=9, each_analyst={"eps": 1})
        with role(url) as (own, name):
            run(url, re.sub(r"\banalysts\b", name, grants()))
            yield own, name, owner

    @pytest.mark.slow
    def test_the_role(self, analyst, url):
        own, name, owner = analyst
        ledger = opened(own)
        count(ledger, 0.3)
        count(owner, 0.1)
        me = urlsplit(url).username
        assert (ledger.analyst, owner.analyst) == (name, me)
        assert ledger.history()["analyst"].tolist() == [me, name, me]
        assert opened(own, name).remaining().eps == 0.7 and f"analyst {name!r}" in repr(ledger)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("said", ["ann", "postgres", "NAME", " name", ""])
    def test_another_name(self, analyst, url, said):
        own, name, owner = analyst
        said = said.replace("NAME", name.upper()).replace("name", name)
        with pytest.raises(pdrisk.ParameterError) as caught:
            opened(own, said)
        assert said == "" or all(
            part in str(caught.value) for part in (f"session, {name!r}", f"not {said!r}", "Leave", "connect as")
        ), caught.value
        assert owner.history()["event"].tolist() == ["opened"]

    @pytest.mark.slow
    def test_a_limit_for_each(self, analyst):
        """Nobody asks in the name of others, nor of nobody."""
        own, name, owner = analyst
        assert [answered(opened(own, said), 0.6) for said in (None, name, None)] == [0.6, 0, 0]
        assert answered(owner, 0.6) == 0.6

    @pytest.mark.slow
    def test_set_role(self, analyst, url):
        """Whoever takes another role is still who logged in."""
        own, name, _ = analyst
        with role(url) as (_, other):
            run(url, f"GRANT {other} TO {name}", re.sub(r"\banalysts\b", other, grants()))
            same = opened(own + f"?options=-c%20role%3D{other}")
            assert run(own + f"?options=-c%20role%3D{other}", "SELECT current_user") == [(other,)]
            count(same, 0.25)
        assert (same.analyst, opened(own).remaining().eps) == (name, 0.75)

    @pytest.mark.slow
    def test_pickled(self, analyst):
        own, name, _ = analyst
        text = """
            import pickle
            print(pickle.loads(bytes.fromhex(sys.argv[1])).analyst)
        """
        assert script(text, pickle.dumps(opened(own)).hex()) == [name]

    @pytest.mark.slow
    def test_another_role_on_the_next_connection(self, analyst, url, monkeypatch):
        """The role that libpq finds may be another for a connection that is opened later."""
        own, name, _ = analyst
        parts = urlsplit(own)
        monkeypatch.setenv("PGUSER", parts.username)
        monkeypatch.setenv("PGPASSWORD", parts.password)
        ledger = opened(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())
        ledger._store._parameters |= {"user": urlsplit(url).username, "password": urlsplit(url).password}
        assert ledger.analyst == name
        ledger._store._local.held = None
        with pytest.raises(pdrisk.LedgerError, match=f"opened by the role {name!r}.* nothing was answered"):
            count(ledger, 0.1)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "statement",
        [
            "INSERT INTO pdrisk.records SELECT max(seq) + 1, max(time), 'survey', '{who}', 'paid', '1', '{{}}', 'x' "
            "FROM pdrisk.records",
            "INSERT INTO pdrisk.spending VALUES ('survey', '{who}', 'x', '0', 0)",
            "INSERT INTO pdrisk.spending VALUES ('survey', '{who}', '', '0', 0) "
            "ON CONFLICT (dataset, analyst, period) DO UPDATE SET eps = '0'",
            "UPDATE pdrisk.spending SET eps = '0' WHERE analyst = '{who}'",
            "UPDATE pdrisk.spending SET analyst = '{who}' || period WHERE analyst = '{me}'",
            "UPDATE pdrisk.spending SET analyst = '{me}', period = 'x' || period WHERE analyst = '{who}'",
            "UPDATE pdrisk.spending SET analyst = '', period = 'x' || period WHERE analyst = '{me}'",
        ],
    )
    def test_the_server_refuses_other_names(self, analyst, statement):
        import psycopg

        own, name, owner = analyst
        count(opened(own), 0.3)
        count(owner, 0.3)
        for who in (owner.analyst, "somebody", name.upper()):
            ran = statement.format(who=who, me=name)
            before = run(own, "SELECT * FROM pdrisk.spending ORDER BY 1, 2, 3")
            changes_nothing = f"WHERE analyst = '{who}'" in ran and who != owner.analyst
            with nullcontext() if changes_nothing else pytest.raises(psycopg.Error, match="in their own name"):
                run(own, ran)
            assert run(own, "SELECT * FROM pdrisk.spending ORDER BY 1, 2, 3") == before
        assert owner.verify()[0] == 3

    @pytest.mark.slow
    def test_an_older_ledger(self, url, monkeypatch):
        """An analyst cannot bring it forward, and is told who can; what was paid under other names stays."""
        from pdrisk._ledger.accounts.account import Account
        from pdrisk._ledger.store import postgres_store as postgres
        from pdrisk._ledger.store import postgres_tables
        from pdrisk._ledger.store.ledger_tables import TABLES
        from pdrisk._ledger.store.postgres_store import PostgresStore

        record = Account.record

        def without_mu(self, event, body, *eps):
            return record(self, event, {name: value for name, value in body.items() if name != "mu2"}, *eps)

        with monkeypatch.context() as old:
            tables_of_old = {
                1: TABLES[1],
                2: (*TABLES[2], *TABLES[4], *TABLES[5]),
            }  # with columns that are written since
            old.setattr(postgres_tables, "TABLES", tables_of_old)
            old.setattr(postgres_tables, "VERSION", 2)
            old.setattr(postgres, "VERSION", 2)
            old.setattr(PostgresStore, "analyst", None)
            old.setattr(Account, "record", without_mu)
            count(opened(url, "ann", eps=9, each_analyst={"eps": 1}), 0.6)
        run(url, "ALTER TABLE pdrisk.spending DROP COLUMN delta, DROP COLUMN mu2")
        run(url, "ALTER TABLE pdrisk.curator_people DROP COLUMN mu2")
        with role(url) as (own, name):
            run(url, re.sub(r"\banalysts\b", name, grants()))
            with pytest.raises(pdrisk.LedgerError, match="Have the ledger's owner open it once"):
                opened(own)
            owner = opened(url)
            assert owner.verify()[0] == 2
            assert answered(opened(own), 0.6) == 0.6 == answered(owner, 0.6)
            assert owner.history()["analyst"].tolist() == ["ann", "ann", name, owner.analyst]

    @pytest.mark.slow
    def test_who_may_not_amend(self, analyst):
        """Nobody is told to have the right to change limits given to them."""
        own, _, owner = analyst
        ledger = opened(own)
        for call in (
            lambda: ledger.amend(eps=99),
            lambda: ledger.amend(policy={}),
            lambda: pdrisk.Ledger(own, dataset="other", eps=1),
        ):
            with pytest.raises(
                pdrisk.LedgerError, match=r"permission denied for table datasets.*Only the ledger's own"
            ) as c:
                call()
            assert "grant" not in str(c.value).lower() and "rights" not in str(c.value)
        assert owner.limits.eps == 9 and owner.history()["event"].tolist() == ["opened"]

    @pytest.mark.slow
    def test_who_may_not_ask(self, analyst, url):
        own, name, _ = analyst
        run(url, f"REVOKE INSERT ON pdrisk.records FROM {name}")
        with pytest.raises(pdrisk.LedgerError, match="owner grant the rights that"):
            count(opened(own), 0.1)
        run(url, f"REVOKE SELECT ON pdrisk.datasets FROM {name}")
        with pytest.raises(pdrisk.LedgerError, match="owner grant the rights that"):
            opened(own)


@needs_server
class TestPutBack:
    """A server's ledger that holds less than this process has seen answers nothing; see test_ledger_rollback.py."""

    BACK = (
        "SET session_replication_role = replica; DELETE FROM pdrisk.records WHERE seq > 1; DELETE FROM pdrisk.spending",
        "SET session_replication_role = replica; UPDATE pdrisk.records SET hash = repeat('f', 64) WHERE seq = 2",
    )

    @pytest.mark.slow
    @pytest.mark.parametrize("statement", BACK)
    def test_what_was_seen(self, url, statement):
        ledger = opened(url, eps=1)
        count(ledger, 0.9)
        head, pickled = ledger.verify(), pickle.dumps(ledger)
        with connected(url) as other:
            for each in statement.split("; "):
                other.execute(each)
        for look in (
            lambda: count(ledger, 0.9), ledger.remaining, ledger.verify, ledger.history, lambda: opened(url),
            lambda: pdrisk.Ledger.datasets(url), lambda: opened(url + "?application_name=x"),
        ):  # fmt: skip
            with pytest.raises(pdrisk.LedgerError, match=r"put back to an earlier state.*nothing was answered"):
                look()
        text = """
            import pickle
            for call in (
                lambda: pdrisk.Ledger(sys.argv[1], dataset="survey", head=(int(sys.argv[2]), sys.argv[3])),
                lambda: pickle.loads(bytes.fromhex(sys.argv[4])).remaining(),
            ):
                try:
                    call()
                except pdrisk.LedgerError as error:
                    print("noted down" in str(error))
        """
        assert script(text, url, *head, pickled.hex()) == ["True", "True"]

    @pytest.mark.slow
    def test_what_was_not(self, url):
        ledger = opened(url, eps=1)
        count(ledger, 0.1)
        assert opened(url, head=ledger.verify()).remaining().eps == 0.9
        run(url, "DROP SCHEMA pdrisk CASCADE")
        assert opened(url, eps=1).remaining().eps == 1
