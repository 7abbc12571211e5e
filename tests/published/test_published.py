"""Printed numbers: what the papers say of their own examples, all of them in `papers`."""

import os

import pytest

import papers
from papers_lee_clifton import after_output
from papers_numbers import Number, adult_folder, holds
from pdrisk.identifiability import worlds_with
from pdrisk.risk import exact_identifiability

NUMBERS = [(section.title, number) for section in papers.SECTIONS for number in section.numbers]


class TestPublished:
    """What pdrisk computes is what the papers print, or is said to be something else."""

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize(("title", "number"), NUMBERS, ids=[f"{title}: {number.what}" for title, number in NUMBERS])
    def test_number(self, title: str, number: Number) -> None:
        if number.kind == "file":
            if adult_folder() is None:
                pytest.skip("the Adult file is not installed")
            assert number.rounded() == (number.note == "")
        assert holds(number), (title, number.what, number.printed, number.ours())

    def test_no_number_is_asked_for_twice(self) -> None:
        about = [(title, number.what, number.printed) for title, number in NUMBERS]
        assert len(set(about)) == len(about)

    def test_the_output_beyond_the_last_world_says_the_most(self) -> None:
        # Lee & Clifton 2012, section 3.5: their output of 5.041 lies beyond the mean of 1, 2, 3 and 10.
        worlds = worlds_with([1, 2, 3], [1, 2, 3, 4, 5, 10])
        assert exact_identifiability(worlds, 9 / 8) == pytest.approx(after_output(worlds, 9 / 8, 5.041, 2), rel=1e-14)


class TestPage:
    """docs/reproducing.md is what the list of numbers says."""

    @pytest.mark.slow
    def test_it_is_current(self) -> None:
        if os.environ.get("PDRISK_WRITE_GOLDEN"):
            papers.PAGE.write_text(papers.page(), encoding="utf-8")
        assert papers.PAGE.read_text(encoding="utf-8") == papers.page()

    def test_every_number_has_a_verdict(self) -> None:
        rows = [line for line in papers.page().splitlines() if line.startswith("| ")]
        assert len(rows) > len(NUMBERS)
        for _, number in NUMBERS:
            ours, verdict = number.shown()
            assert f"| {number.what} | {number.printed} | {ours} | {verdict} |" in rows
            assert verdict.startswith("✓") == (number.kind != "corrected")

    def test_a_wrong_number_is_seen(self) -> None:
        right = Number("ln 3.5", "1.2527", lambda: 1.2527629685)
        assert holds(right) and right.shown()[1] == "✓ cut off, not rounded"
        assert holds(Number("ln 3.5", "1.2528", lambda: 1.2527629685))
        for printed in ("1.2526", "1.2529", "1.25275", "1.3527"):
            assert not holds(Number("ln 3.5", printed, lambda: 1.2527629685))
        assert not holds(Number("not another one", "1.2528", lambda: 1.2527629685, "corrected"))
        assert not holds(Number("not infeasible", "∞", lambda: 1.0, "infeasible"))
        assert not holds(Number("a percent off", "100", lambda: 101.0, "percent"))
