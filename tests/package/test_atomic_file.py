"""Every file is written whole or not at all, and nothing is left for good of a process that was killed meanwhile."""

import ast
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

import pdrisk
from pdrisk._atomic_file import remove_leftovers, write_whole
from pdrisk._cli import main
from pdrisk._ledger.store.secret import secret as kept_secret

FRAME = pd.DataFrame({"x": [1.0, 2.0, 4.0, 8.0], "y": [1, 2, 3, 4]})


def _parts(folder):
    return pdrisk.study.run(FRAME, ["x", "y"], "mean", sample_sizes=[2], repetitions=3, resume=folder, workers=1)


def _report(folder):
    file = folder.parent / "survey.csv"
    FRAME.to_csv(file, index=False)
    assert main(["assess", str(file), "--to", str(folder), "--statistics", "mean"]) == 0


def _export(folder):
    folder.mkdir(exist_ok=True)
    pdrisk.Ledger(folder.parent / "budget.db", dataset="survey", analyst="ann", eps=1).export(folder / "history.csv")


def _secret(folder):
    os.environ["XDG_CONFIG_HOME"] = str(folder.parent)
    os.environ.pop("PDRISK_SECRET", None)
    return kept_secret()


# Everything in pdrisk that writes files which others may read meanwhile, the folder they are in, and how many.
WRITERS = {
    "parts": (_parts, "parts", 2), "report": (_report, "report", 5), "export": (_export, "out", 1),
    "secret": (_secret, "pdrisk", 1),
}  # fmt: skip

# Says that it is in the middle of writing, and goes on when told to.
WAITING = """
import os, pathlib, sys
import test_atomic_file as here
def waiting(own):
    def wait(*args):
        print("writing", flush=True)
        sys.stdin.readline()
        return own(*args)
    return wait
for step in ("replace", "link"):
    setattr(os, step, waiting(getattr(os, step)))
here.WRITERS[sys.argv[1]][0](pathlib.Path(sys.argv[2]))
"""


@pytest.fixture(autouse=True)
def environment():
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def unfinished(folder):
    return [name for name in names(folder) if name.startswith(".") and name.endswith((".part", ".lock"))]


class Writer:
    """A process in the middle of writing."""

    def __init__(self, what, folder):
        paths = [os.path.dirname(__file__), str(Path(pdrisk.__file__).parent.parent)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", WAITING, what, str(folder)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "writing\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def killed(self):
        self._process.send_signal(signal.SIGKILL)
        assert self._process.wait() == -signal.SIGKILL

    def finished(self):
        self._process.stdin.write("\n" * 100)
        self._process.stdin.close()
        return self._process.wait() == 0


@pytest.mark.parametrize("what", WRITERS)
@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
class TestKilled:
    """What a killed process was writing is removed by whoever writes there next, and by nobody while it lives."""

    @pytest.mark.sampled(4)
    def test_leaves_nothing_for_good(self, tmp_path, what):
        write, name, number = WRITERS[what]
        folder = tmp_path / name
        with Writer(what, folder) as writer:
            left = unfinished(folder)
            assert left
            write(folder)
            assert unfinished(folder) == left
            writer.killed()
            assert unfinished(folder) == left
        write(folder)
        assert len(names(folder)) == number
        assert not unfinished(folder)


class TestWhole:
    """What the next run makes of it is right."""

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
    def test_of_two_studies_at_once(self, tmp_path):
        with Writer("parts", tmp_path / "parts") as one, Writer("parts", tmp_path / "parts") as other:
            one.killed()
            pd.testing.assert_frame_equal(_parts(tmp_path / "parts"), _parts(tmp_path / "alone"))
            assert len(unfinished(tmp_path / "parts")) == 2
            assert other.finished()
        assert names(tmp_path / "parts") == names(tmp_path / "alone")
        pd.testing.assert_frame_equal(_parts(tmp_path / "parts"), _parts(tmp_path / "alone"))

    def test_study_that_has_nothing_to_write(self, tmp_path):
        _parts(tmp_path)
        (tmp_path / ".a.0123456789abcdef.lock").touch()
        (tmp_path / ".a.0123456789abcdef.part").write_text("left")
        _parts(tmp_path)
        assert not unfinished(tmp_path)

    def test_exports_may_be_read_as_before(self, tmp_path):
        before = os.umask(0o022)
        try:
            _export(tmp_path / "out")
        finally:
            os.umask(before)
        if sys.platform != "win32":
            assert (tmp_path / "out" / "history.csv").stat().st_mode & 0o777 == 0o644


class TestNoFolder:
    """A folder that does not exist is named, and nothing of how files are written."""

    def test_of_an_export(self, tmp_path, capsys):
        pdrisk.Ledger(tmp_path / "budget.db", dataset="survey", analyst="ann", eps=1)
        assert main(["ledger", "export", str(tmp_path / "budget.db"), "--to", str(tmp_path / "none" / "h.csv")]) == 2
        error = capsys.readouterr().err
        assert error == f"pdrisk: there is no folder {tmp_path / 'none'}: make it first, or name another.\n"


class TestLeftovers:
    """Only what pdrisk left is removed, and never what it writes."""

    @pytest.mark.parametrize(
        "name",
        [
            "a.lock", ".lock", ".a.lock", "a.0123456789abcdef.lock", ".a.0123456789abcde.lock",
            ".a.0123456789ABCDEF.lock",
            ".a.0123456789abcdef.part", ".a.0123456789abcdef.lock.txt", ".a.12-34-5.part",
        ],
    )  # fmt: skip
    def test_other_files_stay(self, tmp_path, name):
        (tmp_path / name).write_text("mine")
        remove_leftovers(tmp_path)
        assert names(tmp_path) == [name]

    @pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
    def test_what_a_link_points_to_stays(self, tmp_path):
        (tmp_path / "mine").write_text("mine")
        for ending in ("lock", "part"):
            (tmp_path / f".a.0123456789abcdef.{ending}").symlink_to(tmp_path / "mine")
        remove_leftovers(tmp_path)
        assert (tmp_path / "mine").read_text() == "mine"

    def test_no_folder_is_no_error(self, tmp_path):
        remove_leftovers(tmp_path / "none")
        (tmp_path / "file").touch()
        remove_leftovers(tmp_path / "file")

    def test_what_this_process_writes_stays(self, tmp_path):
        def write(part):
            remove_leftovers(tmp_path)
            part.write_text("whole")

        assert write_whole(tmp_path / "a", write).read_text() == "whole"
        assert names(tmp_path) == ["a"]

    def test_many_threads(self, tmp_path):
        wrong = []

        def work(own):
            try:
                for turn in range(40):
                    remove_leftovers(tmp_path)
                    write_whole(tmp_path / f"{own % 2}", lambda part, turn=turn: part.write_text(f"{turn}" * 1000))
            except BaseException as error:  # noqa: BLE001 - told in the thread of the test
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(own,)) for own in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert names(tmp_path) == ["0", "1"]
        assert len(set((tmp_path / "0").read_text())) <= 2

    @pytest.mark.slow
    def test_nobody_writes_in_another_way(self):
        source = Path(pdrisk.__file__).parent
        for file in source.rglob("*.py"):
            if file.name == "_atomic_file.py":
                continue
            tree = ast.parse(file.read_text(encoding="utf-8"))
            imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
            assert "tempfile" not in imported, file
            named = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert not named & {"os.replace", "os.rename"}, file
