"""What fails while data is read says nothing about them; a timeout by a signal handler is not of their making."""

import functools
import signal
import sys
import threading
import traceback

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import people
from pdrisk._guard import guarded
from pdrisk._ledger.store import rollback as seen
from pdrisk.errors import FAILED

pytestmark = [
    pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning"),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of the operating system"),
]
SECRET = "987654321"
NUMBER = signal.SIGUSR1 if hasattr(signal, "SIGUSR1") else None


class LateError(Exception):
    """A timeout of somebody's own."""


def plain(number, frame):
    raise LateError("late")


def with_rest(*_):
    raise LateError("late")


def deep(number, frame):
    plain_helper()


def plain_helper():
    raise LateError("late")


def wrapped(function):
    @functools.wraps(function)
    def wrapper(*args, **options):
        return function(*args, **options)

    return wrapper


class Handler:
    """In every form that signal.signal takes."""

    def method(self, number, frame):
        raise LateError("late")

    def __call__(self, number, frame):
        raise LateError("late")

    @classmethod
    def of_class(cls, number, frame):
        raise LateError("late")

    @staticmethod
    def static(number, frame, *more):
        raise LateError("late")


def taken_off(number, frame):
    """As those which work once."""
    signal.signal(number, signal.SIG_IGN)
    raise LateError("late")


def from_another(number, frame):
    try:
        {}["own"]
    except KeyError as error:
        raise LateError("late") from error


HANDLERS = {
    "a function": plain, "any arguments": with_rest, "by another": deep, "a lambda": lambda n, f: plain_helper(),
    "partial": functools.partial(lambda extra, n, f: plain_helper(), 5), "twice partial": functools.partial(
        functools.partial(lambda a, b, n, f: plain_helper(), 1), 2
    ),
    "a method": Handler().method, "callable": Handler(), "of a class": Handler.of_class, "static": Handler.static,
    "wrapped": wrapped(plain), "once": taken_off, "with a cause": from_another,
    "names": lambda signum, stack=None, *more, key=1: plain_helper(),
}  # fmt: skip


@pytest.fixture
def handled(request):
    """The handler of a signal, and what raises that signal."""
    before = signal.getsignal(NUMBER)

    def set_to(handler):
        signal.signal(NUMBER, handler)
        return lambda: signal.raise_signal(NUMBER)

    yield set_to
    signal.signal(NUMBER, before)


def in_its_midst(interrupt):
    value = SECRET  # of a record
    for _ in value:
        interrupt()


def while_failing(interrupt):
    try:
        {}[SECRET]
    except KeyError:
        interrupt()


def made_another(interrupt):
    try:
        interrupt()
    except Exception as error:
        raise ValueError(SECRET) from error


def made_another_quietly(interrupt):
    try:
        interrupt()
    except Exception:  # noqa: BLE001
        {}[SECRET]


def twice(interrupt):
    guarded(lambda: guarded(lambda: while_failing(interrupt)))


def in_pandas(interrupt):
    pd.Series([int(SECRET)]).map(lambda value: interrupt())


WORKS = [in_its_midst, while_failing, made_another, made_another_quietly, twice, in_pandas]


class TestHandlers:
    """What a handler raises comes out as it is, of whatever kind it is, without what it came between."""

    @pytest.mark.parametrize("name", HANDLERS)
    @pytest.mark.parametrize("work", WORKS)
    def test_passes(self, handled, name, work):
        interrupt = handled(HANDLERS[name])
        with pytest.raises(LateError, match=r"^late$") as caught:
            guarded(lambda: work(interrupt))
        error = caught.value
        assert error.__cause__ is None and error.__context__ is None
        said = "".join(traceback.format_exception(error))
        assert SECRET not in said
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        assert not any(SECRET in repr(frame.f_locals.get("value")) for frame in frames)
        assert not any(frame.f_code.co_name == work.__name__ for frame in frames)

    @pytest.mark.parametrize("kind", [TimeoutError, OSError, ValueError, KeyError, TypeError, LateError, MemoryError])
    def test_of_every_kind(self, handled, kind):
        def handler(number, frame):
            raise kind("late")

        with pytest.raises(kind, match="late"):
            guarded(handled(handler))

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_whoever_stops_it(self, handled, kind):
        def handler(number, frame):
            raise kind

        with pytest.raises(kind) as caught:
            guarded(lambda: while_failing(handled(handler)))
        assert caught.value.__context__ is None and SECRET not in "".join(traceback.format_exception(caught.value))

    def test_an_error_of_pdrisk_in_a_handler(self, handled, book):
        ledger = book(eps=1)

        def handler(number, frame):
            people().dprisk.count(eps=5, ledger=ledger)

        with pytest.raises(pdrisk.BudgetExceededError):
            guarded(handled(handler))


def calls_itself(function):
    """Calls with what a handler would be called with, but for the frame."""
    return function(NUMBER, sys._getframe().f_back)


def asked(frame):
    raise TimeoutError(SECRET)


OF_DATA = {
    "raised by the callable": lambda: asked(None),
    "deep in pandas": lambda: pd.Series([1]).map(lambda _: asked(None)),
    "with the number of a signal": lambda: (lambda number, other: asked(other))(14, None),
    "with another frame": lambda: calls_itself(lambda number, frame: asked(frame)),
    "with a cause": lambda: made_another(lambda: asked(None)),
    "a handler's function on the data": lambda: with_rest(people()),
    "with a frame of people": lambda: plain(NUMBER, people()),
    "out of memory": lambda: np.empty(2**62),
    "a timeout of a lock": lambda: TimeoutError.__call__(SECRET).missing,
}


