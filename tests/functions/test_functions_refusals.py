"""What is refused is refused before data is read, with pdrisk's own sentence and the name of the function."""

import contextvars
import math

import duckdb
import pytest

import pdrisk
from functions_on_duckdb import FUNCTIONS, LAPLACE, MEAN, SUMS, connection, count_draws, one, refusal, rows, table
from pdrisk._functions import columns, scalars

SECRET = 987654321.5
EPS = {
    "NULL": "eps is missing, the privacy loss to spend: write eps := 1.",
    "0": "eps must be finite and above 0, but is 0. An answer that costs no privacy at all would be noise alone.",
    "-1": "eps must be finite and above 0, but is -1.",
    "'inf'::DOUBLE": "eps must be finite and above 0, but is inf.",
    "'nan'::DOUBLE": "eps must be finite and above 0, but is nan.",
    "1e-13": "eps=1e-13 is below 1e-12",
    "'1'": "eps must be a number, but is of type VARCHAR.",
    "true": "eps must be a number, but is of type BOOLEAN.",
    "[1]": "eps must be a number, but is of type INTEGER[].",
    "{'eps': 1}": "eps must be a number, but is of type STRUCT.",
    "DATE '2020-01-01'": "eps must be a number, but is of type DATE.",
}
BOUNDS = {
    ("NULL", "7"): "bounds are missing, the range the values can have: write lo := 1, hi := 675.",
    ("1", "NULL::DOUBLE"): "bounds are missing",
    ("7", "1"): "bounds must be (lo, hi) with lo < hi, but (7, 1) is reversed: write (1, 7).",
    ("1", "1"): "bounds must be (lo, hi) with lo < hi, but both are 1",
    ("1", "'inf'::DOUBLE"): "bounds must be finite, but are (1, inf)",
    ("'-inf'::DOUBLE", "1"): "bounds must be finite, but are (-inf, 1)",
    ("'nan'::DOUBLE", "1"): "bounds must be finite, but are (nan, 1)",
    ("1", "1e200"): "must lie within 1e100 of zero",
    ("1e9", "1e9 + 1"): "too narrow for their distance from zero",
    ("'1'", "7"): "lo must be a number, but is of type VARCHAR.",
    ("'secret'", "7"): "lo must be a number, but is of type VARCHAR.",
    ("1", "true"): "hi must be a number, but is of type BOOLEAN.",
    ("DATE '2020-01-01'", "7"): "lo must be a number, but is of type DATE.",
}
OTHERS = {
    "dp_quantile(x, eps := 1, lo := 1, hi := 7, q := NULL)": "dp_quantile: q must be a number, but is missing.",
    "dp_quantile(x, 1.1, 1, 1, 7)": "dp_quantile: q must be between 0 and 1, but is 1.1",
    "dp_quantile(x, -0.1, 1, 1, 7)": "dp_quantile: q must be between 0 and 1, but is -0.1",
    "dp_quantile(x, 'nan'::DOUBLE, 1, 1, 7)": "dp_quantile: q must be between 0 and 1, but is nan",
    "dp_quantile(x, '0.5', 1, 1, 7)": "dp_quantile: q must be a number, but is of type VARCHAR.",
    "dp_var(x, 1, 1, 7, 2)": "dp_var: ddof must be 0 (population) or 1 (sample), but is 2.",
    "dp_std(x, 1, 1, 7, -1)": "dp_std: ddof must be 0 (population) or 1 (sample), but is -1.",
    "dp_std(x, 1, 1, 7, 0.5)": "dp_std: ddof must be 0 (population) or 1 (sample), but is 0.5.",
    "dp_var(x, 1, 1, 7, NULL)": "dp_var: ddof must be 0 (population) or 1 (sample), but is missing.",
    "dp_var(x, 1, 1, 7, true)": "dp_var: ddof must be a number, but is of type BOOLEAN.",
    "dp_mean(x)": "dp_mean: eps is missing",
    "dp_mean(x, 1)": "dp_mean: bounds are missing",
    "dp_mean(x, 1, 1)": "dp_mean: bounds are missing",
    "dp_count(x)": "dp_count: eps is missing",
    "dp_count_star()": "dp_count_star: eps is missing",
}


