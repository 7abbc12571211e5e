"""What people are told of a release: the rules of docs/explaining.md, for every audience and every eps."""

import dataclasses
import math
import re
import string
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from pdrisk import ColumnTypeError, NotPublicError, ParameterError, Release
from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.answers.answer_line import AnswerLine
from pdrisk._answer.answers.curator import Curator
from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._answer.words import AUDIENCES, LANGUAGES, participant
from pdrisk._core.risks.risk import posterior
from pdrisk._core.statistics import Mean
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated

FRAME = pd.DataFrame({"x": [3.0, 1, 10, 17], "y": [1.0, 2, 3, np.nan], "g": ["a", "b", "a", "b"]})
BOUNDS = {"bounds": {"x": (0, 20), "y": (0, 5)}}
pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
EPS = st.floats(1e-5, 40)
FORBIDDEN = re.compile(
    r"\b(un)?safe|anonym|no risk|risk-free|\b1 in |\bone in|always"
    r"|(?<![\d,])(100|1,000|10,000)( times)?( out)? of \2\b",
    re.IGNORECASE,
)
OUT_OF = re.compile(r"\b(?:out )?of (100|1,000|10,000)\b")
AT_MOST = re.compile(r"at\s+most\s+([\d,]+)\s+(?:times\s+)?(?:out\s+)?of\s+([\d,]+)")
CURATORS = ["n", "local_sensitivity", "loss", "two_worlds", "many_worlds", "identifiability", "clamped"]
OVER = re.compile(r"more\s+than\s+([\d,]+)\s+(?:times\s+)?(?:out\s+)?of\s+([\d,]+)")


LINE = {field.name for field in dataclasses.fields(AnswerLine)}
CURATOR = {field.name for field in dataclasses.fields(Curator)}


def release(eps: float = 1.0, share: float = 0.4, **other: object) -> Release:
    """The sample {3, 1, 10, 17} of docs/reproducing.md, with another eps, or other fields of any part."""
    loss, value = eps * share, other.get("value", -212.5)
    half = 337 / eps * math.log(20)
    line = {
        "name": "mean(distance)", "column": "distance", "statistic": "mean", "mechanism": "laplace", "eps": eps,
        "bounds": (1.0, 675.0), "global_sensitivity": 337.0, "scale": 337 / eps, "noise95": half,
        "worst_case": float(posterior(eps)), "success": 1 - math.exp(-eps / 2) / 2, "value": value,
        "low": value - half, "high": value + half,
    }  # fmt: skip
    risks = (float(posterior(*at)) for at in ((loss,), (loss, 0.25), (eps / 9, 0.25)))
    curator = dict(zip(CURATORS, (4, 337 * share, loss, *risks, 0.0), strict=True))
    said = {"eps": eps + other.get("extra", 0), "where": "age > 40"}
    said |= {name: value for name, value in other.items() if name not in LINE | CURATOR}
    curator |= {name: value for name, value in other.items() if name in CURATOR}
    line |= {name: value for name, value in other.items() if name in LINE}
    noisy = NoisyAnswers(calibrated("laplace", Mean(), Universe(1, 675), Fraction(eps)), np.array([value]))
    answer = Answer((AnswerLine(**line),), **said)
    return Release(lambda: answer, noisy, "distance", lambda: Curator(**curator))


def risks(two_worlds: float, many_worlds: float, identifiability: float) -> dict[str, float]:
    return {"two_worlds": two_worlds, "many_worlds": many_worlds, "identifiability": identifiability}


def flat(text: str) -> str:
    return " ".join(text.split())


def whole(number: str) -> int:
    return int(number.replace(",", ""))


