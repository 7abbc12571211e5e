"""What texts say holds for the data, the noise and the reader they are about."""

import math
import re
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from paths import DOCS, ROOT
from pdrisk import DoubtfulReleaseWarning, NoisyReleaseWarning, ParameterError
from pdrisk._answer import pictures
from pdrisk._answer.words import LANGUAGES
from pdrisk._answer.words.counts import chances
from pdrisk.study.assess_report import report
from pdrisk.study.paper import Study, written

AUDIENCES = ("participant", "analyst", "curator", "publication")


def people(n: int = 3000) -> pd.DataFrame:
    return pd.DataFrame({"wage": np.random.default_rng(0).uniform(1000, 5000, n), "rare": np.arange(n) % 100 == 0})


def flat(text: str) -> str:
    return " ".join(text.split())


def quiet(call):
    """The answer, if nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


class TestHardestCase:
    """A coin's prior and one record are the hardest case, and texts say so."""

    @pytest.mark.parametrize("audience", AUDIENCES)
    def test_it_is_said(self, audience):
        answer = people().dprisk.agg({"wage": ["mean", "max"]}, eps=1, bounds=(0, 10_000), curator=True)
        for text in (people().dprisk.count(eps=1).explain(audience), pdrisk.explain(answer, audience)):
            assert "the hardest case we can think of" in flat(text)


class TestBaseRates:
    """``prior=`` starts from a base rate: rounded down before, and up after."""

    def test_the_printed_one(self):
        # posterior(1, 1/551) = e / (e + 550) = 0.004918; 1 / 0.004918 = 203.3
        text = people().dprisk.count(eps=1).explain(prior=1 / 551)
        assert "a chance of 1 in 551 that you took part" in text and "at most 1 in 203, however" in text
        assert "coin" not in text and "50 times" not in text

    def test_rounded_apart(self):
        # 1 / .0123 = 81.3, posterior(1, .0123) = .03275 = 1 / 30.5
        assert chances(LANGUAGES["en"], 0.0123, [1.0]) == ("1 in 82", ["at most 1 in 30"])
        assert chances(LANGUAGES["en"], 0.129, [1.0]) == ("12 of 100", ["at most 29 of 100"])  # .2870

    @given(
        st.one_of(st.floats(1e-9, 0.999), st.integers(2, 10**9).map(lambda n: 1 / n)),
        st.lists(st.floats(1e-6, 12), min_size=1, max_size=3),
    )
    def test_never_less_than_there_is(self, prior, losses):
        before, after = chances(LANGUAGES["en"], prior, losses)

        def said(text):
            first, second = (int(number) for number in re.findall(r"\d+", text.replace(",", "")))
            return Fraction(first, second)

        assert said(before) <= Fraction(prior) * (1 + Fraction(1, 10**8))
        for loss, text in zip(losses, after, strict=True):
            odds = Fraction(prior) / (1 - Fraction(prior)) * Fraction(math.exp(loss))
            exact = odds / (1 + odds)
            assert said(text) >= exact * (1 - Fraction(1, 10**12)) or text.startswith("more than ")
            if text.startswith("more than "):
                assert said(text) <= exact and said(text).denominator >= 100
            assert said(text) > said(before), "a release never adds nothing"
            assert said(text) < 1

    @pytest.mark.parametrize("audience", AUDIENCES)
    def test_every_audience_and_all_releases(self, audience):
        text = flat(people().dprisk.count(eps=1).explain(audience, 3, prior=0.3))
        # e^1 * .3/.7 -> .5381, e^3 * .3/.7 -> .8959
        assert "30 of 100" in text and "at most 54 of 100" in text and "at most 90 of 100" in text

    def test_tables(self):
        table = people().dprisk.count(eps=1, by="rare", keys=[False, True])
        assert "After all these numbers it is at most 1 in 203" in pdrisk.explain(table, prior=1 / 551)

    def test_of_a_value(self):
        release = people().dprisk.proportion("rare", eps=1, neighbours="replace-one")
        text = release.explain(prior=0.3)
        assert "that yours is one of two.\nTo begin with, they see a chance of 30 of 100 of the first." in text

    @pytest.mark.parametrize("prior", [0, 1, -1, 551, math.nan, "1/551"])
    def test_refused(self, prior):
        with pytest.raises(ParameterError, match="prior must be"):
            people().dprisk.count(eps=1).explain(prior=prior)


