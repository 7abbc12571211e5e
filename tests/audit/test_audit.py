"""The audit passes what is sound and finds every fault of `audit_mutants`; its reports say so."""

import json
import os
import threading
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from audit_mutants import MUTANTS
from pdrisk import _audit
from pdrisk._answer import releasing
from pdrisk._audit.joins import random_join
from pdrisk._audit.people import random_people
from pdrisk._audit.questions import random_question
from pdrisk._audit.replay import Diverged, recorded, replayed
from pdrisk._audit.replay_checks import replay_checks

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

SEED = 5
BY_DEFAULT = (  # the others are slow: the same questions until one tells
    "a sum without noise",
    "eps that is not split",
    "a warning that depends on the data",
    "weights for twice the eps",
    "groups that nobody is in are left out",
)


@pytest.fixture(scope="module")
def report():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pdrisk._audit.noise.SCALES", (Fraction(1),))  # others take time, and pass alike
        return pdrisk.audit(only=["noise"], seed=SEED, progress=False)


def first_failure(*sections):
    """What the audit finds first; None if it finds nothing."""
    checks = (check() for section in sections for check in _audit._checks(section, SEED, deep=False))
    return next((each for each in checks if not each.passed), None)


class TestMutants:
    """Each fault is found, by the section that is there for it."""

    def test_there_are_twenty_and_more(self):
        assert len(MUTANTS) >= 20

    @pytest.mark.whole
    @pytest.mark.parametrize(
        "name", [name if name in BY_DEFAULT else pytest.param(name, marks=pytest.mark.slow) for name in MUTANTS]
    )
    def test_is_caught(self, name, monkeypatch):
        sections, broken = MUTANTS[name]
        broken(monkeypatch)
        found = first_failure(*sections)
        assert found is not None
        assert found.finding
        assert found.section in sections

    @pytest.mark.slow
    @pytest.mark.whole
    @pytest.mark.parametrize("name", [name for name, (sections, _) in MUTANTS.items() if "black box" in sections])
    def test_is_caught_by_its_answers_alone(self, name, monkeypatch):
        MUTANTS[name][1](monkeypatch)
        found = first_failure("black box")
        assert found is not None
        assert found.measured > found.claimed


class TestSound:
    """What is right passes."""

    def test_some_questions(self):
        """Of the first, some lose exactly the eps they cost: neighbours are telling ones."""
        found = [check() for check in replay_checks({"accessor": 20, "people": 15, "sql": 3, "joins": 3}, 1, SEED)]
        assert [each.finding for each in found] == [""] * 4
        assert [each.measured for each in found[:2]] == pytest.approx([1, 1], abs=1e-9)
        assert all(0 < each.measured <= 1 + 1e-9 for each in found[2:])

    @pytest.mark.slow
    def test_all(self):
        report = pdrisk.audit(seed=SEED, progress=False)
        assert report.passed, repr(report)
        assert report.seconds < 600  # a shared machine

    def test_the_same_seed_asks_the_same(self):
        one, other = (random_question(np.random.default_rng(3), "accessor") for _ in range(2))
        assert one.words == other.words
        pd.testing.assert_frame_equal(one.second, other.second)

    def test_neighbours_differ_by_one_record(self):
        for seed in range(20):
            case = random_question(np.random.default_rng(seed), "sql")
            assert len(case.second) == len(case.first) + 1
            if len(case.first) > 100:
                continue
            rows = [list(map(repr, each.itertuples(index=False))) for each in (case.first, case.second)]
            for row in rows[0]:
                rows[1].remove(row)
            assert len(rows[1]) == 1

    def test_neighbours_of_people_differ_by_one_person(self):
        for seed in range(20):
            question = random_people(np.random.default_rng(seed))
            left = set(question.first["pid"].dropna())
            assert len(set(question.second["pid"].dropna()) - left) == 1
            kept = question.second[question.second["pid"].isin(left) | question.second["pid"].isna()]
            columns = list(kept.columns)
            pd.testing.assert_frame_equal(
                kept.sort_values(columns, ignore_index=True), question.first.sort_values(columns, ignore_index=True)
            )

    def test_neighbours_of_joins_lack_one_person_in_every_table(self):
        for seed in range(20):
            question = random_join(np.random.default_rng(seed))
            gone = set(question.second["patients"]["pid"]) - set(question.first["patients"]["pid"])
            assert len(gone) == 1
            for name, whole in question.second.items():
                kept = whole[~whole["pid"].isin(gone)]
                columns = list(kept.columns)
                rows = (each.sort_values(columns, ignore_index=True) for each in (kept, question.first[name]))
                pd.testing.assert_frame_equal(*rows)


