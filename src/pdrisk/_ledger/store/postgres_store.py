"""A ledger on a PostgreSQL server."""

from __future__ import annotations

import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pdrisk._ledger.store import postgres_tables
from pdrisk._ledger.store.postgres_tables import VERSION
from pdrisk._ledger.store.rollback import Seen
from pdrisk._ledger.store.store import Ask, Head, Rows, asked_while_writing, check_version, closed, decoded, moved
from pdrisk._printing import printable
from pdrisk.errors import LedgerError, ParameterError, PdriskError

if TYPE_CHECKING:
    import psycopg

PATIENCE = 60.0  # seconds to wait for other processes
STOPPED = 300.0  # seconds after which a process that stopped while it was writing holds the others up no longer
LOCK = 0x70647269736B  # "pdrisk", the same number for all

# Names are those of the ledger, whatever the URL says, and a table of the session cannot stand before them; rows that
# are hidden from a role are an error, not a smaller sum.
BEGIN = """
BEGIN ISOLATION LEVEL {level};
SET LOCAL search_path = pdrisk, pg_temp;
SET LOCAL row_security = off;
SET LOCAL lock_timeout = {patience};
SET LOCAL idle_in_transaction_session_timeout = {stopped};
"""
# Each statement sees what was committed before it began: those after the lock, all that others have paid. What is
# paid must survive a power cut, so a server set to answer before it has written is told to wait.
ALONE = """
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
SELECT pg_advisory_xact_lock({lock});
"""
LOCKED = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()"
# A copy that was restored has its tables made anew, and with them their numbers.
SELF = "SELECT id, version, CAST(tableoid AS bigint), CAST(session_user AS text) FROM pdrisk.ledger"
PARAMETERS = {  # unless the URL says otherwise: a server that is gone must not hold a request for hours
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "application_name": "pdrisk",
}