class TestLabels:
    """A publication says who declared what, what happens beyond the bounds, and what the interval covers."""

    def test_bounds_and_groups(self):
        table = people().dprisk.mean("wage", eps=1, bounds=(0, 10_000), by="rare", keys=[False, True])
        text = flat(pdrisk.explain(table, "publication"))
        assert "bounds 0 to 10000, declared by the publisher, and values beyond count as the bound" in text
        assert "groups declared by the publisher" in text and "without looking" not in text
        assert "interval where the answer of the clamped values without noise lies, 95 % sure; how much" in text
        counted = flat(pdrisk.explain(people().dprisk.count(eps=1, by="rare", keys=[False, True]), "publication"))
        assert "interval where the answer without noise lies, 95 % sure; sampling error comes on top" in counted

    @pytest.mark.parametrize(
        ("ask", "said"),
        [
            (lambda d: d.mean("wage", eps=1, bounds=(0, 10_000)), "0-10000"),
            (lambda d: d.max("wage", eps=1, bounds=(-5, 10_000.5)), "-5 to 10000.5"),
            (lambda d: d.agg({"wage": ["sum"]}, eps=1, bounds=(0, 9000)), "0-9000"),
            (lambda d: d.agg({"wage": ["sum", "count"]}, eps=1, bounds=(0, 9000)), "0-9000"),
            (lambda d: d.median("wage", eps=1, bounds=(0, 9000), by="rare", keys=[True]), "0-9000"),
            (
                lambda d: d.corr("wage", "age", eps=9, bounds={"wage": (0, 9000), "age": (0, 90)}),
                "wage 0-9000 and age 0-90",
            ),
            (
                lambda d: pdrisk.sql("SELECT AVG(wage) AS m FROM f", eps=1, bounds={"wage": (0, 9000)}, f=people()),
                "0-9000",
            ),
            (lambda d: d.count(eps=1), None),
            (lambda d: d.proportion("wage > 3000", eps=1), None),
            (lambda d: d.agg({"wage": ["count", "nunique"]}, eps=1), None),
            (lambda d: d.mean("wage", eps=9, bounds=(0, 9000), clip="private"), None),
        ],
    )
    def test_clamped_values(self, ask, said):
        """Every label of a bounded statistic says what its values were clamped to."""
        answer = ask(people().assign(age=30 + np.arange(3000) % 40).dprisk)
        texts = [flat(pdrisk.explain(answer, each)) for each in ("analyst", "publication")]
        if isinstance(answer, pdrisk.Release):
            texts += [flat(repr(answer)), flat(re.sub("<[^>]*>", " ", answer._repr_html_()))]
        for text in texts:
            assert (f"of values clamped to {said}" in text) if said else ("clamped" not in text)

    def test_rounding(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "b.db", dataset="d", eps=5, policy={"round_to": {"count": 5}})
        text = flat(people().dprisk.count(eps=1, ledger=ledger).explain("publication"))
        assert "then rounded to multiples of 5" in text
        assert "rounded" not in people().dprisk.count(eps=1).explain("publication")

    def test_clamped_records_are_the_curators(self):
        release = people().dprisk.mean("wage", eps=1, bounds=(0, 3000), curator=True)
        share = (people()["wage"] > 3000).mean()
        assert release.curator.clamped == share
        assert re.search(rf"moved to a bound {100 * share:.3g} % of the records", flat(release.explain("curator")))
        assert f"moved to a bound    {100 * share:.3g} % of the records" in repr(release)
        assert "moved to a bound" not in release.explain("publication") + release.explain("analyst")
        assert "moved to a bound" not in people().dprisk.count(eps=1, curator=True).explain("curator")


