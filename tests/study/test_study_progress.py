"""A progress bar on terminals and in notebooks for what takes longer than a second, and nothing anywhere else."""

import io
import itertools
import sys

import pandas as pd
import pytest
from jupyter_client.manager import start_new_kernel

from pdrisk.study import run
from pdrisk.study.progress import progress_bar

FRAME = pd.DataFrame({"x": range(40), "y": range(40)})


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def slow(monkeypatch):
    """Every look at the clock takes a third of a second."""
    ticks = itertools.count()
    monkeypatch.setattr("tqdm.std.time", lambda: next(ticks) / 3)


def watched(monkeypatch, stream, **options):
    monkeypatch.setattr(sys, "stderr", stream)
    run(FRAME, ["x", "y"], repetitions=3, workers=1, **options)
    return stream.getvalue()


class TestTerminal:
    """A line that is drawn in place and taken away."""

    def test_it_is_drawn_and_taken_away(self, monkeypatch, slow):
        *_, last, end = watched(monkeypatch, Terminal()).split("\r")
        assert not last.strip()
        assert not end

    def test_shares_only_grow(self, monkeypatch, slow):
        lines = [line for line in watched(monkeypatch, Terminal()).split("\r") if line.strip()]
        assert all(line.startswith("study: ") and line.rstrip().endswith(" left") for line in lines)
        shares = [int(line.split("%")[0].removeprefix("study: ")) for line in lines]
        assert shares == sorted(shares)
        assert 0 < shares[0] < shares[-1] <= 100

    def test_it_waits_for_a_second(self, monkeypatch, slow):
        monkeypatch.setattr(sys, "stderr", Terminal())
        with progress_bar(10) as add:
            shown = []
            for _ in range(4):
                add(1)
                shown.append(bool(sys.stderr.getvalue()))
        assert shown == [False, False, True, True]

    def test_what_is_quick_shows_nothing(self, monkeypatch):
        assert watched(monkeypatch, Terminal()) == ""

    def test_no_work_at_all(self, monkeypatch, slow):
        monkeypatch.setattr(sys, "stderr", Terminal())
        with progress_bar(0):
            pass
        assert sys.stderr.getvalue() == ""


class TestSilence:
    """Nobody who does not watch is written to."""

    @pytest.mark.parametrize(
        ("stream", "options"), [(io.StringIO, {}), (Terminal, {"progress": False})], ids=["no terminal", "turned off"]
    )
    def test_no_terminal_or_turned_off(self, monkeypatch, slow, stream, options):
        assert watched(monkeypatch, stream(), **options) == ""

    def test_no_stderr(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", None)
        assert len(run(FRAME, "x", "mean", eps=1, repetitions=2, sample_sizes=3)) == 2


CELL = """
import sys, time
if not {widgets}: sys.modules["ipywidgets"] = None
from pdrisk.study import progress
progress.PATIENCE = {patience}
with progress.progress_bar(4) as add:
    for _ in range(4):
        time.sleep(.15)
        add(1)
"""


def sent(*, widgets: bool = True, patience: float = 0.0) -> list[tuple[str, dict]]:
    """What a notebook receives while a cell runs in a kernel of its own."""
    messages = []
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        code = CELL.format(widgets=widgets, patience=patience)
        reply = client.execute_interactive(code, timeout=60, output_hook=messages.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok", reply["content"]
    return [
        (each["msg_type"], each["content"]) for each in messages if each["msg_type"] not in ("status", "execute_input")
    ]


class TestNotebook:
    """In a real kernel: a widget, or a line of text where ipywidgets is missing; no warning, nothing left behind."""

    @pytest.mark.slow
    def test_a_widget(self):
        messages = sent()
        (shown,) = (content["data"] for kind, content in messages if kind == "display_data")
        assert "application/vnd.jupyter.widget-view+json" in shown
        updates = [content["data"].get("state", {}).get("value") for kind, content in messages if kind == "comm_msg"]
        assert [value for value in updates if isinstance(value, float)] == [1, 2, 3, 4]
        assert "comm_close" in dict(messages)
        assert "stream" not in dict(messages)

    @pytest.mark.slow
    def test_a_line_of_text(self):
        messages = sent(widgets=False)
        assert {kind for kind, _ in messages} == {"stream"}
        text = "".join(content["text"] for _, content in messages)
        assert "Warning" not in text  # of a missing IProgress
        assert "study:  75 %|" in text
        assert not text.split("\r")[-2].strip()

    @pytest.mark.slow
    def test_what_is_quick_shows_nothing(self):
        assert not {"display_data", "stream"} & {kind for kind, _ in sent(patience=60)}