class TestReplay:
    """Frozen noise belongs to the audit alone."""

    FRAME = pd.DataFrame({"x": [1.0, 2.0, 9.0]})

    @staticmethod
    def ask(frame):
        return frame.dprisk.mean("x", eps=1, bounds=(0, 10))

    def test_loss_of_a_neighbour(self):
        before = recorded(self.ask, self.FRAME)
        assert replayed(self.ask, self.FRAME, before).loss == 0
        assert replayed(self.ask, self.FRAME[:2], before).loss == 1  # exactly eps, whatever the record

    def test_no_neighbour(self):
        before = recorded(self.ask, self.FRAME)
        assert replayed(self.ask, self.FRAME[:0], before).loss == 3  # one eps for each record

    def test_another_question(self):
        before = recorded(self.ask, self.FRAME)
        with pytest.raises(Diverged, match="calibrated otherwise"):
            replayed(lambda frame: frame.dprisk.mean("x", eps=2, bounds=(0, 10)), self.FRAME, before)
        with pytest.raises(Diverged, match="the neighbour has not"):
            replayed(lambda frame: (self.ask(frame), self.ask(frame)), self.FRAME, before)
        with pytest.raises(Diverged, match="is missing"):
            replayed(lambda frame: 3, self.FRAME, before)
        with pytest.raises(Diverged, match="something else is shown"):
            replayed(lambda frame: (self.ask(frame), len(frame)), self.FRAME, before)

    def test_other_threads_draw_as_ever(self):
        """What somebody else asks meanwhile gets noise of its own, and is not recorded."""
        seen = []

        def ask(frame):
            thread = threading.Thread(target=lambda: seen.append(frame.dprisk.count(eps=1e-3).value))
            thread.start()
            thread.join()
            return self.ask(frame)

        before = recorded(ask, self.FRAME)
        assert len(before.draws) == 1
        for _ in range(4):
            replayed(ask, self.FRAME, before)
        assert len(set(seen)) > 1

    def test_it_is_undone(self):
        own = releasing.drawn_once
        with pytest.raises(KeyboardInterrupt):
            recorded(lambda frame: (_ for _ in ()).throw(KeyboardInterrupt), self.FRAME)
        assert releasing.drawn_once is own


class TestReport:
    """What is filed."""

    def test_it_passes(self, report):
        assert report.passed
        assert report.failures == ()
        assert "All 10 checks passed" in repr(report)
        assert report.versions["numpy"] == np.__version__

    def test_files(self, report, tmp_path):
        for name in ("audit.json", "audit.html"):
            text = report.save(tmp_path / name).read_text(encoding="utf-8")
            assert "random bits" in text
        read = json.loads((tmp_path / "audit.json").read_text())
        assert (read["verdict"], len(read["checks"]), read["seed"]) == ("passed", 10, SEED)
        with pytest.raises(pdrisk.ParameterError, match=r"\.html or \.json"):
            report.save(tmp_path / "audit.txt")
        assert sorted(os.listdir(tmp_path)) == ["audit.html", "audit.json"]

    @pytest.mark.slow
    def test_a_failure_is_told(self, monkeypatch):
        MUTANTS["a bit that is stuck"][1](monkeypatch)
        report = pdrisk.audit(only=["noise"], progress=False)
        assert not report.passed
        assert "FAILED noise, random bits" in repr(report)
        assert "do not publish" in report.to_html()
        assert (report.table["verdict"] == "fail").sum() == len(report.failures)

    def test_command(self, report, tmp_path, capsys, monkeypatch):
        from pdrisk._cli import main

        monkeypatch.setattr(pdrisk, "audit", lambda **said: report)
        assert main(["audit", "--to", str(tmp_path / "a.json")]) == 0
        assert "pdrisk audit: passed" in capsys.readouterr().out
        monkeypatch.setattr(pdrisk, "audit", lambda **said: pytest.fail("tested first, and refused after minutes"))
        assert main(["audit", "--to", "a.pdf"]) == 2
        assert main(["audit", "--to", str(tmp_path / "none" / "a.html")]) == 2
        assert "there is no folder" in capsys.readouterr().err
        monkeypatch.setattr(pdrisk, "audit", lambda **said: report)
        monkeypatch.setattr(type(report), "passed", False)
        assert main(["audit"]) == 1

    @pytest.mark.parametrize(
        "said", [{"only": ["nose"]}, {"seed": -1}, {"seed": True}, {"deep": 1}, {"progress": "no"}], ids=str
    )
    def test_refusals(self, said):
        with pytest.raises(pdrisk.ParameterError):
            pdrisk.audit(**said)