class TestWarnings:
    """An eps that hardly hides anybody, and bounds that clamp nearly everything, are told."""

    @pytest.mark.parametrize("ask", [
        lambda d, eps: d.count(eps=eps), lambda d, eps: d.agg({"wage": ["mean", "count"]}, eps=eps, bounds=(0, 6000)),
        lambda d, eps: pdrisk.sql("SELECT COUNT(*) FROM f", eps=eps, f=people()),
    ])  # fmt: skip
    def test_a_large_eps(self, ask):
        with pytest.warns(
            DoubtfulReleaseWarning, match=r"an eps of 10\.5 hardly hides anybody.*9,999 times out of 10,000"
        ):
            ask(people().dprisk, 10.5)
        quiet(lambda: ask(people().dprisk, 10))

    def test_before_it_is_paid(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "b.db", dataset="d", eps=200)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DoubtfulReleaseWarning):
                people().dprisk.count(eps=100, ledger=ledger)
        assert ledger.remaining().spent == 0

    @pytest.mark.parametrize("statistic", ["mean", "median"])
    def test_a_changed_column(self, statistic):
        declared = people().dprisk.declare(bounds={"wage": (0, 10_000)})
        quiet(lambda: getattr(declared.dprisk, statistic)("wage", eps=1))
        cents = declared.assign(wage=declared["wage"] * 100)
        # In one of 30 the noise leaves the mean too far from the end.
        with pytest.warns(
            DoubtfulReleaseWarning, match="at or near an end of its bounds.*If the column was changed after"
        ):
            *_, release = [getattr(cents.dprisk, statistic)("wage", eps=1) for _ in range(4)]
        assert release.curator.clamped == 1
        assert "100 % of the records" in flat(release.explain("curator"))

    @pytest.mark.parametrize(
        ("values", "bounds", "is_doubtful"),
        [
            (np.arange(3000) % 1440, (0, 24), True),  # hours that were made minutes: 98 % are clamped, 2 % spread
            (-(np.arange(3000.0) % 1440), (-24, 0), True),
            (np.where(np.arange(3000) % 15, 100.0, -100), (-99, 99), False),  # 1 of 15 at the other end: 7 % from it
            (np.where(np.arange(3000) % 50, 100.0, 0), (-99, 99), True),
            (np.where(np.arange(3000) % 50, -100.0, 0), (-99, 99), True),
            (np.random.default_rng(1).lognormal(7, 1, 3000), (0, 200_000), False),  # incomes: the mean is at 1 %
            (-np.random.default_rng(1).lognormal(7, 1, 3000), (-200_000, 0), False),  # debts
            (np.random.default_rng(1).lognormal(2, 1, 3000), (1, 675), False),  # distances
            (9 + np.arange(3000) % 2 / 5, (0, 10), False),  # contented people
        ],
    )
    def test_near_an_end(self, values, bounds, is_doubtful):
        """Where a few values lie within the bounds the mean does not reach the end; skewed data are no doubt."""
        frame = pd.DataFrame({"x": values})
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            frame.dprisk.mean("x", eps=5, bounds=bounds)
        assert [each.category for each in seen] == [DoubtfulReleaseWarning] * is_doubtful

    def test_a_dataset_forgets_them(self):
        changed = pdrisk.Dataset(people(), bounds={"wage": (0, 10_000)}).assign(wage="wage * 100")
        with pytest.raises(ParameterError, match=r"mean\(wage\) needs bounds"):
            changed.mean("wage", eps=1)

    def test_not_of_what_is_usual(self):
        quiet(lambda: people().dprisk.mean("rare", eps=1))
        quiet(lambda: people().assign(rare=False).dprisk.mean("rare", eps=1))
        quiet(lambda: people().dprisk.proportion("rare", eps=1))
        zeros = people().assign(wage=0.0)
        quiet(lambda: zeros.dprisk.median("wage", eps=1, bounds=(0, 9)))
        quiet(lambda: people().dprisk.max("wage", eps=1, bounds=(0, 5000), bounds_reached=True))

    def test_noise_that_covers_the_bounds_is_another_warning(self):
        with pytest.warns(NoisyReleaseWarning, match="leaves little") as seen:
            people(3).dprisk.mean("wage", eps=1, bounds=(0, 6000))
        assert not [each for each in seen if each.category is DoubtfulReleaseWarning]

    def test_paid_answers_are_given_all_the_same(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "b.db", dataset="d", eps=9)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert people().dprisk.mean("wage", eps=1, bounds=(0, 9), ledger=ledger).value > 8


