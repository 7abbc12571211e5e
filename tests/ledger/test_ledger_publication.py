"""Publications of a ledger: which answers belong to them, and what a statement about one says and does not say."""

import asyncio
import html.parser
import json
import math
import pickle
import re
import threading
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import REGIONS, count, people, tables, version_one
from pdrisk._cli import main
from postgres_databases import needs_server, role, run
from test_golden_questions import BOUNDS, FLUENT, SQL, frame
from test_ledger_analysts import grants

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")

NAME = "Households 2026"
EDGE = math.log(3) - 1e-5  # an eps at which the best attacker is right just below 75 of 100 times

# Names of deployments-schema.yaml, opendp/deployments-registry-data, of July 2026, as far as a ledger may know them.
SCHEMA = {
    "basic": {"name", "description", "intended_use", "data_product_type"},
    "dp_variant": {"variant_name", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {"model_name"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"mechanisms", "preprocessing_and_hyperparameter_tuning"},
    "administrative": {"notes"},
}


def begun(ledger, name=NAME, purpose="the yearly report", **said):
    return ledger.publication(name, purpose=purpose, **said)


def members(ledger):
    """For each answer, paid or remembered, the publication that it is in."""
    table = ledger.history()
    table = table[table["event"].isin(["paid", "remembered"])]
    return [None if pd.isna(each) else int(each) for each in table["publication"]]


def said(statement):
    """The labels and texts of a statement; of labels that come several times, all texts."""
    found = {}
    for label, text in statement.rows:
        found.setdefault(label.strip(), []).append(text)
    return {label: texts[0] if len(texts) == 1 else texts for label, texts in found.items()}


def right(eps):
    """How often the best attacker is right at most, of 100: by its definition, rounded up."""
    return math.ceil(100 * math.exp(eps) / (1 + math.exp(eps)))


def in_sql(text, data):
    return data.sql(text, eps=1)


class Rows(html.parser.HTMLParser):
    """Texts of the cells of a page."""

    def __init__(self, page):
        super().__init__()
        self.cells = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag in ("th", "td"):
            self.cells.append("")
        assert tag in ("section", "h2", "table", "tr", "th", "td")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data.removesuffix("\n")


class TestBlocks:
    """What is asked inside belongs to the publication, whoever passes the ledger; what is asked outside does not."""

    def test_paid_and_remembered(self, store):
        ledger = pdrisk.Ledger(store, dataset="survey", eps=1)
        data = pdrisk.Dataset(people(), ledger=ledger)
        data.count(eps=0.1)
        with begun(ledger) as block:
            data.count(eps=0.1)
            data.count(eps=0.2)
            count(ledger, 0.1)
            people().dprisk.count(eps=0.1)
        data.count(eps=0.2)
        assert members(ledger) == [None, block.id, block.id, block.id, block.id, None]
        history = ledger.history()
        assert history["event"][block.id] == "publication" and history["query"][block.id].startswith(NAME)
        assert ledger.remaining().eps == 0.5
        ledger.verify()

    def test_in_sql_and_several_queries_of_one_call(self, book):
        ledger = book()
        with begun(ledger) as block:
            pdrisk.sql("SELECT COUNT(*) FROM t UNION ALL SELECT COUNT(age) FROM t", eps=1, t=people())
        assert set(members(ledger)) == {block.id}

    def test_the_innermost_counts_and_a_block_of_the_ledger_changes_nothing(self, book):
        ledger = book()
        with begun(ledger) as outer:
            count(None)
            with begun(ledger, "Persons 2026") as inner:
                count(None)
            with ledger:
                count(None)
        count(ledger)
        assert members(ledger) == [outer.id, inner.id, outer.id, None]

    def test_another_budget_is_not_part_of_it(self, book, path, tmp_path):
        ledger, other = book(), pdrisk.Ledger(path, dataset="other", eps=1)
        elsewhere = pdrisk.Ledger(tmp_path / "else.db", dataset="survey", eps=1)
        with begun(ledger):
            count(other)
            count(elsewhere)
            with pytest.raises(pdrisk.ParameterError, match="is open, and inside it"), begun(other):
                pass
        assert members(ledger) == [] and members(other) == members(elsewhere) == [None]
        assert "publication" not in other.history()["event"].tolist()

    def test_another_analyst_of_the_same_budget_is(self, book):
        ledger = book()
        with begun(ledger) as block:
            count(book(analyst="bob"))
        assert members(ledger) == [block.id]

    def test_what_a_reservation_pays(self, book):
        ledger = book(eps=2)
        with begun(ledger) as block, ledger.reserve([{"eps": 0.1}, {"eps": 0.2}], purpose="tables"):
            count(None, 0.1)
        assert members(ledger) == [block.id]
        reservation = ledger.reserve({"eps": 0.5}, purpose="more")
        with reservation.publication(NAME):
            count(None, 0.5)
        assert members(ledger) == [block.id] * 2 and reservation.left.queries == 0
        eps = said(ledger.statement(NAME))["eps"]
        assert eps == ["0.1", "0.5", "0.6, the sum over these answers"]  # not what was only set aside

    def test_threads_begin_outside_and_tasks_inside(self, book):
        ledger = book()

        async def task():
            count(ledger)

        async def tasks():
            await asyncio.gather(task(), task())

        with begun(ledger) as block:
            thread = threading.Thread(target=count, args=(ledger,))
            thread.start()
            thread.join()
            asyncio.run(tasks())
        assert members(ledger) == [None, block.id, block.id]

    def test_each_thread_goes_on_with_it_by_name(self, book):
        ledger = book()

        def asking():
            with ledger.publication(NAME):
                count(ledger)

        with begun(ledger) as block:
            threads = [threading.Thread(target=asking) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert members(ledger) == [block.id] * 3

    def test_blocks_of_generators_end_in_any_order(self, book):
        ledger = book()

        def asking(name):
            with begun(ledger, name) as block:
                yield block.id

        first, second = asking("first"), asking("second")
        _, inner = next(first), next(second)
        first.close()
        count(ledger)
        second.close()
        count(ledger)
        assert members(ledger) == [inner, None]

    def test_an_error_ends_the_block_and_the_block_can_be_entered_again(self, book):
        ledger, copy = book(), pickle.loads(pickle.dumps(book()))
        block = begun(ledger)
        with pytest.raises(ZeroDivisionError), block:
            raise ZeroDivisionError
        count(ledger)
        with block, block:
            count(copy)
        count(ledger)
        assert members(ledger) == [None, block.id, None]

    def test_nothing_is_written_without_a_block(self, book):
        ledger = book()
        before = ledger.verify()
        assert begun(ledger).id is None and ledger.verify() == before


class TestNames:
    """A name means one publication of a dataset, and goes on with it."""

    def test_known_names_go_on(self, book):
        ledger = book()
        with begun(ledger) as first:
            pass
        with ledger.publication("households  2026") as again:
            pass
        with begun(ledger) as same:
            pass
        assert first.id == again.id == same.id and ledger.history()["event"].tolist().count("publication") == 1

    def test_of_each_dataset(self, book, path):
        other = pdrisk.Ledger(path, dataset="other", eps=1)
        with begun(book()) as one:
            count(None)
        with begun(other) as two:
            count(None)
        assert one.id != two.id and members(book()) == [one.id] and members(other) == [two.id]

    def test_two_who_begin_it_at_once(self, store):
        pdrisk.Ledger(store, dataset="survey", eps=1)
        ids, ready = [], threading.Barrier(4)

        def begin():
            ledger = pdrisk.Ledger(store, dataset="survey")
            ready.wait()
            with begun(ledger) as block:
                ids.append(block.id)

        threads = [threading.Thread(target=begin) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ids) == 4 and len(set(ids)) == 1

    def test_begun_by_another_just_before(self, book, monkeypatch):
        ledger, other, ids = book(), book(), []
        real = ledger._writing

        def later():
            with begun(other) as block:
                ids.append(block.id)
            return real()

        monkeypatch.setattr(ledger, "_writing", later)
        with begun(ledger) as block:
            ids.append(block.id)
        assert len(ids) == 2 and len(set(ids)) == 1

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"name": "Housholds 2026"}, "say what it is for, .* Did you mean 'Households 2026'?"),
            ({"name": NAME, "purpose": "another"}, "was begun with purpose='the yearly report': leave purpose= out"),
            ({"name": NAME, "supersedes": "Households 2025"}, "begun without supersedes=: leave supersedes= out"),
            ({"name": "Households 2027", "supersedes": "Households 2024", "purpose": "x"}, "no publication .*2024'"),
            ({"name": "Households 2025", "supersedes": "Households 2025"}, "begun without supersedes="),
        ],
    )
    @pytest.mark.whole
    def test_refused(self, book, given, message):
        ledger = book()
        for name in ("Households 2025", NAME):
            with begun(ledger, name):
                count(None)
        before = ledger.verify()
        with pytest.raises(pdrisk.ParameterError, match=message), ledger.publication(**given):
            pass
        count(ledger)
        assert ledger.verify()[0] == before[0] + 1 and members(ledger)[-1] is None

    @pytest.mark.parametrize("name", ["", "  ", "two\nlines", 3, None, b"x"])
    def test_no_names(self, book, name):
        ledger = book()
        for call in (ledger.statement, begun(ledger).__class__.__init__.__get__(begun(ledger))):
            with pytest.raises(pdrisk.ColumnTypeError, match="one line"):
                call(name) if call == ledger.statement else call(ledger, name, None, None)
        with pytest.raises(pdrisk.ColumnTypeError, match="purpose must be a text in one line"):
            ledger.publication(NAME, purpose="\n" if name is None else name)


