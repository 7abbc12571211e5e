"""Each released value is drawn once and paid once; everything made of it costs nothing more."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._answer.answers.answer import Answer
from pdrisk._core.lattice import PLACES
from pdrisk._mechanisms.noise.sampler import discrete_laplace
from sql_people import BOUNDS, PEOPLE, REGIONS, connection, described, lines, only_additive_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


@pytest.fixture(scope="module")
def con():
    return connection()


@pytest.fixture
def draws(monkeypatch):
    """How many groups noise was drawn for in each call, and with which eps; medians have Laplace noise here."""
    calls = []
    only_additive_noise(monkeypatch)

    def counted(exact, change, eps):
        # The two sums of a mean, or three of a variance, are drawn at once: their noise costs eps together.
        assert exact.ndim == 1 + (change == PLACES) and exact.shape[:-1] in ((), (2,), (3,))
        calls.append((exact.shape[-1], eps))
        return discrete_laplace(exact, change, eps)

    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", counted)
    return calls


ONE = {  # releases: one for an aggregate, however often it is written, or for several that share one
    "SELECT COUNT(*)": 1,
    "SELECT COUNT(*), COUNT(*)": 1,
    "SELECT COUNT(*) AS n, count(*) AS m, COUNT(*) + COUNT(*) AS k": 1,
    "SELECT COUNT(*), COUNT(), dp_count(), dp_count(*), dp_count_star()": 1,
    "SELECT AVG(age), mean(age), dp_mean(AGE), dp_avg(people.age), dp_mean(age, lo := 18, hi := 90)": 1,
    "SELECT AVG(age) AS a, a + 1 AS b, a * b AS c": 1,
    "SELECT COUNT(*) / COUNT(*), -COUNT(*), CASE WHEN COUNT(*) > 1 THEN COUNT(*) ELSE -COUNT(*) END": 1,
    "SELECT COUNT(*) AS n HAVING n > 0 AND COUNT(*) > 1 ORDER BY n, COUNT(*) * 2, 1": 1,
    "SELECT SUM(age) FILTER (WHERE member), SUM(age) FILTER (member = true)": 2,
    "SELECT SUM(age) FILTER (WHERE member), SUM(age) FILTER (WHERE member)": 1,
    "SELECT VAR_SAMP(age), VARIANCE(age), dp_var(age), dp_var(age, ddof := 1)": 1,
    "SELECT STDDEV(age), STDDEV_POP(age), VAR_POP(age), VAR_SAMP(age)": 1,
    "SELECT MEDIAN(age), QUANTILE_CONT(age, 0.5)": 2,
    "SELECT QUANTILE_CONT(age, 0.9), dp_quantile(age, 0.9), dp_quantile(age, 0.90, lo := 18, hi := 90)": 1,
    "SELECT QUANTILE_CONT(age, 0.9), QUANTILE_CONT(age, 0.1)": 2,
    "SELECT COUNT(*), COUNT(age)": 2,
    "SELECT COUNT(*), COUNT(*) FILTER (WHERE true)": 2,
    "SELECT COUNT(*), dp_count(eps := 0.25)": 2,
    "SELECT dp_count(eps := 0.25), dp_count(eps := 0.250)": 1,
    "SELECT dp_mean(age, eps := 0.25), dp_mean(age, eps := 0.5)": 2,
    "SELECT dp_mean(age, lo := 0, hi := 9), dp_mean(age, lo := 0, hi := 10)": 2,
    "SELECT dp_count(age, lo := 0, hi := 9), dp_count(age, lo := 0, hi := 10)": 1,
    "SELECT AVG(age), AVG(children)": 2,
    "SELECT dp_mean(age + 1, lo := 0, hi := 9), dp_mean(1 + age, lo := 0, hi := 9)": 2,
    "SELECT COUNT(*) ORDER BY MIN(age)": 2,
    "SELECT COUNT(*) HAVING MAX(age) > 3": 2,
    "SELECT SUM(age) / COUNT(age)": 1,
}


def split(query: str) -> str:
    """The query with its FROM, and grouped."""
    at = min([len(query), *(query.index(word) for word in (" HAVING", " ORDER BY") if word in query)])
    return f"{query[:at]} FROM people {{}}{query[at:]}"


@pytest.mark.parametrize(("query", "releases"), ONE.items(), ids=ONE.keys())
class TestDraws:
    """One vector of noise for each release, as long as the list of keys."""

    @pytest.mark.sampled(3)
    def test_ungrouped(self, query, releases, draws, con):
        pdrisk.sql(split(query).format(""), con, eps=1, bounds=BOUNDS)
        assert [size for size, _ in draws] == [1] * releases

    @pytest.mark.sampled(3)
    def test_grouped(self, query, releases, draws, con):
        text = split(query).format("GROUP BY region")
        answer = pdrisk.sql(text, con, eps=1, bounds=BOUNDS, keys=REGIONS, risk_columns=True)
        assert [size for size, _ in draws] == [3] * releases
        numbers = Answer.from_attrs(answer.attrs).releases or range(releases)
        paid = {number: Fraction(line.eps) for number, line in zip(numbers, lines(answer), strict=True)}
        assert list(paid.values()) == [Fraction(float(eps)) for _, eps in draws]

    @pytest.mark.sampled(3)
    def test_what_leaves_out_rows_leaves_out_no_draw(self, query, releases, draws, con):
        text = split(query).format("GROUP BY region") + " LIMIT 1"
        pdrisk.sql(text, con, eps=1, bounds=BOUNDS, keys="observed")
        assert [size for size, _ in draws] == [4] * releases  # that of the missing key is one of them


class TestOneValue:
    """What is written several times has one value, and looking at it changes nothing."""

    def test_the_same_call_has_the_same_value(self, con):
        query = """
            SELECT region, AVG(age) AS a, a AS b, AVG(age) + 0 AS c, dp_mean(age) * 2 AS d, -a AS e, COUNT(*) AS n
            FROM people GROUP BY region HAVING a = AVG(age) AND n + 1 > n ORDER BY a
        """
        answer = pdrisk.sql(query, con, eps=1, bounds=BOUNDS, keys=REGIONS)
        assert len(answer) == 3
        for name, factor in (("b", 1), ("c", 1), ("d", 2), ("e", -1)):
            assert (answer[name] == answer["a"] * factor).all()
        assert answer["a"].is_monotonic_increasing

    def test_looking_does_not_draw(self, draws, con, tmp_path):
        answer = pdrisk.sql(
            "SELECT region, COUNT(*) FROM people GROUP BY 1", con, eps=1, keys=REGIONS, risk_columns=True
        )
        assert type(answer) is pd.DataFrame
        copy = answer.copy()
        for look in (repr, str, len, lambda it: it._repr_html_(), lambda it: it.describe(), pdrisk.public):
            look(answer)
        pd.testing.assert_frame_equal(answer, copy)
        assert len(draws) == 1

    @pytest.mark.slow
    def test_every_call_draws_anew(self, con):
        values = {
            pdrisk.sql("SELECT SUM(age) FROM people", con, eps=1, bounds=BOUNDS, mechanism="laplace").iat[0, 0]
            for _ in range(20)
        }
        assert len(values) == 20

    def test_groups_differ_though_they_are_equal(self, con):
        query = "SELECT id, COUNT(*) AS n FROM people GROUP BY id"
        answer = pdrisk.sql(query, con, eps=1, keys=range(40), mechanism="laplace")
        assert answer["n"].nunique() == 40

    @pytest.mark.parametrize(
        "query", ["SELECT COUNT(*) FROM nobody", "SELECT SUM(age) FROM people", "SELECT * FROM people"]
    )
    def test_a_refusal_draws_nothing(self, query, draws, con):
        with pytest.raises(pdrisk.ParameterError):
            pdrisk.sql(query, con, eps=1)
        assert draws == []

    def test_the_noise_is_laplace_of_the_stated_scale(self, con):
        query = "SELECT id, dp_sum(age, eps := 2, lo := 0, hi := 8) AS s FROM people GROUP BY id"
        answer = pdrisk.sql(query, con, keys=range(1000, 11_000), mechanism="laplace")
        noise = np.abs(answer["s"])
        assert [line.scale for line in lines(answer)] == [4.0]
        # The mean of |noise| is the scale: 10,000 values give it to 1 %: 0.9 and 1.1 of it are far from that.
        assert 3.75 < noise.mean() < 4.25
        assert 0.55 < (noise < 4 * np.log(2.5)).mean() < 0.65


class TestEps:
    """eps is the loss of the whole query, exactly; what calls say themselves is taken from it first."""

    CASES = (
        ("COUNT(*)", 1, [1]),
        ("COUNT(*), AVG(age)", 1, [Fraction(1, 2)] * 2),
        ("COUNT(*), AVG(age), MEDIAN(age)", 1, [Fraction(1, 3)] * 3),
        ("COUNT(*), AVG(age), MEDIAN(age)", 0.1, [Fraction(1, 30)] * 3),
        ("MIN(age), MAX(age), MEDIAN(age), AVG(age), SUM(distance), COUNT(*)", 1, [Fraction(1, 6)] * 6),
        ("dp_count(eps := 0.1), dp_mean(age, eps := 0.2)", None, [Fraction(1, 10), Fraction(1, 5)]),
        ("dp_count(eps := 0.1), dp_mean(age, eps := 0.2)", 0.3, [Fraction(1, 10), Fraction(1, 5)]),
        ("dp_count(eps := 0.1), dp_mean(age, eps := 0.2)", 5, [Fraction(1, 10), Fraction(1, 5)]),
        ("dp_count(eps := 0.1), AVG(age)", 0.3, [Fraction(1, 10), Fraction(1, 5)]),
        ("AVG(age), dp_count(eps := 0.1), MAX(age)", 0.3, [Fraction(1, 10)] * 3),
        ("dp_count(eps := 1), AVG(age), MAX(age), MIN(age)", Fraction(4, 3), [1, *[Fraction(1, 9)] * 3]),
        ("AVG(age), AVG(age) + COUNT(*), COUNT(*)", 1, [Fraction(1, 2)] * 2),
    )

    @pytest.mark.parametrize(("items", "eps", "shares"), CASES)
    def test_shares(self, items, eps, shares, draws, con):
        answer = pdrisk.sql(f"SELECT {items} FROM people", con, eps=eps, bounds=BOUNDS)
        assert [share for _, share in draws] == shares
        assert [line.eps for line in lines(answer)] == [float(share) for share in shares]
        assert described(answer).eps == float(sum(shares))

    @pytest.mark.parametrize(
        ("items", "releases"),
        [
            ("AVG(age), COUNT(*), STDDEV(age), COUNT(age)", [0, 1, 0, 0]),
            ("SUM(age), COUNT(age), SUM(distance)", [0, 0, 1]),
            ("AVG(age), AVG(age) FILTER (children > 1), COUNT(age) FILTER (children > 1)", [0, 1, 1]),
            ("AVG(age), dp_mean(age, lo := 0, hi := 200), VAR_POP(age), COUNT(age)", [0, 1, 0, 0]),
            ("AVG(age), dp_std(age, eps := 1), SUM(age)", [0, 1, 0]),
            ("AVG(age), dp_sum(age + 1, lo := 18, hi := 90)", [0, 1]),
        ],
    )
    def test_statistics_of_the_same_records_share_a_release(self, items, releases, draws, con):
        """And its eps: they are drawn once."""
        eps = 2 if "eps" in items else Fraction(max(releases) + 1)
        answer = pdrisk.sql(f"SELECT {items} FROM people", con, eps=eps, bounds=BOUNDS)
        assert [share for _, share in draws] == [1] * (max(releases) + 1)
        assert [line.eps for line in lines(answer)] == [1] * len(releases)
        said = described(answer)
        assert (said.eps, list(said.releases or range(len(releases)))) == (max(releases) + 1, releases)

    def test_groups_cost_once(self, draws, con):
        query = "SELECT region, COUNT(*), AVG(age) FROM people GROUP BY region"
        answer = pdrisk.sql(query, con, eps=1, bounds=BOUNDS, keys=REGIONS, risk_columns=True)
        assert draws == [(3, Fraction(1, 2)), (3, Fraction(1, 2))]
        assert answer["avg(age)_eps"].tolist() == [0.5] * 3
        assert described(answer).eps == 1

    def test_what_having_and_order_by_ask_for_is_paid_and_told(self, con):
        query = "SELECT COUNT(*) AS n FROM people HAVING MAX(age) > -1e9 ORDER BY MIN(age)"
        answer = pdrisk.sql(query, con, eps=3, bounds=BOUNDS)
        assert [(line.name, line.eps) for line in lines(answer)] == [
            ("n", 1.0), ("max(age)", 1.0), ("min(age)", 1.0)
        ]  # fmt: skip

    def test_a_line_says_what_was_released(self, con):
        query = "SELECT dp_mean(age, eps := 0.5, lo := 0, hi := 10) AS a FROM people"
        for mechanism, used, scale in (("laplace", "laplace", 10.0), ("auto", "two_sums", None)):
            (line,) = lines(pdrisk.sql(query, con, mechanism=mechanism))
            assert (line.name, line.column, line.statistic, line.mechanism) == ("a", "age", "mean", used)
            assert (line.bounds, line.eps, line.global_sensitivity) == ((0.0, 10.0), 0.5, 5.0)
            assert line.scale == scale
            assert line.risk.worst_case == pytest.approx(1 / (1 + math.exp(-0.5)))
            assert line.risk.success == pytest.approx(1 - math.exp(-0.25) / 2)

    def test_the_warning_of_wide_noise_comes_before_the_answer(self, con):
        with pytest.warns(pdrisk.NoisyReleaseWarning, match="half-width at eps=0.5 is"):
            pdrisk.sql("SELECT AVG(age), MAX(age) FROM people", con, eps=1, bounds=(0, 100), mechanism="laplace")


def test_the_people_differ():
    # Otherwise equal groups would show nothing.
    assert PEOPLE["age"].nunique() > 20