class TestReports:
    """A page of answers whose bounds are the data's own does not say that they may be published."""

    def study(self, bounds):
        result = pdrisk.study.run(people(200), "wage", ["mean", "max"], repetitions=2, bounds=bounds, progress=False)
        return Study(result, "a survey", synthetic=False, units={})

    @pytest.mark.parametrize(("bounds", "own"), [(None, True), ((0, 9000), False)])
    def test_assess(self, bounds, own):
        page = report("a survey", pdrisk.study.exposure(people(200), "wage", bounds=bounds))
        self.check(page, own)

    def test_assess_names_the_mechanism_of_its_noise_and_counts_records(self):
        asked = {"bounds": (0, 9000), "by": "rare", "keys": [False, True]}
        found = pdrisk.study.exposure(people(200), "wage", **asked)
        page = flat(report("a survey", found).replace("&#x27;", "'"))
        assert "Noise and risks are those of the default of answers (mechanism='auto')" in page
        assert "The last column has the noise of the SOEP paper, mechanism='laplace', at the largest eps" in page
        paper = report("a survey", pdrisk.study.exposure(people(200), "wage", mechanism="laplace", **asked))
        assert "risks are those of mechanism='laplace'." in flat(paper.replace("&#x27;", "'"))
        assert "The last column" not in flat(paper)
        assert "200 records, each taken for one person." in page
        assert "A record is in one group at most" in page and "Everybody is in one group" not in page

    @pytest.mark.slow
    @pytest.mark.parametrize(("bounds", "own"), [(None, True), ((0, 9000), False)])
    def test_study(self, bounds, own, tmp_path):
        self.check(written(self.study(bounds), tmp_path / "study").read_text(encoding="utf-8"), own)

    def check(self, page, own):
        assert "may be published: it depends" not in page and "This much may be published" not in page
        assert ("an answer with them is two people" in page.replace("&#x27;", "'")) is own
        assert ("The same as signs. It depends on eps alone." in page) is not own


class TestPictures:
    """A picture never says "nothing"."""

    def test_texts(self):
        begin = list(LANGUAGES["en"]).index("font_lacks")  # the first of them
        said = list(LANGUAGES["en"].values())[begin:]
        assert len(said) > 25 and not [text for text in said if re.search(r"\bnothing\b", text, re.IGNORECASE)]

    @pytest.mark.parametrize("eps", [1e-12, 0.1, 1, 50])
    def test_drawn(self, eps):
        text = pictures.icons_text(eps) + pictures.risk_text(eps) + pictures.two_worlds_text(0.0, 1.0)
        assert "nothing" not in text and "tells" not in text


class TestPapers:
    """Readers learn which numbers a paper prints, and which follow from it."""

    def test_the_page_of_numbers(self):
        page = (DOCS / "reproducing.md").read_text(encoding="utf-8")
        assert "| given |" not in page
        assert page.count("| | printed | ours | |") >= 4 and page.count("| | derived | ours | |") == 4
        risks = page.split("## What follows from the SOEP case study")[1].split("## ")[0]
        assert "The paper prints none of the risks, nor any table of risks" in flat(risks)
        assert "| | derived |" in risks and "two_worlds of the mean, eq. 6" in risks

    def test_no_risk_table_of_the_paper(self):
        for name in ("README.md", "docs/study.md", "docs/numbers.md", "src/pdrisk/_cli/demo.py"):
            text = flat((ROOT / name).read_text(encoding="utf-8"))
            assert not re.search(r"risk table of the paper|[Tt]he paper's (risk )?table", text), name