class PostgresStore:
    """Ledger in one schema of a PostgreSQL database, with a connection for each thread and process."""

    def __init__(self, url: str, known: bool = False, head: Head | None = None) -> None:
        """Open the ledger. ``known``: it must exist already. ``head``: a record that it must hold."""
        self._url = url
        self._parameters = parameters(url)
        self._where = where(self._parameters)
        self._local = threading.local()
        self._all: weakref.WeakSet[Held] = weakref.WeakSet()
        self._is_closed = False
        self._identity: LedgerIdentity | None = None
        self._seen: Seen | None = None
        with self._transaction(ALONE) as ask:
            self._identity = self._found_or_made(ask, known)
        self._seen = Seen(self.where, head)

    @property
    def place(self) -> str:
        """Host and database."""
        return f"the ledger on {printable(self._where)}"

    @property
    def where(self) -> str:
        """Host and database."""
        return self._where

    @property
    def analyst(self) -> str | None:
        """The role of the session, as the server knows it."""
        return None if self._identity is None else self._identity.role

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._url, True, self._seen.head if self._seen is not None else None)

    @contextmanager
    def reading(self) -> Iterator[Ask]:
        """Transaction that reads one state of the tables."""
        with self._transaction("", "REPEATABLE READ READ ONLY") as ask:
            yield ask

    @contextmanager
    def writing(self) -> Iterator[Ask]:
        """Transaction without others, durable at its end."""
        with self._transaction(ALONE) as ask:
            yield ask

    def holds(self, path: Path) -> bool:  # noqa: ARG002
        """False: the ledger is no file."""
        return False

    def changed(self, ask: Ask) -> bool:
        """Whether somebody changed the tables or their guards."""
        return postgres_tables.changed(ask)

    @contextmanager
    def _transaction(self, then: str, level: str = "READ COMMITTED") -> Iterator[Ask]:
        import psycopg

        problem, newest, asked, last = None, None, [], ""
        seen = self._seen
        before = {} if seen is None else seen.before()
        if getattr(self._local, "busy", 0) == os.getpid():
            # A signal handler or finalizer that asks; what is under way stays whole.
            raise asked_while_writing(self.place)
        try:
            self._local.busy = os.getpid()
            held = self._held()
            asked.append(held)
            begin = BEGIN.format(level=level, patience=int(PATIENCE * 1000), stopped=int(STOPPED * 1000))
            try:
                held.run(begin + then.format(lock=LOCK))
                self._identify(held)

                def ask(sql: str, values: Sequence[Any] = ()) -> Rows:
                    nonlocal last
                    last = sql
                    return asked[0].run(sql, values)

                if seen is not None:
                    seen.check(ask, before, self.place)
                yield ask
                if seen is not None and then:
                    newest = seen.newest(ask)
                held.commit(self.place)
            except BaseException:
                held.give_up()
                raise
        except PdriskError:
            raise
        except psycopg.Error as error:
            problem = self._words(error, last)
        finally:
            asked.clear()  # afterwards each statement would be a transaction of its own
            self._local.busy = 0
        if problem is not None:
            raise LedgerError(problem)
        if seen is not None and newest is not None:
            seen.remember(newest)

    def close(self) -> None:
        """Close the connections of all threads; whoever asks later gets a `LedgerError`."""
        self._is_closed = True
        for held in list(self._all):
            held.close()

    def _held(self) -> Held:
        """This thread's connection, or a new one."""
        if self._is_closed:
            raise closed(self.place)
        held: Held | None = getattr(self._local, "held", None)
        if held is None or not held.usable():
            self._local.held = None
            import psycopg

            connection = psycopg.connect(autocommit=True, prepare_threshold=None, **self._parameters)  # type: ignore[arg-type]
            held = self._local.held = Held(connection)
            self._all.add(held)
        return held

    def _identify(self, held: Held) -> None:
        if self._identity is None:
            return
        version, identity = self._itself(held.run(SELF))
        if identity.role != self._identity.role:
            raise LedgerError(
                f"{self.place} was opened by the role {self._identity.role!r}, and this connection is of "
                f"{identity.role!r}; nothing was answered. Open the ledger anew."
            )
        if identity != self._identity:
            raise moved(self.place)
        check_version(self.place, version, VERSION)

    def _itself(self, rows: Rows) -> tuple[int, LedgerIdentity]:
        """Version of the tables and identity of the ledger, from the answer to `SELF`."""

        def read() -> tuple[int, LedgerIdentity]:
            ((name, version, number, role),) = rows
            return version, LedgerIdentity(name, number, role)

        return decoded(self.place, read)

    def _found_or_made(self, ask: Ask, known: bool) -> LedgerIdentity:
        if ask(LOCKED) == [(0,)]:  # there are servers that speak like PostgreSQL and only seem to lock
            raise LedgerError(f"{self.place} is not kept by PostgreSQL: the server does not lock. Name another.")
        ((there, things, ours),) = ask(postgres_tables.FOUND)
        if things and ours != 2:
            raise LedgerError(
                f"{self.place} finds a schema {postgres_tables.SCHEMA!r} of something else: name another database."
            )
        if not things and known:
            raise LedgerError(f"{self.place} is not there; nothing was answered. See whether the URL is right.")
        version = self._itself(ask(SELF))[0] if things else 0
        check_version(self.place, version, VERSION)
        if version == 0:
            self._fits(ask)
            if not there:
                ask(f"CREATE SCHEMA {postgres_tables.SCHEMA}")
        for statement in postgres_tables.statements(version):
            ask(statement)
        if version == 0:
            ask("INSERT INTO ledger (id, version) VALUES (?, ?)", (secrets.token_hex(16), VERSION))
        elif version < VERSION:
            ask("UPDATE ledger SET version = ?", (VERSION,))
        return self._itself(ask(SELF))[1]

    def _fits(self, ask: Ask) -> None:
        encoding = ask("SELECT current_setting('server_encoding')")[0][0]
        if encoding != "UTF8":
            raise LedgerError(f"{self.place} needs a database in UTF8, but this one is in {encoding}: name another.")

    def _words(self, error: psycopg.Error, sql: str) -> str:
        """The server's message in one line, with advice."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        password = self._parameters.get("password")
        shown = lines[0].replace(password, "***") if password else lines[0]
        return f"{self.place} cannot be used ({shown}); nothing was answered. {advice_for(error.sqlstate, shown, sql)}"


class LedgerIdentity(NamedTuple):
    """Identity of a ledger on a server, and the role that asks it."""

    name: str
    number: int
    role: str


class Held:
    """Connection of a thread; it is closed when the thread or the ledger is gone."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._owner = os.getpid()
        self._warnings: list[str | None] = []
        connection.add_notice_handler(_noting(self._warnings))
        self.close = weakref.finalize(self, _closed, connection, self._owner)

    def usable(self) -> bool:
        """Whether a transaction may begin on it."""
        from psycopg.pq import TransactionStatus

        if self._owner != os.getpid():
            return False
        if self._connection.info.transaction_status == TransactionStatus.IDLE:
            return True
        self.close()
        return False

    def run(self, sql: str, values: Any = ()) -> Rows:
        """`Ask`: for several statements the rows of the last one."""
        if self._owner != os.getpid():
            raise LedgerError("a ledger was asked in a process that was forked while it was written. Ask again.")
        # Bytes, since psycopg's types take a text for one only where it stands in the source.
        cursor = self._connection.execute(sql.replace("?", "%s").encode(), values or None)
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []

    def commit(self, place: str) -> None:
        """Commit the transaction."""
        self._warnings.clear()
        # A transaction in which something failed ends with ROLLBACK here, and no error. A warning is that of a server
        # that gave up waiting for its standby.
        if self._connection.execute(b"COMMIT").statusmessage != "COMMIT" or "WARNING" in self._warnings:
            raise LedgerError(f"{place} does not keep what is written; nothing was answered. Ask again.")

    def give_up(self) -> None:
        """Roll the transaction back; close the connection if that fails."""
        import psycopg
        from psycopg.pq import TransactionStatus

        if self._owner != os.getpid():
            return
        with suppress(psycopg.Error):
            if self._connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                self._connection.execute(b"ROLLBACK")
        self.usable()