class TestParticipant:
    """The text of docs/explaining.md, and nothing of the data."""

    def test_the_whole_text(self) -> None:
        assert release().explain(so_far=1.5).splitlines() == [
            "Imagine the hardest case we can think of: someone knows everybody else's answers and must say whether you "
            "took part.",
            "Without this number they can only toss a coin: right 50 times out of 100.",
            "With this number they are right at most 74 times out of 100, however they go about it. "
            "That is at most 24 more.",
            "It holds if one record in the data is yours. With several, they may be right more often.",
            "This counts one release. All releases so far together: at most 82 of 100.",  # posterior(1.5) = .8176
            "It does not cover theft of the data itself, or conclusions about people like you that hold whether or not "
            "you take part.",
        ]

    def test_without_a_word_on_others(self) -> None:
        assert "This counts one release; every further one adds to it." in release().explain()

    def test_the_finer_denominator_is_everybodys(self) -> None:
        said = release(eps=1).explain(so_far=6)  # posterior(6) = .99753
        assert "right 500 times out of 1,000" in said
        assert "at most 732 times out of 1,000" in said
        assert "at most 232 more" in said
        assert "at most 998 of 1,000" in said

    def test_beyond_words(self) -> None:
        said = release(eps=20).explain()
        assert "more than 9,999 times out of 10,000" in said
        assert "at most" not in said

    def test_is_what_words_say_of_the_worst_case(self) -> None:
        assert release(eps=0.7).explain() == participant(float(posterior(0.7)))

    @given(EPS, st.floats(0, 1))
    def test_depends_on_eps_alone(self, eps: float, share: float) -> None:
        other = release(eps, share, value=5.0, n=99, statistic="max", name="max(income)", where=None)
        assert other.explain() == release(eps).explain()

    def test_a_number_that_was_withheld_counts(self) -> None:
        said = release(value=math.nan, least_group=20, extra=0.5).explain()
        assert "withheld" in said
        assert "at most 82 times out of 100" in said  # eps 1 and .5 to see whether there are 20


class TestRules:
    """One denominator in a text, always the pair, the prior said, rounded up, and words that are never used."""

    @pytest.mark.parametrize("audience", AUDIENCES)
    @given(eps=EPS, more=st.floats(0, 20), share=st.floats(0, 1))
    def test_hold_for_every_eps(self, audience: str, eps: float, more: float, share: float) -> None:
        said = flat(release(eps, share).explain(audience, so_far=eps + more))
        assert not FORBIDDEN.search(said)
        assert "toss a coin" in said
        (out_of,) = {whole(found) for found in OUT_OF.findall(said)}
        assert f"right {out_of // 2:,} times out of {out_of:,}" in said
        claims = [float(posterior(eps)), float(posterior(eps + more))]
        told = [whole(times) for times, _ in AT_MOST.findall(said)]
        over = [whole(times) for times, _ in OVER.findall(said)]
        claims += [float(posterior(eps * share))] if audience == "curator" else []
        assert len(told) + len(over) == len(claims)
        for claim in claims:
            fits = [times for times in told if claim - 1e-11 <= times / out_of < claim + 1 / out_of]
            assert fits or (claim > over[0] / out_of and out_of == 10_000)
            assert all(times < out_of for times in told)

    @pytest.mark.parametrize("audience", AUDIENCES)
    def test_only_the_curator_is_told_of_the_data(self, audience: str) -> None:
        one = release(local_sensitivity=100.25, n=1_234, loss=0.3, **risks(0.6181, 0.0123, 0.0456))
        other = release(local_sensitivity=3.5, n=7, loss=0.2, **risks(0.5, 0.9, 0.8))
        assert (one.explain(audience) == other.explain(audience)) is (audience != "curator")

    @pytest.mark.parametrize("audience", AUDIENCES)
    def test_no_line_is_longer_than_a_page(self, audience: str) -> None:
        text = release(where="age > 40 and " * 20 + "age > 1").explain(audience)
        assert max(map(len, text.splitlines())) <= 125


class TestAnalyst:
    """Value, interval, eps, and what is left."""

    def test_value_interval_and_eps(self) -> None:
        said = flat(release().explain("analyst"))
        assert "-212.5, with noise; 95 % interval -1222.06 to 797.062" in said  # 337 ln 20 = 1009.56
        assert "eps 1 left not known here" in said

    def test_what_is_left_of_a_ledger(self, tmp_path) -> None:
        ledger = pdrisk.Ledger(tmp_path / "book.db", dataset="d", eps=2)
        with ledger:
            FRAME.dprisk.count(eps=0.5)
            answer = FRAME.dprisk.sum("x", eps=1, bounds=(0, 20))
        said = flat(answer.explain("analyst", so_far=ledger))
        assert "left eps 0.5 of the budget" in said
        assert "all releases together: eps 1.5, right at most 82 times out of 100" in said

    def test_a_ledger_without_a_limit(self, tmp_path) -> None:
        ledger = pdrisk.Ledger(tmp_path / "book.db", dataset="d", queries=5)
        answer = FRAME.dprisk.count(eps=0.5, ledger=ledger)
        assert "no limit is set" in answer.explain("analyst", so_far=ledger)


