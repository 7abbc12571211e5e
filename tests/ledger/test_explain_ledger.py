"""What a ledger tells about all answers together: with a limit what it promises, without one only what holds."""

import pandas as pd
import pytest

import pdrisk

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")
FRAME = pd.DataFrame({"x": range(300), "pid": [at // 2 for at in range(300)]})


def spent(ledger, *eps, **options):
    for each in eps:
        FRAME.dprisk.count(eps=each, ledger=ledger, **options)
    return ledger


def test_to_a_participant(book):
    """SUCCESS.md: at .75 lucky answers convince of 95 % in at most 15 of 100 cases, and of two values 92 of 100."""
    said = pdrisk.explain(so_far=spent(book(eps=None, success=0.75), 0.3, 0.2))
    assert said.splitlines() == [
        "Imagine the hardest case we can think of: someone knows everybody else's answers and must say whether you "
        "took part.",
        "Without our numbers they can only toss a coin: right 50 times out of 100.",
        "With all our numbers, those to come included, they are right at most 75 times out of 100, however they "
        "combine them. That is at most 25 more.",
        "Lucky numbers may convince more, rightly or wrongly: in at most 15 of 100 cases someone becomes 95 % sure, or "
        "surer.",
        "So far no numbers can have made anybody surer than 63 of 100.",  # 1 / (1 + e**-.5) = .6225
        "Which of two possible records is somebody's can be told right at most 92 times out of 100; with a coin, 50.",
        "It holds if one record in the data is yours. With several, they may be right more often.",
        "It does not cover theft of the data itself, or conclusions about people like you that hold whether or not you "
        "take part.",
    ]


def test_a_limit_of_eps_is_never_passed(book):
    """1 / (1 + e**-2) = .881; of two values 1 - e**-2 / 2 = .933."""
    both = pdrisk.explain(so_far=book(eps=2, success=0.75))
    assert "right at most 75 times out of 100" in both and "cases" not in both
    assert "However lucky the numbers are, nobody becomes surer than 89 of 100." in both


def test_eps_alone(book):
    said = pdrisk.explain(so_far=book(eps=2))
    assert "those to come included, they are right at most 89 times out of 100" in said
    assert "told right at most 94 times out of 100" in said and "ucky" not in said


def test_people(book):
    ledger = spent(book(eps=None, success=0.75), 0.3, person="pid", rows=2)
    assert "It holds for everything that one pid has in the data." in pdrisk.explain(so_far=ledger)
    assert "everything that one pid has in the data" in pdrisk.explain(so_far=ledger, audience="publication")


class TestWithoutALimit:
    """Only what is true of every outcome is claimed; the sum of squares is no bound, and says so."""

    @pytest.fixture
    def ledger(self, book):
        return spent(book(eps=None, queries=99), *[0.25] * 20)

    def test_claims_the_worst_of_all_outcomes(self, ledger):
        said = pdrisk.explain(so_far=ledger)
        assert "With all our numbers so far they are right at most 994 times out of 1,000" in said  # 1 / (1 + e**-5)
        assert "every further number adds to it: no limit is set" in said and "to come" not in said

    def test_had_they_been_fixed(self, ledger):
        said = pdrisk.explain(so_far=ledger, audience="analyst")
        flat = " ".join(said.split())
        assert "had these eps been fixed beforehand, right at most 758 times out of 1,000" in flat
        assert "that is no promise where later questions had to do with earlier answers" in flat
        assert "if fixed" not in pdrisk.explain(so_far=ledger, audience="publication")

    def test_a_limit_that_was_lowered_below_what_was_paid(self, book):
        ledger = spent(book(eps=None, success=0.9), *[0.4] * 20)
        ledger.amend(success=0.6)
        assert "at most 90 times out of 100" in pdrisk.explain(so_far=ledger)

    def test_a_limit_that_was_passed_before_it_was_set(self, ledger):
        ledger.amend(success=0.6)
        assert "994 times out of 1,000" in pdrisk.explain(so_far=ledger)


class TestOneAnswer:
    """So far means the limit, where there is one."""

    def test_the_limit(self, book):
        ledger = book(eps=None, success=0.75)
        release = FRAME.dprisk.count(eps=0.3, ledger=ledger)
        said = release.explain(so_far=ledger)
        assert "All releases together, those to come included: at most 75 of 100." in said
        analyst = " ".join(release.explain("analyst", so_far=ledger).split())
        assert "one more answer may still reach success" in analyst
        assert "right at most 75 times out of 100, however they are combined; eps 0.3 so far" in analyst

    def test_a_base_rate_is_believed_by_eps(self, book):
        ledger = book(eps=None, success=0.75)
        release = FRAME.dprisk.count(eps=1, ledger=ledger)
        assert "at most 1 in 203" in release.explain(so_far=ledger, prior=1 / 551)


def test_delta(book):
    ledger = book(eps=None, success=0.75, delta=0.001)
    said = pdrisk.explain(so_far=ledger)
    assert "at most 76 times out of 100" in said and "ucky" not in said  # .75 + .25 * .001


@pytest.mark.parametrize(
    ("given", "options", "error", "words"),
    [
        (None, {}, pdrisk.ColumnTypeError, "explain takes an answer of pdrisk"),
        ("ledger", {"audience": "curator"}, pdrisk.ParameterError, "the curator's text is about one answer"),
        ("ledger", {"audience": "all"}, pdrisk.ParameterError, "a ledger is explained to participant, analyst"),
        ("ledger", {"prior": 0.1}, pdrisk.ParameterError, "prior= is for one answer"),
        ("ledger", {"language": "xx"}, pdrisk.ParameterError, "unknown language"),
        (1.5, {}, pdrisk.ColumnTypeError, "so_far=ledger alone"),
    ],
)
def test_refusals(book, given, options, error, words):
    so_far = book(eps=None, success=0.75) if given == "ledger" else given
    with pytest.raises(error, match=words):
        pdrisk.explain(so_far=so_far, **options)


class TestDoubts:
    """Numbers about people after answers that protected one record, and a limit that answers may have decided."""

    @staticmethod
    def everywhere(ledger, release):
        """All texts that are about all answers of a ledger."""
        ways = [pdrisk.explain(so_far=ledger, audience=each) for each in ("participant", "analyst", "publication")]
        ways += [release.explain(each, so_far=ledger) for each in ("participant", "analyst", "publication")]
        curves = pdrisk.tradeoff(ledger), pdrisk.tradeoff(release, so_far=ledger)
        ways += [repr(ledger.remaining()), *(curve.picture_text() for curve in curves)]
        with ledger.publication("all", purpose="texts"):
            FRAME.dprisk.count(eps=0.01, person="pid", rows=2)
        statement = ledger.statement("all")
        ways += [statement.text, statement.to_dict()["deployment"]["privacy_loss"]["privacy_parameters_details"]]
        return [" ".join(each.split()) for each in ways]

    @pytest.mark.parametrize("before", [{}, {"person": "pid", "unit": "row"}], ids=["records", "rows"])
    def test_answers_that_protected_one_record(self, book, before):
        ledger = spent(book(eps=None, success=0.75), 0.1, 0.1, **before)
        release = FRAME.dprisk.count(eps=0.1, ledger=ledger, person="pid", rows=2)
        for each in self.everywhere(ledger, release):
            assert "2 of the answers" in each and "protected one record" in each and "may be too low" in each
            assert "set or raised" not in each

    def test_a_limit_that_was_set_after_answers(self, book):
        ledger = spent(book(eps=None, queries=99), 0.1, person="pid", rows=2)
        ledger.amend(success=0.75)
        release = FRAME.dprisk.count(eps=0.1, ledger=ledger, person="pid", rows=2)
        ledger.amend(success=0.7)
        ledger.amend(success=0.75)  # as before: still since the first answer
        for each in self.everywhere(ledger, release):
            assert "The limit was set or raised after 1 of the answers" in each and "did not decide it" in each
            assert "protected one record" not in each.replace("It protected one record", "")
        ledger.amend(success=0.8)
        assert "raised after 3 of the answers" in repr(ledger.remaining())
        ledger.amend(success=None)
        assert "raised after" not in repr(ledger.remaining()) + pdrisk.explain(so_far=ledger)

    def test_people_from_the_start_and_records_alone(self, book):
        """Nothing is doubtful, but where nobody declared people no text is about a person."""
        ledger = spent(book(eps=None, success=0.75), 0.1)
        release = FRAME.dprisk.count(eps=0.1, ledger=ledger)
        of_records = [repr(ledger.remaining()), pdrisk.explain(so_far=ledger, audience="analyst")]
        assert all("whether one record is in these data" in " ".join(each.split()) for each in of_records)
        assert "All of this is about one record" in pdrisk.tradeoff(ledger).picture_text()
        assert "All of this" not in pdrisk.tradeoff(release, so_far=ledger).picture_text()
        of_rows = spent(book(dataset="rows", eps=None, success=0.75), 0.1, person="pid", unit="row")
        assert "whether one record is" in repr(of_rows.remaining())
        people = spent(book(dataset="people", eps=None, success=0.75), 0.1, person="pid", rows=2)
        said = repr(people.remaining()) + pdrisk.tradeoff(people).picture_text()
        assert "whether a person is in these data" in said and "protected" not in said and "one record" not in said