class TestWithdrawn:
    """Withdrawn is recorded and nothing else: no eps comes back, and what was told is told."""

    def test_recorded(self, store):
        ledger = pdrisk.Ledger(store, dataset="survey", eps=1)
        data = pdrisk.Dataset(people(), ledger=ledger)
        with begun(ledger) as block:
            first = data.count(eps=0.1)
        before = ledger.remaining()
        ledger.withdraw(NAME, reason="a region was counted twice")
        assert ledger.remaining() == before
        assert data.count(eps=0.1).value == first.value and ledger.remaining() == before
        last = ledger.history().iloc[-2]
        assert (last["event"], last["of"], last["reason"]) == ("withdrawn", block.id, "a region was counted twice")
        assert last["query"].startswith(NAME)
        ledger.verify()

    def test_ends_it(self, book):
        ledger = book()
        with begun(ledger):
            count(None)
        ledger.withdraw(NAME, reason="wrong bounds")
        refused = pytest.raises(
            pdrisk.ParameterError, match=f"was withdrawn on .*: begin another .*supersedes='{NAME}'"
        )
        with refused, begun(ledger):
            pass
        with pytest.raises(pdrisk.ParameterError, match="was withdrawn before, on"):
            ledger.withdraw(NAME, reason="again")
        with begun(ledger, "Households 2026, corrected", supersedes=NAME):
            count(None)
        assert "a region" not in ledger.statement(NAME).text
        corrections = said(ledger.statement(NAME))["corrections"]
        assert "Households 2026, corrected stands in its place since" in corrections and "wrong bounds" in corrections
        assert said(ledger.statement("Households 2026, corrected"))["corrections"] == f"stands in the place of {NAME}"

    def test_in_the_middle_of_its_block_nothing_more_is_paid(self, book):
        ledger = book(eps=1)
        with begun(ledger):
            count(None, 0.1)
            ledger.withdraw(NAME, reason="wrong bounds")
            with pytest.raises(pdrisk.ParameterError, match="was withdrawn on"):
                count(None, 0.1)
        assert ledger.remaining().spent == 0.1

    def test_by_who_began_it_or_the_owner(self, path):
        """Nor does anybody else go on with it."""
        owner, ann, bob = (
            pdrisk.Ledger(path, dataset="survey", eps=9, analyst=each) for each in ("owner", "ann", "bob")
        )
        with begun(ann):
            count(None)
        before = bob.verify()
        whose = "publication 'Households 2026' was begun by 'ann': only 'ann' or the owner of the dataset "
        with pytest.raises(pdrisk.PolicyError, match=f"{whose}withdraws it"):
            bob.withdraw("households 2026", reason="not mine")
        with pytest.raises(pdrisk.PolicyError, match=f"{whose}goes on with it"), bob.publication(NAME):
            pass
        assert bob.verify() == before and bob.statement(NAME).text == ann.statement(NAME).text
        with owner.publication(NAME):
            count(None)
        with pdrisk.Ledger(path, dataset="survey", analyst="ANN").publication(NAME):
            count(None)
        owner.withdraw(NAME, reason="wrong bounds")
        with pytest.raises(pdrisk.PolicyError, match="was begun by 'ann'"):
            bob.withdraw(NAME, reason="again")
        assert len(members(ann)) == 3

    @needs_server
    def test_by_roles_of_a_server(self, url):
        owner = pdrisk.Ledger(url, dataset="survey", eps=9)
        with role(url) as (first, name), role(url) as (second, other):
            run(url, *(re.sub(r"\banalysts\b", each, grants()) for each in (name, other)))
            ann, bob = (pdrisk.Ledger(each, dataset="survey") for each in (first, second))
            with begun(ann):
                count(None)
            with pytest.raises(pdrisk.PolicyError, match=f"was begun by '{name}'"):
                bob.withdraw(NAME, reason="not mine")
            with pytest.raises(pdrisk.PolicyError, match="goes on with it"), bob.publication(NAME):
                pass
            ann.withdraw(NAME, reason="wrong bounds")
            with begun(bob, "of bob"):
                count(None)
            owner.withdraw("of bob", reason="wrong, too")
            assert owner.verify()
            for each in (ann, bob):
                each.close()

    def test_unknown(self, book):
        with begun(book()):
            pass
        with pytest.raises(
            pdrisk.ParameterError, match="has no publication 'Households 2025'; it has 'Households 2026'"
        ):
            book().withdraw("Households 2025", reason="x")
        with pytest.raises(pdrisk.ColumnTypeError, match="reason must be a text"):
            book().withdraw(NAME, reason="")