class TestCurator:
    """Sensitivities, four risks with what they start from, the most exposed; marked."""

    def test_numbers_of_the_sample(self) -> None:
        # docs/reproducing.md: LS/GS .395994, two_worlds .597725, many_worlds .331232
        one = release(local_sensitivity=133.45, loss=0.395994, **risks(0.597725, 0.331232, 0.252978))
        public, curator = one.explain("curator").split("-- curator only")
        said = flat(curator)
        for found in (
            "global sensitivity 337:",
            "local sensitivity 133.45:",
            "at most 0.396 of that",
            "records used 4",
            "privacy loss 0.395994 of eps 1, for the most exposed person",
            "0.5 without this answer, at most 0.7311 with it",
            "0.5 without this answer, at most 0.5978 with it",
            "0.25 without this answer, at most 0.3313 with it",
            "0.25 without this answer, at most 0.253 with it",
            "at most 60 times out of 100 instead of 50",
        ):
            assert found in said
        for secret in ("133.45", "0.5978", "0.3313", "0.253", "records"):
            assert secret not in public.replace("everybody else's records", "")

    @pytest.mark.parametrize(
        ("n", "risk", "words"),
        [
            (0, (0.7, math.nan, math.nan), "none: no record was used"),
            (1, (0.6, 1.0, 1.0), "certain without this answer"),
        ],
    )
    def test_nobody_and_one(self, n: int, risk: tuple, words: str) -> None:
        assert release(n=n, **risks(*risk)).explain("curator").count(words) == 2

    def test_the_most_exposed_share_the_denominator(self) -> None:
        said = flat(release(eps=1, share=0.01).explain("curator"))  # posterior(.01) = .5025
        assert "at most 7,311 times out of 10,000" in said
        assert "at most 5,025 times out of 10,000 instead of 5,000" in said


class TestPublication:
    """A label: unit, neighbours, bounds, eps, composition, what is not covered."""

    def test_everything_that_belongs_to_it(self) -> None:
        said = flat(release().explain("publication", so_far=1.5))
        for found in (
            "unit one record",
            "neighbours two sets of data that differ in one record",
            "bounds 1 to 675, declared by the publisher",
            "; Laplace noise of the statistic's own sensitivity, scale 337; global sensitivity of the statistic 337; "
            "eps 1",
            "composition all releases together: eps 1.5, right at most 82 times out of 100",
            "not covered theft of the data itself",
            "records selected by age > 40",
        ):
            assert found in said

    def test_what_is_taken_on_trust(self) -> None:
        said = flat(release(where="a mask or function", where_trusted=True, bounds=None).explain("publication"))
        assert "that it decides row by row is the publisher's word" in said
        assert "bounds none needed" in said

    @pytest.mark.skipif(not hasattr(pd, "col"), reason="pandas 2 has no expressions")
    def test_a_constant_of_python(self) -> None:
        """It is not shown, and every text says why."""
        frame = pd.DataFrame({"region": ["north", "south"] * 50})
        for where, name in ((pd.col("region") == "north", "@value"), ("region == @here", "@here")):
            here = "north"  # noqa: F841 - named in the filter
            one = frame.dprisk.count(where=where, eps=1)
            for text in (repr(one), one.explain("publication"), one._repr_html_()):
                assert f"region == {name}" in text and "computed" in text and "north" not in text
        with pytest.raises(pdrisk.ParameterError, match="@value is a constant that Python computed, perhaps from"):
            frame.dprisk.count(where=pd.col("region") == 3, eps=1)

    def test_without_a_filter(self) -> None:
        assert "asked of all records" in flat(release(where=None).explain("publication"))

    def test_withheld(self) -> None:
        said = flat(release(value=math.nan, least_group=20, extra=0.5).explain("publication"))
        assert "answer withheld: too few people" in said
        assert "eps 1.5; 0.5 of it to see, with noise, whether there are 20 people" in said
        assert "nan" not in said


