"""What people are told of answers with several numbers: frames of ``by=``, ``agg`` and SQL."""

import math

import pandas as pd
import pytest

import pdrisk
from pdrisk import ParameterError
from pdrisk._answer.words import AUDIENCES
from pdrisk._core.risk import posterior
from test_explain import BOUNDS, FORBIDDEN, FRAME, OUT_OF, flat, release

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
SQL = "SELECT g, COUNT(*) AS people, SUM(x) AS total FROM t GROUP BY g"


class TestFrames:
    """Several numbers of one release: their eps adds up, but groups cost it once."""

    def test_a_release_is_told_as_by_itself(self) -> None:
        assert pdrisk.explain(release(), "analyst", 2) == release().explain("analyst", so_far=2)

    def test_several_statistics(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["sum", "count"], "y": ["count"]}, eps=3, **BOUNDS)
        said = flat(pdrisk.explain(answer, "publication"))
        assert "eps 3; sum(x), count(x) come from one release and cost its eps once, together" in said
        assert "sum(x), count(x), count(y), as published" in said
        assert "sum(x) bounds 0 to 20, declared" in said
        other = FRAME.dprisk.agg({"x": ["sum", "max"]}, eps=3, curator=True, **BOUNDS)
        curators = flat(pdrisk.explain(other, "curator"))
        assert "sum(x) global sensitivity 20" in curators and "exposed group" not in curators
        counted = (
            "count(y) bounds none needed; discrete Laplace noise, scale 0.666667; global sensitivity of the statistic 1"
        )
        assert f"{counted}; eps 1.5" in said
        assert "at most 96 times out of 100" in said  # posterior(3) = .9526
        assert "one group" not in said
        assert "With all these numbers they are right at most 96" in pdrisk.explain(answer)

    @pytest.mark.parametrize("by", ["g", ["g"]])
    def test_groups_cost_once(self, by: object) -> None:
        answer = FRAME.dprisk.count(eps=1, by=by, keys=["a", "b", "c"])
        assert "at most 74 times out of 100" in pdrisk.explain(answer)
        said = flat(pdrisk.explain(answer, "publication"))
        assert "eps 1; assuming one record per person, everybody is in at most one group: all groups cost" in said
        assert "groups declared by the publisher" in said

    def test_group_keys_from_the_data(self) -> None:
        answer = FRAME.dprisk.count(eps=1, by="g", keys="observed")
        assert "groups those that occur in the data" in flat(pdrisk.explain(answer, "publication"))

    def test_the_most_exposed_group(self) -> None:
        asked = {"eps": 8, "bounds": (0, 20), "by": "g", "keys": ["a", "b"], "curator": True, "mechanism": "laplace"}
        answer = FRAME.dprisk.agg({"x": ["max", "count"]}, **asked)
        # a holds 3 and 10, so max can move by 10; b holds 1 and 17: by 16
        said = flat(pdrisk.explain(answer, "curator"))
        assert "max(x), most exposed group: b global sensitivity 20" in said
        assert "local sensitivity 16: the most in these data, at most 0.8 of that records used 2" in said
        exposed = float(posterior(4 * 16 / 20))
        assert f"at most {math.ceil(exposed * 1e4) / 1e4:g} with it" in said

    @pytest.mark.parametrize("keys", [["nobody", "a", "b", "c"], ["c", "b", "a", "nobody"]])
    def test_of_counts_it_is_the_smallest_that_holds_somebody(self, keys: list[str]) -> None:
        frame = pd.DataFrame({"x": [1.0] * 9, "g": [*"aaaaabbbc"]})
        for answer in (
            frame.dprisk.count(eps=1, by="g", keys=keys, curator=True),
            pdrisk.sql("SELECT COUNT(*) AS n, g FROM t GROUP BY g", eps=1, keys=keys, t=frame, curator=True),
        ):
            said = flat(pdrisk.explain(answer, "curator"))
            assert "most exposed group: c " in said
            assert "records used 1" in said
        unnamed = pdrisk.sql("SELECT COUNT(*) AS n FROM t GROUP BY g", eps=1, keys=keys, t=frame, curator=True)
        assert f"most exposed group: row {keys.index('c') + 1} " in flat(pdrisk.explain(unnamed, "curator"))

    def test_sql_groups_of_several_keys(self) -> None:
        frame = pd.DataFrame({"g": [*"aab"], "h": [1, 2, 2]})
        query = "SELECT h, COUNT(*) AS n, g FROM t WHERE h > 1 GROUP BY g, h"
        answer = pdrisk.sql(query, eps=1, keys=[("a", 1), ("b", 2)], t=frame, curator=True)
        assert "most exposed group: 2, b " in flat(pdrisk.explain(answer, "curator"))

    def test_columns_instead_of_an_index(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["sum", "count"]}, eps=9, bounds=(0, 20), curator=True)
        for audience in AUDIENCES:
            assert pdrisk.explain(answer.reset_index(), audience) == pdrisk.explain(answer, audience)

    def test_rows_taken_out_stay_paid(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["sum", "count"]}, eps=1, bounds=(0, 20))
        rest = answer.xs("count", level="statistic", drop_level=False)
        assert pdrisk.explain(rest).count("74 times out of 100") == 1
        assert "sum(x)" in pdrisk.explain(rest, "analyst")  # it was paid for, and said

    def test_after_publishing(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["sum", "count"]}, eps=9, bounds=(0, 20))
        for audience in ("participant", "analyst", "publication"):
            assert pdrisk.explain(pdrisk.public(answer), audience) == pdrisk.explain(answer, audience)

    def test_sql(self) -> None:
        options = {"eps": 2, "bounds": {"x": (0, 20)}, "keys": {"g": ["a", "b"]}, "t": FRAME}
        answer = pdrisk.sql(SQL, **options)
        assert "at most 89 times out of 100" in pdrisk.explain(answer)  # posterior(2) = .8808
        assert "total bounds 0 to 20" in flat(pdrisk.explain(answer, "publication"))
        with pytest.raises(ParameterError, match="ask with curator=True"):
            pdrisk.explain(answer, "curator")
        curator = flat(pdrisk.explain(pdrisk.sql(SQL, curator=True, **options), "curator"))
        # The sum of either can move by 20, and both hold two people; 1 and 17 are farther apart than 3 and 10.
        assert "total, most exposed group: b global sensitivity 20: " in curator
        assert "records used 2" in curator

    def test_sql_of_one_number(self) -> None:
        answer = pdrisk.sql("SELECT COUNT(*) AS people FROM t", eps=1, t=FRAME, curator=True)
        assert "Without this number" in pdrisk.explain(answer)
        assert "people with noise: 95 % interval" in flat(pdrisk.explain(answer, "analyst"))
        assert "records used 4" in flat(pdrisk.explain(answer, "curator"))

    @pytest.mark.parametrize("audience", AUDIENCES)
    @pytest.mark.parametrize("eps", [0.03, 1, 9])
    def test_the_rules_hold(self, audience: str, eps: float) -> None:
        answer = FRAME.dprisk.agg(
            {"x": ["sum", "count"]}, eps=eps, bounds=(0, 20), by="g", keys=["a", "b"], curator=True
        )
        said = flat(pdrisk.explain(answer, audience, so_far=2 * eps))
        assert not FORBIDDEN.search(said)
        assert len(set(OUT_OF.findall(said))) == 1
        assert "toss a coin" in said