class TestTheData:
    """What the data cause stays one sentence, be it a TimeoutError, and be it raised by a registered handler's code."""

    @pytest.mark.parametrize("name", OF_DATA)
    def test_hidden(self, handled, name):
        handled(with_rest)
        with pytest.raises(pdrisk.QueryFailedError) as caught:
            guarded(OF_DATA[name])
        error = caught.value
        assert str(error) == FAILED and error.__cause__ is None and error.__context__ is None
        assert SECRET not in "".join(traceback.format_exception(error))

    @pytest.mark.parametrize("kind", [TimeoutError, LateError, OSError])
    def test_a_filter_that_raises(self, book, kind):
        """By whom a request is answered, it fails in the same words."""

        def where(frame):
            raise kind(SECRET)

        ledger = book(eps=1)
        with pytest.raises(pdrisk.QueryFailedError) as caught:
            people().dprisk.count(eps=0.1, where=where, ledger=ledger)
        error = caught.value
        assert str(error) == FAILED and error.__cause__ is None and error.__context__ is None
        assert ledger.history()["event"].tolist() == ["opened", "paid", "failed"]

    def test_in_another_thread(self, handled):
        """Where no handler runs."""
        handled(plain)
        found = []

        def work():
            try:
                guarded(lambda: asked(None))
            except pdrisk.QueryFailedError as error:
                found.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert found == [FAILED]

    def test_what_went_well(self):
        assert guarded(lambda: 5) == 5


@pytest.fixture
def alarm():
    """Sets a timer whose handler raises; it is off afterwards."""

    def late(number, frame):
        raise TimeoutError("too late")

    before = signal.signal(signal.SIGALRM, late)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class TestTimeouts:
    """A request that takes too long is stopped by its timeout, stays paid, and the ledger says that it failed."""

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # late in a finalizer is not heard
    def test_at_any_moment(self, book, handled):
        """In whatever call it comes, of pdrisk and below."""
        frame, ledger, interrupt = people(200), book(), handled(plain)
        frame["whole"] = frame["hours"].round().astype("Int64")
        calls, late, answers = 0, 0, 0

        def ask(at):
            nonlocal calls
            calls = 0

            def count(_, event, called):
                nonlocal calls
                if event == "c_call" and called.__name__ == "__exit__":
                    return  # no signal is handled between the end of a with block and the release of its lock
                calls += 1
                if calls == at:
                    interrupt()

            sys.setprofile(count)
            try:
                frame.dprisk.agg({"whole": ["mean", "median"], "age": "max"}, eps=1, bounds=(0, 99), ledger=ledger)
            finally:
                sys.setprofile(None)

        ask(0)
        ask(0)
        for at in range(1, calls, calls // 150):
            try:
                ask(at)
                answers += 1
            except LateError:
                late += 1
        events = ledger.history()["event"].value_counts()
        assert late > 100 and answers + 2 <= events["paid"] and 10 < events["failed"] <= late
        assert events["failed"] + answers + 2 <= events["paid"]
        ledger.verify()
        assert not seen.LOCK._is_owned()  # or every other thread would wait for it

    @pytest.mark.slow
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("seconds", [0.001, 0.03, 0.06])
    def test_in_sql(self, book, alarm, monkeypatch, seconds):
        """DuckDB says of what a handler raised only that there was something."""
        from pdrisk.engines.sql.summary import reading

        frame, ledger, real = pd.DataFrame({"x": np.arange(5_000_000.0)}), book(), reading.statement
        query = "SELECT MEDIAN(x), VARIANCE(x), AVG(x) FROM frame WHERE sqrt(x) < 9e9 AND ln(x + 1) > -1"
        with monkeypatch.context() as late:
            late.setattr(reading, "statement", lambda *asked: (real(*asked), alarm(seconds))[0])
            with pytest.raises(TimeoutError, match="too late") as caught:
                pdrisk.sql(query, eps=1, bounds=(0, 5e6), frame=frame, ledger=ledger)
        assert caught.value.__context__ is None
        assert ledger.history()["event"].tolist() == ["opened", "paid", "failed"]
        assert pdrisk.sql(query, eps=1, bounds=(0, 5e6), frame=frame, ledger=ledger).shape == (1, 3)
        ledger.verify()

    def test_while_reading(self, book, alarm, monkeypatch):
        """Paid, late, and marked."""
        ledger = book(eps=1)
        real = pdrisk.engines.numpy.frame.FrameEngine._read

        def slow(*arguments):
            signal.raise_signal(signal.SIGALRM)
            return real(*arguments)

        with monkeypatch.context() as slowed:
            slowed.setattr("pdrisk.engines.numpy.frame.FrameEngine._read", slow)
            with pytest.raises(TimeoutError, match="too late"):
                people().dprisk.count(eps=0.25, ledger=ledger)
        assert ledger.history()["event"].tolist() == ["opened", "paid", "failed"] and ledger.remaining().eps == 0.75

    def test_what_cannot_be_compared(self, book):
        """Fails as data do, not as a timeout: what is asked of it is paid each time."""

        class Unspeakable:
            def __reduce__(self):
                raise TimeoutError(SECRET)

        frame = people(5).assign(odd=[Unspeakable() for _ in range(5)])
        ledger = book()
        d = pdrisk.Dataset(frame, ledger=ledger)
        for _ in range(2):
            d.count("odd", eps=1)
        assert ledger.remaining().spent == 2

    def test_while_the_dataset_is_compared(self, book, alarm):
        """What memory looks at is read, too: a timeout there is not lost."""

        class Slow:
            def __reduce__(self):
                signal.raise_signal(signal.SIGALRM)
                return str, ("x",)

        frame = people(5).assign(slow=[Slow() for _ in range(5)])
        with pytest.raises(TimeoutError, match="too late"):
            pdrisk.Dataset(frame, ledger=book())
