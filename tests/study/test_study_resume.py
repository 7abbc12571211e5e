"""A study that was stopped goes on where it was, and gives the very same frame."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk.study import checkpoint, experiment, run

FRAME = pd.DataFrame({"x": np.arange(40.0) ** 2, "y": np.tile([1.0, 2.0, 3.0, 9.0], 10)})
OPTIONS = {"eps": [0.5, 2], "sample_sizes": [3, 10, 1.0], "repetitions": 6, "statistics": ["mean", "max", "var"]}
PARTS = 2 * 3  # columns and sizes


def study(folder=None, frame=FRAME, **options):
    return run(frame, ["x", "y"], resume=folder, **(OPTIONS | options))


def files(folder):
    return sorted(folder.glob("*.study"))


@pytest.fixture
def computed(monkeypatch):
    """The parts that were computed: column and size of each."""
    parts = []
    own = experiment.Block.computed

    def counted(block, *args):
        parts.append((block.variable.column, block.size))
        return own(block, *args)

    monkeypatch.setattr(experiment.Block, "computed", counted)
    return parts


class TestFinishedParts:
    """What is finished is never computed again."""

    def test_a_second_run_computes_nothing(self, tmp_path, computed):
        first = study(tmp_path / "parts")
        assert len(computed) == PARTS == len(files(tmp_path / "parts"))
        second = study(tmp_path / "parts")
        assert len(computed) == PARTS
        pd.testing.assert_frame_equal(first, second)
        pd.testing.assert_frame_equal(second, study())
        assert first.attrs == second.attrs

    @pytest.mark.parametrize("left", range(PARTS + 1))
    def test_missing_parts_are_computed(self, tmp_path, computed, left):
        study(tmp_path)
        for file in files(tmp_path)[left:]:
            file.unlink()
        computed.clear()
        pd.testing.assert_frame_equal(study(tmp_path), study())
        assert len(computed) == PARTS - left + PARTS  # and all of the one without a folder

    def test_a_larger_study_takes_what_is_there(self, tmp_path, computed):
        study(tmp_path)
        computed.clear()
        larger = study(tmp_path, sample_sizes=[3, 7, 10, 1.0], eps=[0.1, 2, 5], metrics="two_worlds")
        assert sorted(computed) == [("x", 7), ("y", 7)]
        pd.testing.assert_frame_equal(
            larger, study(sample_sizes=[3, 7, 10, 1.0], eps=[0.1, 2, 5], metrics="two_worlds")
        )

    def test_the_path_may_be_a_text(self, tmp_path):
        study(str(tmp_path / "a" / "b"))
        assert len(files(tmp_path / "a" / "b")) == PARTS


class TestOtherStudies:
    """Parts of another study are left alone: whatever decides a number decides the name of its file."""

    @pytest.mark.parametrize(
        ("change", "parts"),
        [
            ({"seed": 1}, PARTS),
            ({"repetitions": 7}, PARTS - 2),  # that of everybody stays
            ({"statistics": ["mean", "max"]}, PARTS),
            ({"statistics": ["max", "mean", "var"]}, PARTS),
            ({"ddof": 0}, PARTS),
            ({"bounds": (0, 5000)}, PARTS),
            ({"bounds": {"y": (1, 9.5)}}, 3),
            ({"frame": FRAME.assign(y=FRAME["y"].replace(9, 8.5))}, 3),
            ({"frame": FRAME.rename(columns={"x": "y", "y": "x"})}, PARTS),
            ({"workers": 1}, 0),
            ({"eps": 3}, 0),
            ({"frame": FRAME[::-1]}, 0),
            ({"sample_sizes": [0.25, 3, 40]}, 0),
        ],
        ids=str,
    )
    def test_they_are_not_taken(self, tmp_path, computed, change, parts):
        study(tmp_path)
        before = {file: file.read_bytes() for file in files(tmp_path)}
        computed.clear()
        pd.testing.assert_frame_equal(study(tmp_path, **change), study(**change))
        assert len(computed) == parts + PARTS
        assert {file: file.read_bytes() for file in before} == before

    @pytest.mark.parametrize("version", ["pdrisk", "numpy"])
    def test_nor_those_of_another_version(self, tmp_path, computed, monkeypatch, version):
        study(tmp_path)
        computed.clear()
        monkeypatch.setattr(f"{version}.__version__", "0.0.0")
        study(tmp_path)
        assert len(computed) == PARTS


class TestDamage:
    """A file is there whole or not at all, and one that is not whole is computed again."""

    @pytest.mark.parametrize(
        "damage",
        [lambda b: b[:-1], lambda b: b + b"\0" * 8, lambda b: b"", lambda b: b[:40] + bytes([b[40] ^ 1]) + b[41:]],
        ids=["cut", "longer", "empty", "one bit"],
    )
    def test_it_is_computed_again(self, tmp_path, computed, damage):
        whole = study(tmp_path)
        for file in files(tmp_path):
            file.write_bytes(damage(file.read_bytes()))
        computed.clear()
        pd.testing.assert_frame_equal(study(tmp_path), whole)
        assert len(computed) == PARTS
        computed.clear()
        study(tmp_path)
        assert not computed

    def test_a_file_of_another_shape_is_no_part(self, tmp_path):
        folder = checkpoint.Folder(tmp_path)
        folder.save("a", np.zeros((2, 3, 4)))
        assert folder.load("a", (2, 3, 4)) is not None
        assert folder.load("a", (2, 3, 5)) is None
        assert folder.load("b", (2, 3, 4)) is None

    @pytest.mark.parametrize("step", ["fsync", "replace"])
    def test_nothing_is_left_where_writing_fails(self, tmp_path, monkeypatch, step):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(checkpoint.os, step, full)
        with pytest.raises(OSError, match="space"):
            study(tmp_path, workers=1)
        assert not list(tmp_path.iterdir())

    def test_a_file_is_on_the_disk_before_it_has_its_name(self, tmp_path, monkeypatch):
        steps = []
        for step in ("fsync", "replace"):
            own = getattr(os, step)
            monkeypatch.setattr(
                checkpoint.os, step, lambda *args, own=own, step=step: (steps.append(step), own(*args))[1]
            )
        checkpoint.Folder(tmp_path).save("a", np.zeros(3))
        assert steps[:2] == ["fsync", "replace"]

    def test_files_are_their_owners(self, tmp_path):
        study(tmp_path / "parts")
        assert (tmp_path / "parts").stat().st_mode & 0o077 == 0
        assert all(file.stat().st_mode & 0o077 == 0 for file in files(tmp_path / "parts"))

    def test_a_file_is_no_folder(self, tmp_path):
        (tmp_path / "taken").write_text("")
        with pytest.raises(pdrisk.ParameterError, match=r"resume must name a folder .* it is a file"):
            study(tmp_path / "taken")
        for empty in ("", " ", "\t"):  # which pathlib takes for the current folder, or for one of that name
            with pytest.raises(pdrisk.ParameterError, match="this name is empty"):
                study(empty)
        with pytest.raises(pdrisk.ColumnTypeError, match="resume must be the path"):
            study(5)

    def test_what_cannot_be_studied_leaves_no_folder(self, tmp_path):
        with pytest.raises(pdrisk.ParameterError):
            run(FRAME, "z", resume=tmp_path / "parts")
        assert not (tmp_path / "parts").exists()


class TestStopped:
    """However it is stopped, the parts that were finished stay."""

    @pytest.mark.parametrize("workers", [1, 2])
    def test_by_an_interrupt(self, tmp_path, monkeypatch, workers):
        own = checkpoint.Folder.save

        def once(folder, fingerprint, part):
            if len(files(tmp_path)) >= 2:
                raise KeyboardInterrupt
            own(folder, fingerprint, part)

        monkeypatch.setattr(checkpoint.Folder, "save", once)
        with pytest.raises(KeyboardInterrupt):
            study(tmp_path, workers=workers)
        assert 2 <= len(files(tmp_path)) < PARTS
        monkeypatch.undo()
        pd.testing.assert_frame_equal(study(tmp_path), study())

    def test_what_is_half_done_is_not_kept(self, tmp_path, monkeypatch):
        own, pieces = experiment.summary_of_samples, []

        def failing(samples, *rest):
            pieces.append(samples.shape)
            if len(pieces) == 4:  # both workers are in the middle of a part
                raise MemoryError
            time.sleep(0.01)
            return own(samples, *rest)

        monkeypatch.setattr(experiment, "PIECE", 1)
        monkeypatch.setattr(experiment, "summary_of_samples", failing)
        with pytest.raises(MemoryError):
            study(tmp_path, workers=2)
        assert len(pieces) < 10
        monkeypatch.undo()
        assert not files(tmp_path)
        pd.testing.assert_frame_equal(study(tmp_path), study())

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
    def test_by_a_kill(self, tmp_path, computed):
        code = (
            "import numpy as np, pandas as pd, sys, time\n"
            "from pdrisk.study import checkpoint, run\n"
            "from test_study_resume import study\n"
            "own = checkpoint.os.fsync\n"
            "checkpoint.os.fsync = lambda file: (time.sleep(0.15), own(file))[1]\n"  # so that the kill hits a write
            "study(sys.argv[1])\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            env=os.environ | {"PYTHONPATH": os.path.dirname(__file__)},
        )
        try:
            until = time.monotonic() + 60
            while not files(tmp_path) and process.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == -signal.SIGKILL
        there = len(files(tmp_path))
        assert 0 < there < PARTS
        pd.testing.assert_frame_equal(study(tmp_path), study())
        assert len(computed) == PARTS - there + PARTS