def _closed(connection: psycopg.Connection[Any], owner: int) -> None:
    if owner != os.getpid() and not connection.closed:
        # The parent goes on with it. This process lets go of its end without a word on it; else it would keep the
        # parent's transaction alive when the parent dies.
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), connection.fileno())
    connection.close()


def _noting(severities: list[str | None]) -> Callable[[psycopg.errors.Diagnostic], None]:
    # Of its own, for a connection that knew its holder would keep it alive.
    return lambda notice: severities.append(notice.severity_nonlocalized)


def parameters(url: str) -> dict[str, str]:
    """Connection parameters of libpq for a URL."""
    settings: dict[str, str] | None = None
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        psycopg = None  # type: ignore[assignment]
    if psycopg is None:
        raise LedgerError("a ledger on a PostgreSQL server needs psycopg: pip install 'pdrisk[postgres]'.")
    # A sign in a password that ought to be written as %40 and the like makes the rest of it a host or a port, and
    # those are shown.
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0]
    if url.count("@") == authority.count("@") <= 1:
        with suppress(psycopg.Error, ValueError):
            settings = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    ports = (settings or {}).get("port", "").split(",")
    if settings is None or not all(port == "" or (port.isascii() and port.isdigit()) for port in ports):
        raise ParameterError(
            "the URL of a ledger is written postgresql://user@host:port/database, with signs such as @ / : ? in its "
            "parts as %40 %2F %3A %3F. Keep the password in ~/.pgpass or PGPASSWORD."
        )
    return PARAMETERS | settings | {"client_encoding": "utf8"}


def where(given: Mapping[str, str]) -> str:
    """Host and database of a URL, with libpq's defaults where they are left out."""
    from psycopg.pq import Conninfo

    if "service" in given:
        return f"service {given['service']}"
    usual = {default.keyword.decode(): default.val.decode() for default in Conninfo.get_defaults() if default.val}
    settings = {**usual, **given}
    host, port = settings.get("host") or settings.get("hostaddr") or "", settings.get("port", "")
    host = "localhost" if not host or host.startswith("/") else host
    return f"{host}{'' if port in ('', '5432') else ':' + port}/{settings.get('dbname') or settings.get('user', '')}"


ADVICE = (  # by SQLSTATE, or by words where there is none: a server that lets nobody in gives no code
    ("42501", "permission denied", "Have the ledger's owner grant the rights that docs/ledger.md lists to analysts."),
    ("25006", "read-only", "See that the role may write, and that the server is not a standby."),
    ("53100", "disk full", "Make room on the server's disk."),
    ("53300", "too many", "Ask again when others have gone."),
    ("53300", "connection slots", "Ask again when others have gone."),
    ("55P03", "lock timeout", "It timed out, since another process held it for too long: ask again."),
    ("57014", "statement timeout", "It timed out: ask again, or have statement_timeout raised for the role."),
    ("42P01", "relation", "Somebody changed its tables: restore it from a copy."),
    ("42703", "column", "Somebody changed its tables: restore it from a copy."),
    ("28P01", "password", "See that the password is right: keep it in ~/.pgpass or PGPASSWORD."),
    ("28000", "pg_hba.conf", "Have the server's owner let this role in from this machine."),
    ("3D000", "does not exist", "See that the database and the role are right."),
    ("08001", "host name", "See that the host is right."),
    ("08001", "resolve host", "See that the host is right."),
    ("08001", "refused", "See that the server runs, and that host and port are right."),
    ("08001", "timeout", "See that the server runs, and that host and port are right."),
)


# What no analyst may do, by the denied statement: its error must not advise to grant the right.
OWNERS = (
    (
        ("INSERT INTO datasets", "UPDATE datasets"),
        "Only the ledger's owner enters datasets and changes limits: ask them to do it.",
    ),
    (
        ("CREATE ", "INSERT INTO ledger", "UPDATE ledger"),
        "Have the ledger's owner open it once with this version of pdrisk, which makes its tables.",
    ),
)


def advice_for(code: str | None, message: str, sql: str = "") -> str:
    """Advice for an error of the server at a statement."""
    if code == "42501":
        for statements, advice in OWNERS:
            if sql.startswith(statements):
                return advice
    if code is not None:
        return next((advice for known, _, advice in ADVICE if known == code), "Ask again, or see the server's log.")
    return next((advice for _, sign, advice in ADVICE if sign in message), "See that the server runs, and ask again.")