class TestMechanisms:
    """Each audience is told what the mechanism did, and not what another one would have done."""

    MANY = pd.concat([FRAME] * 999, ignore_index=True)
    MEAN, COUNT = MANY.dprisk.mean("x", eps=1, bounds=(0, 20)), MANY.dprisk.count(eps=1)

    def test_participants_are_told_the_same(self) -> None:
        laplace = self.MANY.dprisk.count(eps=1, mechanism="laplace")
        assert self.MEAN.explain() == self.COUNT.explain() == laplace.explain()

    @pytest.mark.parametrize("one", [MEAN, COUNT])
    def test_analysts(self, one: Release) -> None:
        low, high = (f"{end:.6g}" for end in (one.low, one.high))
        assert f"with noise; 95 % interval {low} to {high}" in flat(one.explain("analyst"))
        table = FRAME.dprisk.agg({"x": ["mean", "count"], "y": ["max"]}, eps=3, **BOUNDS)
        said = flat(pdrisk.explain(table, "analyst"))
        for name, clamped in {"mean": "of values clamped to 0-20, ", "count": ""}.items():
            value, low, high = (table[end]["x", name] for end in ("value", "low", "high"))
            half = max(high - value, value - low)
            assert f"{name}(x) {clamped}with noise: ±{half:.6g}, 95 % sure, for eps 1" in said
        assert re.search("max.y. of values clamped to [^ ]+, with noise: at most", said)
        assert "lie between it and the rank asked for, 95 % sure" in said
        table = FRAME.dprisk.agg({"y": ["max"]}, eps=1, mechanism="laplace", **BOUNDS)
        said = flat(pdrisk.explain(table, "analyst"))
        assert "with noise: ±14.9787, 95 % sure" in said  # 5 ln 20: to both sides alike

    def test_curators_of_a_mean_from_two_sums(self) -> None:
        """The local sensitivity is the statistic's; the loss does not follow from it, and is everybody's."""
        said = flat(self.MEAN.explain("curator"))
        assert "local sensitivity" in said and "privacy loss 1, all of eps, for every person alike" in said
        assert "nobody more than others: by this mechanism each person, in the data or not, loses all of eps" in said
        assert "at most 74 times out of 100 instead of 50" in said
        assert "individual_risk" not in said and "by the local sensitivity" not in said

    def test_curators_of_a_count(self) -> None:
        said = flat(self.COUNT.explain("curator"))
        assert "local sensitivity 1: the most in these data, at most 1 of that" in said
        assert "privacy loss 1 of eps 1, for the most exposed person" in said
        assert "someone whose record, in the data or not, moves the answer by the local sensitivity" in said

    def test_publications(self) -> None:
        mean, count = (flat(one.explain("publication")) for one in (self.MEAN, self.COUNT))
        sums = "discrete Laplace noise of scale (hi - lo)/eps on the sums of distances from both bounds"
        bounds = "declared by the publisher, and values beyond count as the bound"
        assert f"{bounds}; {sums}; global sensitivity of the statistic 10; eps 1" in mean
        assert "bounds none needed; discrete Laplace noise, scale 1; global sensitivity of the statistic 1" in count

    def test_the_unit(self) -> None:
        d = pdrisk.Dataset(FRAME.assign(pid=range(4)), person="pid", per_person="one")
        said = flat(d.count(eps=1).explain("publication"))
        assert "unit everything that one pid has in the data; one row of each counts" in said


class TestBoundsFromTheData:
    """Their ends are two people's values: others are told nothing, those in the house what it is."""

    @pytest.mark.parametrize("audience", ["participant", "publication"])
    def test_others(self, audience: str) -> None:
        with pytest.raises(NotPublicError, match="took its bounds from the data") as caught:
            release(bounds_from_data=True).explain(audience)
        assert "675" not in str(caught.value)

    @pytest.mark.parametrize("audience", ["analyst", "curator"])
    def test_in_the_house(self, audience: str) -> None:
        said = flat(release(bounds_from_data=True).explain(audience))
        assert "caution the bounds are the data's own: this is not differential privacy" in said

    def test_frames(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["max"]}, eps=50, bounds="column")
        with pytest.raises(NotPublicError, match=r"max\(x\) took its bounds"):
            pdrisk.explain(answer, "publication")