@pytest.fixture(scope="module")
def con():
    with connection() as own:
        table(own, [SECRET, SECRET + 1, None])
        yield own


@pytest.mark.parametrize("risk", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
class TestConstants:
    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("eps", EPS)
    def test_eps(self, con, function, risk, eps):
        said = refusal(con, f"SELECT {function.call(eps=eps, risk=risk)} FROM t")
        assert f"{function.name}{'_risk' * risk}: {EPS[eps]}" in said

    @pytest.mark.parametrize(
        ("eps", "words"), [("1e40", "eps=1e+40 would add no noise at all"), ("1e-8", "needs noise beyond 64-bit")]
    )
    def test_eps_that_the_mechanism_cannot_be_calibrated_to(self, con, function, risk, eps, words):
        """Laplace noise dissolves in the grid of answers, sums of places outgrow 64 bits; counts do neither."""
        refused = function in (LAPLACE if eps == "1e40" else SUMS)
        query = f"SELECT {function.call(eps=eps, risk=risk)} FROM t"
        if refused:
            assert f"{function.name}{'_risk' * risk}: eps=" in (said := refusal(con, query))
            assert words in said
        else:
            assert len(rows(con, query)) == 1

    @pytest.mark.sampled(11)
    @pytest.mark.parametrize("bounds", BOUNDS)
    def test_bounds(self, con, function, risk, bounds):
        if function.bounded:
            said = refusal(con, f"SELECT {function.call(lo=bounds[0], hi=bounds[1], risk=risk)} FROM t")
            assert f"{function.name}{'_risk' * risk}: " in said
            assert BOUNDS[bounds] in said


class TestOthers:
    @pytest.mark.parametrize("call", OTHERS)
    def test_q_ddof_and_what_is_left_out(self, con, call):
        assert OTHERS[call] in refusal(con, f"SELECT {call} FROM t")

    @pytest.mark.parametrize(
        "call", ["dp_count(x, 1, lo := 1)", "dp_mean(x, 1, 1, 7, 9)", "dp_mean(x, 1, 1, 7, q := 1)"]
    )
    def test_arguments_it_does_not_have(self, con, call):
        assert "does not support the supplied arguments" in refusal(con, f"SELECT {call} FROM t")

    def test_it_is_refused_when_the_query_is_planned(self, con):
        with pytest.raises(duckdb.Error, match="dp_mean: eps is missing"):
            con.sql("SELECT dp_mean(x) FROM t")

    def test_no_data_is_read(self, con, monkeypatch):
        """Not even where reading would fail, and say why."""
        drawn = count_draws(monkeypatch)
        said = refusal(con, f"SELECT {MEAN.call('error(x::VARCHAR)::DOUBLE', eps='0')} FROM t")
        assert "eps must be finite" in said and "987654321" not in said
        assert drawn == []


class TestLedger:
    """Inside the `with` block of a ledger, which they could not charge, the functions are refused."""

    @pytest.fixture
    def read(self, monkeypatch):
        """A list that grows when data reaches Python."""
        found = []
        real = scalars.summary_of
        monkeypatch.setattr(scalars, "summary_of", lambda *given: (found.append(1), real(*given))[1])
        return found

    @pytest.fixture
    def ledger(self, book, monkeypatch, read):
        """A ledger; after the test nothing was charged, drawn or read."""
        drawn = count_draws(monkeypatch)
        opened = book(eps=10)
        yield opened
        assert (opened.remaining().spent, drawn, read) == (0, [], [])

    @pytest.mark.parametrize("risk", [False, True])
    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    def test_every_function(self, con, ledger, function, risk):
        with ledger:
            said = refusal(con, f"SELECT {function.call(risk=risk)} FROM t")
        assert f"{function.name}{'_risk' * risk} cannot charge a ledger, and the `with` block of one is open" in said
        assert "ask with pdrisk.sql, which can" in said

    @pytest.mark.parametrize("threads", [1, 4])
    @pytest.mark.parametrize("call", [MEAN.call(), MEAN.call(eps="$1"), MEAN.call(risk=True)])
    def test_what_was_prepared_before(self, con, ledger, call, threads):
        con.execute(f"SET threads = {threads}")
        con.execute(f"PREPARE outside AS SELECT {call} FROM t")
        with ledger:
            assert "pdrisk.sql" in refusal(con, f"EXECUTE outside{'(1)' * ('$' in call)}")

    def test_relations_and_views_made_before(self, con, ledger):
        relation = con.sql(f"SELECT {MEAN.call()} FROM t")
        con.execute(f"CREATE OR REPLACE TEMP VIEW outside AS SELECT {MEAN.call()} FROM t")
        with ledger:
            with pytest.raises(duckdb.Error, match=r"pdrisk\.sql"):
                relation.fetchall()
            assert "pdrisk.sql" in refusal(con, "FROM outside")

    def test_what_is_made_inside_is_not_there_outside(self, con, ledger):
        with ledger:
            assert "pdrisk.sql" in refusal(con, f"PREPARE inside AS SELECT {MEAN.call()} FROM t")
            with pytest.raises(duckdb.Error, match=r"pdrisk\.sql"):
                con.sql(f"SELECT {MEAN.call()} FROM t")
        assert "does not exist" in refusal(con, "EXECUTE inside")

    @pytest.mark.slow
    def test_registered_inside(self, book, read):
        with connection() as con:
            table(con, [3.0])
            with book(eps=10):
                pdrisk.register(con)
                assert "pdrisk.sql" in refusal(con, f"SELECT {MEAN.call()} FROM t")
            assert isinstance(one(con, MEAN.call()), float) and read == [1]

    def test_a_block_that_is_open_elsewhere(self, con, book):
        """Other threads and tasks do not see it. What they draw is not charged, and they are told."""
        with (ledger := book(eps=10)):
            ask = contextvars.Context().run
            with pytest.warns(pdrisk.UnpaidReleaseWarning, match="no ledger pays"):
                ask(lambda: one(con, MEAN.call()))
            ask(lambda: one(con, MEAN.call(risk=True)))  # releases nothing, and warns of nothing
        assert ledger.remaining().spent == 0


class TestSilence:
    """No sentence holds anything of the data, whatever goes wrong in Python."""

    @pytest.mark.parametrize("broken", ["drawn_once", "facts", "summary_of"])
    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    def test_a_failure_hides_its_cause(self, con, function, broken, monkeypatch):
        def fails(*arguments, **options):
            raise ValueError(f"SENTINEL {arguments}")

        monkeypatch.setattr(scalars, broken, fails)
        said = refusal(con, f"SELECT {function.call(risk=broken == 'facts')} FROM t")
        assert "the request failed while the data was read" in said
        assert not any(secret in said for secret in ("SENTINEL", "987654321", "array"))

    def test_a_warning_is_not_shown(self, con, monkeypatch, recwarn):
        real = columns._floats
        monkeypatch.setattr(columns, "_floats", lambda column: real(column) / 0.0)
        one(con, MEAN.call(risk=True))
        assert not recwarn.list

    @pytest.mark.sampled(11)
    @pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.bounded], ids=str)
    @pytest.mark.parametrize("value", [math.inf, -math.inf, 1e308, -1e308, 5e-324])
    def test_nothing_overflows(self, function, value):
        """A cast that fails would quote the value."""
        with connection() as con:
            table(con, [value, None, math.nan, value, 1e-300])
            for lo, hi in (("1", "7"), ("-1e100", "1e100"), ("0", "1e-100")):
                assert math.isfinite(one(con, function.call(lo=lo, hi=hi)))
                assert one(con, function.call(lo=lo, hi=hi, risk=True))["n"] == 3

    def test_labels_of_an_enum_are_not_shown(self, con):
        con.execute("CREATE OR REPLACE TEMP TABLE kinds AS SELECT 'SENTINEL'::ENUM('SENTINEL', 'OTHER') AS x")
        said = refusal(con, f"SELECT {MEAN.call()} FROM kinds")
        assert "this column is of type ENUM" in said and "SENTINEL" not in said

    def test_the_function_underneath_takes_no_column_for_a_constant(self, con):
        con.execute("CREATE OR REPLACE TEMP TABLE eps_of AS SELECT unnest(['1', '2']) AS eps")
        said = refusal(con, "SELECT __pdrisk_dp_mean('0', eps, 1, 7, NULL, 3, 9) FROM eps_of")
        assert "dp_mean: eps, lo, hi must be constants or bound parameters." in said