class TestConsent:
    """Somebody withdraws consent, as docs/ledger.md says it: new data are asked anew, and what was told stays told."""

    @pytest.mark.parametrize("versions", [(None, None), ("2026", "2026, without one")])
    def test_new_data_are_asked_anew(self, book, versions):
        ledger, frame = book(), people()
        old, new = (
            pdrisk.Dataset(data, ledger=ledger, version=version)
            for data, version in zip((frame, frame.iloc[1:]), versions, strict=True)
        )
        told = old.count(eps=0.1)
        new.count(eps=0.1)
        assert ledger.remaining().spent == 0.2
        assert old.count(eps=0.1).value == told.value and ledger.remaining().spent == 0.2


class TestEps:
    """Each payment counts once, when and wherever it was made; those of others are told apart."""

    def test_of_each_and_together(self, book):
        ledger = book(eps=10)
        data = pdrisk.Dataset(people(), ledger=ledger)
        data.count(eps=0.25)
        data.count(eps=0.5)
        with begun(ledger):
            for _ in range(3):
                data.count(eps=0.25)  # paid before, and once
            data.count(eps=0.1, fresh=True)
            data.count(eps=0.1, fresh=True)  # two payments
            data.mean("age", eps=Fraction(1, 3), bounds=(0, 99))
        parts = said(ledger.statement(NAME))
        assert parts["eps"] == ["0.25", "0.1", "0.1", "0.333334", parts["eps"][-1]]
        assert parts["eps"][-1] == (
            "0.783334, the sum over these answers; 1.28334 over all answers about these people so far"
        )
        registered = ledger.statement(NAME).to_dict()["deployment"]["privacy_loss"]["privacy_parameters"]
        exact = Fraction("0.45") + Fraction(1, 3)
        assert exact <= Fraction(repr(registered["epsilon"])) < exact + Fraction(1, 10**15)
        assert (registered, set(registered)) == ({"epsilon": registered["epsilon"]}, {"epsilon"})

    def test_what_decides_on_groups_and_people(self, book):
        ledger = book(delta=1e-3, policy={"least_group": {"size": 20, "eps": 0.1}, "round_to": {"count": 5}})
        with begun(ledger):
            people().dprisk.agg({"age": ["mean", "count", "max"]}, eps=1, bounds=(0, 99))
            people().dprisk.count(eps=1, by="region", keys="private", delta=1e-4)
        parts = said(ledger.statement(NAME))
        looked = "0.1 to see, with noise, whether there are 20: answers about fewer are withheld"
        assert parts["eps"][0] == f"mean(age), count(age): 0.5; max(age): 0.5; {looked}; 1.1 in all"
        assert parts["eps"][1] == f"0.5; 0.5 and delta 0.0001 to choose the groups that are shown; {looked}; 1.1 in all"
        assert parts["eps"][2].startswith("2.2, the sum") and parts["delta"].startswith("0.0001, the sum")
        assert "count(age) rounded to multiples of 5" in parts["noise"][0]
        registered = ledger.statement(NAME).to_dict()["deployment"]
        assert registered["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.2, "delta": 1e-4}
        assert registered["dp_variant"] == {"variant_name": "Approximate DP"}
        assert "multiples of 5" in registered["accounting"]["post_processing"]

    @pytest.mark.parametrize("eps", [(0.5,), (0.5, 1), (0.2, 0.2, 0.3)])
    def test_risk_without_a_limit_of_success(self, book, eps):
        """True of every outcome: the posterior of the sums."""
        ledger = book()
        count(ledger, 1)
        with begun(ledger):
            for each in eps:
                count(None, each)
        text = said(ledger.statement(NAME))["risk"]
        assert f"With these answers alone, at most {right(sum(eps))} times out of 100, if no other" in text
        assert f"all answers about these people so far, at most {right(1 + sum(eps))} times out of 100." in text
        assert "later ones included" not in text

    def test_one_figure_if_there_are_no_others(self, book):
        ledger = book()
        with begun(ledger):
            count(None, 1)
        text = said(ledger.statement(NAME))["risk"]
        assert "alone" not in text and f"at most {right(1)} times out of 100" in text

    def test_delta_counts_as_far_as_it_may_be_spent(self, book):
        ledger = book(delta=1e-3)
        with begun(ledger):
            people().dprisk.count(eps=EDGE, by="region", keys="private", delta=1e-6)
        text = said(ledger.statement(NAME))["risk"]
        assert right(EDGE) == 75 and "at most 76 times out of 100" in text and "counts delta 0.001" in text

    def test_near_certainty(self, book):
        ledger = book()
        with begun(ledger):
            count(None, 50)
        assert "more than 9,999 times out of 10,000" in said(ledger.statement(NAME))["risk"]


class TestSuccess:
    """With a limit of success the filter's promise, which holds for later answers, too."""

    def risk(self, ledger):
        return said(ledger.statement(NAME))["risk"]

    def test_the_promise(self, path):
        ledger = pdrisk.Ledger(path, dataset="survey", success=0.75)
        with begun(ledger):
            for _ in range(12):
                count(None, 0.2)
        text = self.risk(ledger)
        assert "later ones included and however they are combined, at most 75 times out of 100: the ledger" in text
        assert f"never surer than {right(2.4)} of 100" in text  # 92, which success does not limit
        assert "Gaussian" in ledger.statement(NAME).to_dict()["deployment"]["accounting"]["composition"]

    def test_a_limit_of_eps_promises_as_well(self, path):
        ledger = pdrisk.Ledger(path, dataset="survey", eps=1, success=0.9)
        with begun(ledger):
            count(None, 0.5)
        text = self.risk(ledger)
        assert f"so far, at most {right(0.5)} times" in text and f"at most {right(1)} times out of 100: the" in text
        assert "surer" not in text  # nobody can be: the answers so far allow less than the limit

    def test_delta_that_later_answers_may_spend_is_in_the_promise(self, path):
        ledger = pdrisk.Ledger(path, dataset="survey", success=0.75, delta=1e-3)
        with begun(ledger):
            count(None, 1)
        text = self.risk(ledger)
        assert "at most 76 times out of 100: the" in text and "counts delta 0.001" in text
        assert f"so far, at most {right(1)} times" in text

    def test_these_alone_only_if_that_says_more(self, path):
        ledger = pdrisk.Ledger(path, dataset="survey", success=0.75)
        count(ledger, 0.1)
        with begun(ledger):
            count(None, 0.5)
        assert f"alone, at most {right(0.5)} times out of 100" in self.risk(ledger)
        with begun(ledger):
            for _ in range(8):
                count(None, 0.2)
        assert "alone" not in self.risk(ledger)

    def test_the_largest_limit_counts(self, path):
        """A raised limit counts as if granted from the start, and stays when it is lowered."""
        ledger = pdrisk.Ledger(path, dataset="survey", success=0.6)
        with begun(ledger):
            count(None, 0.4)
        assert "at most 60 times out of 100: the" in self.risk(ledger)
        ledger.amend(success=0.9)
        ledger.amend(success=0.7)
        assert "at most 90 times out of 100: the" in self.risk(ledger)

    def test_no_promise_without_a_limit_or_beyond_it(self, path):
        ledger = pdrisk.Ledger(path, dataset="survey", success=0.6, eps=10)
        with begun(ledger):
            count(None, 0.4)
        ledger.amend(success=None)
        assert "later ones" not in self.risk(ledger)
        count(ledger, 3)
        ledger.amend(success=0.7)
        assert "later ones" not in self.risk(ledger) and f"at most {right(3.4)} times" in self.risk(ledger)

    def test_with_delta(self, path):
        ledger = pdrisk.Ledger(path, dataset="survey", success=0.75, delta=1e-3)
        with begun(ledger):
            people().dprisk.count(eps=0.2, by="region", keys="private", delta=1e-6)
        text = self.risk(ledger)
        assert "at most 76 times out of 100" in text and "surer" not in text  # .75 + .001 of .25, rounded up
        assert "counts delta 0.001" in text


class TestWords:
    """What is asked, of whom, and how it is answered, as it was recorded."""

    def test_filters_bounds_codes_and_derived_columns(self, book):
        limit = 41
        data = pdrisk.Dataset(people(), ledger=book(), missing={"hours": [-1, -2]}).assign(decade="age // 10")
        with begun(data.ledger):
            options = {"mechanism": "two_stage", "n_at_least": 30, "where": "decade > @limit and sex == 1"}
            data.mean("hours", eps=1, bounds=(0, 18.25), **options)
        parts = said(data.ledger.statement(NAME))
        assert limit == 41  # it is read by its name, which alone is shown
        assert parts["answer 1"] == "mean(hours)"
        assert parts["records"] == (
            "selected by decade > @limit and sex == 1; that @limit was not computed from the data is the publisher's "
            "word, so its value is not shown; decade is age // 10"
        )
        assert parts["values"] == (
            "hours from 0 to 18.25 by the publisher's word, and values beyond count as the bound; at least 30 records "
            "by the publisher's word; -1, -2 in hours count as missing"
        )
        assert parts["noise"].startswith("discrete Laplace noise") and "41" not in str(parts)

    def test_masks_and_functions(self, book):
        ledger = book()
        with begun(ledger):
            people().dprisk.count(eps=1, where=lambda frame: frame["age"] > 41)
        assert said(ledger.statement(NAME))["records"] == (
            "selected by a mask or function; that it decides row by row is the publisher's word"
        )

    def test_people_by_their_label(self, book):
        frame = pd.concat([people(), people()])
        data = pdrisk.Dataset(frame, person="pid", unit_label="household", ledger=book())
        with begun(data.ledger):
            data.mean("hours", eps=1, bounds=(0, 18), per_person="mean")
            data.count(eps=1, by="region", keys=REGIONS, rows=2, groups=1)
            data.count(eps=1, by="region", keys=REGIONS, rows=2)
        statement = data.ledger.statement(NAME)
        parts = said(statement)
        assert parts["unit"] == "everything that one household has in the data"
        assert parts["neighbours"] == "two sets of data that differ in all rows of one household, there or not"
        assert parts["people"][0] == "the rows of each household become one number first, their mean"
        assert parts["people"][1] == (
            "at most 2 rows of each household count in each group, chosen by their own content and a secret; each "
            "household counts in one group"
        )
        assert "in all groups together" in parts["people"][2]
        assert "whether one household is in the data" in parts["risk"] and "pid" not in statement.text
        assert statement.to_dict()["deployment"]["privacy_loss"]["privacy_unit"] == "household"

    def test_one_record_or_one_row_is_said(self, book, tmp_path):
        with begun(book()):
            count(None)
        assert "assuming one record per person; a person with k records" in said(book().statement(NAME))["unit"]
        ledger = pdrisk.Ledger(tmp_path / "rows.db", dataset="survey", eps=1)
        with begun(ledger):
            people().dprisk.count(eps=1, person="pid", unit="row")
        assert "row (a pid may have several); a person with k rows" in said(ledger.statement(NAME))["unit"]

    def test_groups(self, book):
        many = {"region": [f"r{at}" for at in range(150)]}
        ledger = book(policy={"keys_from_data": True, "bounds_from_data": True})
        with begun(ledger):
            people().dprisk.count(eps=1, by=["region", "sex"], keys={"region": REGIONS, "sex": [0, 1]})
            people().dprisk.count(eps=1, by="region", keys=many)
            people().dprisk.mean("age", eps=1, by="region", keys="observed", bounds=(0, 99))
        people().dprisk.mean("age", eps=1, bounds="column", ledger=ledger)
        parts = said(ledger.statement(NAME))
        assert parts["groups"][0].startswith("6 by region, sex, declared by the publisher")
        assert parts["groups"][1].startswith("150 by region")
        assert "occur in the data; that they are public is the publisher's word" in parts["groups"][2]
        assert parts["not covered"].endswith("; which region occur in the data")
        assert parts["caution"].startswith("2 of the answers about these people took bounds or groups from the data")
        registered = ledger.statement(NAME).to_dict()["deployment"]["dp_variant"]
        assert registered == {"variant_name": "Pure DP", "unprotected_quantities": "which region occur in the data"}

    def test_bounds_of_the_data_have_no_statement(self, book):
        ledger = book(policy={"bounds_from_data": True})
        with begun(ledger):
            count(None)
            people().dprisk.mean("age", eps=1, bounds="column")
        with pytest.raises(pdrisk.NotPublicError, match=r"mean\(age\) took its bounds from the data"):
            ledger.statement(NAME)

    def test_each_look_at_the_number_of_people_is_counted(self, book):
        ledger = book(policy={"least_group": {"size": 2, "eps": 0.1}})
        with begun(ledger):
            people().dprisk.agg({"age": "mean", "hours": "mean"}, eps=1, bounds=(0, 99))
            people().dprisk.suggest_bounds("hours", eps=1)  # which is about no group, so nobody is counted
        parts = said(ledger.statement(NAME))["eps"]
        assert "0.2 to see, with noise, whether there are 2" in parts[0] and parts[1] == "1"

    @pytest.mark.parametrize("kind", ["methods", "SQL"])
    def test_every_question_that_ledgers_know(self, book, kind):
        """Nothing is left of a format, and every eps is one of the answer's."""
        data = pdrisk.Dataset(frame(), bounds=BOUNDS, ledger=book())
        asks = list(FLUENT.values()) if kind == "methods" else [partial(in_sql, text) for text in SQL.values()]
        with begun(data.ledger):
            for ask in asks:
                ask(data)
        statement = data.ledger.statement(NAME)
        paid = data.ledger.history().query("event == 'paid'")["eps"].sum()
        assert said(statement)["eps"][-1].startswith(f"{paid:g}, the sum over these answers")
        assert not re.search(r"None|nan|[{}]|Fraction|True|False", statement.text)
        assert len(said(statement)["records"]) == len(asks)

    def test_histograms_and_two_columns(self, book):
        ledger = book()
        with begun(ledger):
            people().dprisk.hist("age", eps=1, bins=[0, 20, 40, 60])
            people().dprisk.corr("age", "hours", eps=1, bounds={"age": (0, 99), "hours": (0, 24)})
            people().dprisk.proportion("age > 40", eps=1)
        values = said(ledger.statement(NAME))["values"]
        assert len(values) == 2  # a condition is 0 or 1, and nothing is clamped
        assert values[0].startswith("3 bins from 0 to 60 by the publisher's word; values beyond ")
        assert "age from 0 to 99" in values[1] and "hours from 0 to 24" in values[1]

    def test_every_mechanism_has_its_noise(self, book):
        asks = [{}, {"mechanism": "laplace"}, {"mechanism": "bernstein"}, {"clip": "private"}]
        ledger = book()
        with begun(ledger):
            for options in asks:
                people().dprisk.mean("age", eps=9, bounds=(0, 99), **options)
            people().dprisk.median("age", eps=9, bounds=(0, 99), interval=True)
        noise = said(ledger.statement(NAME))["noise"]
        assert len(set(noise)) == 5 and noise[1] == "Laplace noise of the statistic's own sensitivity"

    def test_strange_letters_command_nothing(self, book):
        ledger = book()
        frame = people().rename(columns={"age": "\x1b[31m<b>age</b>"})
        with begun(ledger, "<i>Q&A</i>", purpose="=1+1 & <script>"):
            frame.dprisk.mean("\x1b[31m<b>age</b>", eps=1, bounds=(0, 9))
        statement = ledger.statement("<i>Q&A</i>")
        assert "\x1b" not in statement.text + statement.html
        cells = Rows(statement.html).cells
        assert list(zip(cells[::2], cells[1::2], strict=True)) == list(statement.rows)


class TestForms:
    """Text, HTML and the registry's fields say the same."""

    @pytest.fixture
    def statement(self, book):
        ledger = book()
        with begun(ledger, "Households 2025"):
            count(None)
        with begun(ledger, supersedes="Households 2025"):
            people().dprisk.mean("age", eps=1, bounds=(0, 99), by="region", keys=REGIONS)
        return ledger.statement(NAME)

    def test_text(self, statement):
        assert str(statement) == repr(statement) == statement.text
        words = " ".join(statement.text.split())
        assert statement.text.startswith(NAME) and all(text in words for _, text in statement.rows)
        assert max(map(len, statement.text.splitlines())) <= 110

    def test_html(self, statement):
        cells = Rows(statement.html).cells
        assert list(zip(cells[::2], cells[1::2], strict=True)) == list(statement.rows)
        assert statement._repr_html_() == statement.html

    def test_the_registrys_fields(self, statement):
        found = statement.to_dict()
        assert list(found) == ["deployment"]
        for part, fields in found["deployment"].items():
            assert set(fields) <= SCHEMA[part] and all(value or value == 0 for value in fields.values())
        basic = found["deployment"]["basic"]
        assert (basic["name"], basic["intended_use"]) == (NAME, "the yearly report")
        assert found["deployment"]["deployment_model"] == {"model_name": "Central"}
        assert found["deployment"]["dp_variant"] == {"variant_name": "Pure DP"}
        assert found["deployment"]["administrative"] == {"notes": "stands in the place of Households 2025"}
        assert json.loads(json.dumps(found)) == found

    def test_a_dict_of_its_own(self, statement):
        statement.to_dict()["deployment"]["basic"]["name"] = "another"
        assert statement.to_dict()["deployment"]["basic"]["name"] == NAME


class TestNothingOfTheData:
    """Two sets of data that differ in one person, and everything else, have the same statement."""

    def ask(self, frame, path):
        policy = {"least_group": {"size": 5, "eps": 100}, "curator_facts": True, "curators": ["ann"]}
        ledger = pdrisk.Ledger(path, dataset="survey", analyst="ann", eps=10**6, delta=1e-3, policy=policy)
        # What is declared makes text of the column in pandas 2, too.
        data = pdrisk.Dataset(frame, person="pid", per_person="one", ledger=ledger, keys={"region": REGIONS})
        with begun(ledger):
            data.mean("hours", eps=100, bounds=(0, 5))
            data.count(eps=100, by="region", keys=[*REGIONS, "nowhere"])
            data.count(eps=100, by="region", keys="private", delta=1e-4)
            data.median("age", eps=100, bounds=(0, 99), where="age > 21")
            try:
                data.count(eps=1, where=lambda frame: (frame["age"] > 3) & bool(1 // int((frame["age"] != 99).all())))
            except pdrisk.QueryFailedError:
                pass
        return ledger

    def test_the_same_statement(self, tmp_path):
        frame = people()
        other = frame.head(7).assign(hours=np.arange(7.0) * 9, region="east", age=[99, 1, 2, 3, 4, 5, 6])
        other = pd.concat([other, other.tail(1).assign(hours=np.nan)])
        one, two = (self.ask(each, tmp_path / f"{at}.db") for at, each in enumerate((frame, other)))
        assert "failed" in two.history()["event"].tolist() and "failed" not in one.history()["event"].tolist()
        assert one.statement(NAME) == two.statement(NAME)
        assert one.statement(NAME).html == two.statement(NAME).html
        assert one.statement(NAME).to_dict() == two.statement(NAME).to_dict()


class TestErrors:
    """Clear words for what there is no statement about."""

    def test_unknown(self, book, path):
        ledger = book()
        with pytest.raises(pdrisk.ParameterError, match=f"'survey' has no publication '{NAME}'; it has none"):
            ledger.statement(NAME)
        with begun(ledger, "Households 2025"):
            count(None)
        with pytest.raises(pdrisk.ParameterError, match=r"it has 'Households 2025'\. Did you mean 'Households 2025'\?"):
            ledger.statement(NAME)

    def test_of_another_dataset(self, book, path):
        other = pdrisk.Ledger(path, dataset="other", eps=1)
        with begun(book()):
            count(None)
        with pytest.raises(
            pdrisk.ParameterError, match="Dataset 'survey' has one: open the ledger with dataset='survey'"
        ):
            other.statement(NAME)

    def test_empty(self, book):
        with begun(book()), pytest.raises(pdrisk.BudgetExceededError):
            count(None, 10**10)
        with pytest.raises(pdrisk.ParameterError, match="holds no answer yet: ask inside `with ledger"):
            book().statement(NAME)

    @pytest.mark.parametrize("body", ['{"named": 1, "purpose": ""}', "{}", "no"])
    def test_damaged(self, book, path, body):
        ledger = book()
        with begun(ledger):
            count(None)
        tables(path, "DROP TRIGGER records_stay")
        tables(path, "UPDATE records SET body = ? WHERE event = 'publication'", body)
        with pytest.raises(pdrisk.LedgerError, match="is damaged"):
            ledger.statement(NAME)


class TestOldLedgers:
    """A ledger of the first version goes on; a statement says what its older answers assumed."""

    def test_earlier_answers(self, book, path):
        ledger = book()
        count(ledger, 0.5)
        count(ledger, 0.25)
        ledger.close()
        version_one(path)
        data = pdrisk.Dataset(people(), person="pid", unit_label="household", per_person="one", ledger=book())
        with begun(data.ledger):
            data.count(eps=1)
        parts = said(data.ledger.statement(NAME))
        assert parts["caution"].startswith("2 of the answers about these people protected one record: of a ")
        assert parts["eps"][-1].endswith("1.75 over all answers about these people so far")


class TestCommand:
    """``pdrisk ledger statement``."""

    def test_prints_it(self, book, path, capsys):
        ledger = book()
        with begun(ledger):
            count(None)
        statement = ledger.statement(NAME)
        ways = {"text": statement.text, "html": statement.html, "json": json.dumps(statement.to_dict(), indent=1)}
        for name, text in ways.items():
            assert main(["ledger", "statement", str(path), NAME, "--format", name]) == 0
            assert capsys.readouterr().out == text + "\n"

    @pytest.mark.parametrize("words", [["statement"], ["show", NAME]])
    def test_needs_a_name_and_nothing_else_does(self, book, path, capsys, words):
        book()
        assert main(["ledger", words[0], str(path), *words[1:]]) == 2
        assert "takes the name of a publication after the file" in capsys.readouterr().err

    def test_unknown(self, book, path, capsys):
        book()
        assert main(["ledger", "statement", str(path), NAME]) == 2
        assert "has no publication 'Households 2026'" in capsys.readouterr().err