class TestSoFar:
    """All releases so far include this one."""

    @pytest.mark.parametrize("so_far", [0, -1, 0.999, math.inf, math.nan])
    def test_less_than_this_one(self, so_far: float) -> None:
        with pytest.raises(ParameterError, match=r"this one included.*Pass the sum, or the ledger that paid"):
            release().explain(so_far=so_far)

    @pytest.mark.parametrize("so_far", ["1", True, [2.0], object()])
    def test_of_another_kind(self, so_far: object) -> None:
        with pytest.raises(ColumnTypeError, match="so_far must be the eps of all releases so far"):
            release().explain(so_far=so_far)

    def test_a_ledger_that_did_not_pay(self, tmp_path) -> None:
        ledger = pdrisk.Ledger(tmp_path / "book.db", dataset="d", eps=2)
        with pytest.raises(ParameterError, match="it is 0, but this one alone cost 1"):
            release().explain(so_far=ledger)

    def test_sums_of_floats(self) -> None:
        nearly = math.nextafter(1.0, 0.0)  # what ten times 0.1 add up to one by one, as Python's sum did before 3.12
        assert "All releases so far together: at most 74 of 100." in release().explain(so_far=nearly)
        assert release().explain(so_far=np.float64(1.5)) == release().explain(so_far=1.5)

    def test_a_ledger_with_a_least_group_paid_for_looking(self, tmp_path) -> None:
        policy = {"least_group": {"size": 2, "eps": 0.5}}
        ledger = pdrisk.Ledger(tmp_path / "book.db", dataset="d", eps=9, policy=policy)
        with ledger:
            one = FRAME.dprisk.count(eps=1)
        assert "All releases so far together: at most 82 of 100." in one.explain(so_far=ledger)
        with ledger:
            table = FRAME.dprisk.agg({"x": ["sum", "max"], "y": ["count"]}, eps=3, **BOUNDS)
        spent = ledger.remaining().spent  # 1.5, 3, and .5 for each of two columns
        assert spent == 5.5
        said = flat(pdrisk.explain(table, "publication", so_far=ledger))
        assert "eps 4; 1 of it to see" in said
        assert "eps 5.5" in said


class TestAsked:
    """Wrong requests are one sentence that says what there is."""

    @pytest.mark.parametrize("audience", ["Participant", "everybody", None, 3, ["analyst"]])
    def test_audiences(self, audience: object) -> None:
        with pytest.raises(ParameterError, match="available: participant, analyst, curator, publication"):
            release().explain(audience)

    @pytest.mark.parametrize("language", ["EN", "xx", None])
    def test_languages(self, language: object) -> None:
        with pytest.raises(ParameterError, match=r"unknown language .*available: en"):
            release().explain(language=language)

    @pytest.mark.parametrize("answer", [None, 1.0, FRAME["x"], "mean(x)"])
    def test_what_is_no_answer(self, answer: object) -> None:
        with pytest.raises(ColumnTypeError, match="explain takes an answer of pdrisk"):
            pdrisk.explain(answer)

    def test_frames_that_are_no_answer(self) -> None:
        with pytest.raises(ParameterError, match="does not say what was asked"):
            pdrisk.explain(FRAME)
        with pytest.raises(NotPublicError, match="the curator's exact figures, not a release"):
            pdrisk.explain(FRAME.dprisk.assess("x", bounds=(0, 20)))

    def test_frames_that_lost_something(self) -> None:
        answer = FRAME.dprisk.agg({"x": ["sum", "count"]}, eps=9, bounds=(0, 20))
        curators = FRAME.dprisk.agg({"x": ["sum", "count"]}, eps=9, bounds=(0, 20), curator=True)
        for lost in (answer, curators.iloc[:0], curators.drop(columns="clamped"), pdrisk.public(curators)):
            with pytest.raises(ParameterError, match="does not hold the curator's numbers: ask with curator=True"):
                pdrisk.explain(lost, "curator")
        with pytest.raises(ParameterError, match="the index of this frame is not the one"):
            pdrisk.explain(curators.reset_index(drop=True), "curator")


class TestLanguages:
    """Every language has the same texts, with the same numbers in them."""

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_the_same_fields(self, language: str) -> None:
        def names(text: str) -> set[str]:
            return {name for _, name, _, _ in string.Formatter().parse(text) if name}

        own, english = LANGUAGES[language], LANGUAGES["en"]
        assert own.keys() == english.keys()
        assert {field: names(own[field]) for field in own} == {field: names(english[field]) for field in english}
        assert all(own.values())

    def test_another_language_is_a_dict(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loud = {field: text.upper() if "{" not in text else text for field, text in LANGUAGES["en"].items()}
        monkeypatch.setitem(LANGUAGES, "loud", loud)
        assert release().explain(language="loud").startswith("IMAGINE")

    def test_english_holds_no_forbidden_word(self) -> None:
        assert [name for name, text in LANGUAGES["en"].items() if FORBIDDEN.search(text)] == ["chance_in"]  # base rates
