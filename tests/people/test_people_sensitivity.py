"""What all records of one person can change, by its definition: every small multiset of people, exact fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from oracle import DEFINITIONS, fractions, mean, multisets
from pdrisk._answer.answers.facts import facts
from pdrisk._core.contributions import PersonRecords
from pdrisk._core.people import local_sensitivity, top_of_groups, without_each, world_range
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk._model.arguments import statistic
from pdrisk._model.unit import Unit
from pdrisk.engines.numpy.grouped import summary_of_groups

LO, HI = Fraction(0), Fraction(4)
UNIVERSE = Universe(float(LO), float(HI))
GRID = fractions([0, 1, 4])
NAMES = [
    name for name in DEFINITIONS if not name.startswith("quantile(0") or name in ("quantile(0.25)", "quantile(0.9)")
]


def chosen(name):
    """The statistic of a label."""
    if name.startswith("quantile"):
        return statistic(("quantile", {"q": float(name[9:-1])}))
    if name.endswith("(ddof=0)"):
        return statistic((name[:3], {"ddof": 0}))
    return statistic(name)


def people_of(*groups):
    """Records of groups of people, each a tuple of values."""
    rows = [(g, p, float(x)) for g, people in enumerate(groups) for p, values in enumerate(people) for x in values]
    columns = np.array(rows, dtype=float).reshape(-1, 3).T
    return PersonRecords(columns[2], columns[0].astype(np.int64), columns[1].astype(np.int64), len(groups))


def populations(k, most):
    """Multisets of up to `most` people, each with 1 to k records."""
    some = [values for values in multisets(GRID, k) if values]
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(some, size)


def together(people):
    return tuple(x for values in people for x in values)


def additions(records, k):
    """What somebody new may bring: a grid, the ends and the mean, in any mixture."""
    yield from multisets(sorted({*GRID, LO, HI, mean(records, LO, HI)}), k)


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("k", "most"), [(2, 2), pytest.param(3, 2, marks=pytest.mark.slow)])
class TestOnePersonAtMost:
    def test_local_sensitivity(self, name, k, most):
        """All that one person has removed, or all that somebody new may have added."""
        definition, asked = DEFINITIONS[name], chosen(name)
        every = list(populations(k, most))
        people = people_of(*every)
        values = np.array([definition.value(together(each), LO, HI) for each in every])
        found = local_sensitivity(asked, people.of_statistic(asked), UNIVERSE, values, k)
        for own, each in zip(found, every, strict=True):
            records = together(each)
            rests = [together(each[:i] + each[i + 1 :]) for i in range(len(each))]
            rests += [records + more for more in additions(records, k)]
            assert own == pytest.approx(max(definition.change(records, rest, LO, HI) for rest in rests), abs=1e-7), each

    def test_without_each_and_worlds(self, name, k, most):
        definition, asked = DEFINITIONS[name], chosen(name)
        every = [each for each in populations(k, most) if each]
        people = people_of(*every)
        contributions = people.of_statistic(asked)
        found, worlds = without_each(asked, contributions, UNIVERSE), world_range(asked, contributions, UNIVERSE)
        for g, each in enumerate(every):
            answers = [definition.value(together(each[:i] + each[i + 1 :]), LO, HI) for i in range(len(each))]
            np.testing.assert_allclose(found[people.contribution_groups == g], answers, atol=1e-7)
            assert worlds[g] == pytest.approx(max(answers) - min(answers), abs=1e-7)


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_global_sensitivity(name, k):
    """Over all data: the multiple of what one record can change that noise is calibrated to is reached or above."""
    definition, asked = DEFINITIONS[name], chosen(name)
    ends = (LO, HI)
    largest = max(
        definition.change(records, records + more, LO, HI)
        for records in multisets(ends, 4)
        for more in multisets(ends, k)
        if more
    )
    claimed = asked.global_sensitivity(UNIVERSE) * float(asked.rows_weight(k))
    assert claimed >= largest - 1e-12
    if name in ("count", "sum", "mean", "min", "max") or "var" in name:
        assert claimed == pytest.approx(largest)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("listed", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_records_of_all_groups_together(name, k, listed):
    """Over all data in listed groups: what k records change, wherever they lie, is what the noise is calibrated to."""
    definition, asked, ends = DEFINITIONS[name], chosen(name), (LO, HI)
    largest = [0.0] + [
        max(
            definition.change(records, records + more, LO, HI)
            for records in multisets(ends, 4)
            for more in multisets(ends, r)
            if len(more) == r
        )
        for r in range(1, k + 1)
    ]
    spreads = [each for each in itertools.product(range(k + 1), repeat=listed) if sum(each) <= k]
    total = max(math.fsum(largest[r] for r in spread) for spread in spreads)
    unit = Unit(("pid",), rows=k, groups=min(k, listed), overall=True)
    claimed = asked.global_sensitivity(UNIVERSE) * float(unit.weight_of(asked, "laplace", Fraction(1)))
    assert claimed >= total - 1e-12
    assert unit.weight_of(asked, "auto", Fraction(1)) == k  # of any mechanism, one record after another
    if name in ("count", "sum", "mean", "min", "max") or "var" in name:
        assert claimed == pytest.approx(total)


@pytest.mark.parametrize("name", ["count", "sum", "mean", "median", "max", "var"])
@pytest.mark.parametrize(("k", "listed"), [(2, 3), (3, 2), (3, 3)])
def test_losses_where_records_lie_in_several_groups(name, k, listed):
    """Nobody, in the data or not, loses more by all groups together than the curator is told of any of theirs."""
    definition, asked, draw = DEFINITIONS[name], chosen(name), np.random.default_rng(k + listed)
    unit = Unit(("pid",), rows=k, groups=min(k, listed), overall=True)
    weight = unit.weight_of(asked, "laplace", Fraction(1))
    mechanism = calibrated("laplace", asked, UNIVERSE, 1 / weight)
    by_unit = float(mechanism.eps) / asked.global_sensitivity(UNIVERSE)
    for _ in range(30):
        people = [
            [(int(draw.integers(listed)), float(draw.choice([0, 1, 4]))) for _ in range(draw.integers(1, k + 1))]
            for _ in range(draw.integers(1, 4))
        ]
        flat = np.array([(g, p, x) for p, own in enumerate(people) for g, x in own]).T
        records = PersonRecords(flat[2], flat[0].astype(int), flat[1].astype(int), listed)
        summary = summary_of_groups(flat[2], flat[0].astype(np.int32), listed, UNIVERSE, asked.needs)
        found = facts(mechanism, summary, 0.0, unit, weight, records)
        assert (found.loss <= 1 + 1e-9).all()

        def answers(persons, of=definition):
            each = [[Fraction(x) for own in persons for g, x in own if g == group] for group in range(listed)]
            return [tuple(sorted(own)) for own in each]

        whole = answers(people)
        new = [[(int(draw.integers(listed)), float(draw.choice([0, 4]))) for _ in range(k)] for _ in range(5)]
        others = [(people[:at] + people[at + 1 :], own) for at, own in enumerate(people)]
        others += [([*people, own], own) for own in new]
        for persons, own in others:
            pairs = zip(whole, answers(persons), strict=True)
            lost = math.fsum(definition.change(one, other, LO, HI) for one, other in pairs) * by_unit
            assert all(found.loss[g] >= lost - 1e-6 for g, _ in own)


def test_different_values():
    """A value is lost with the person who alone has it; somebody new may bring k others."""
    asked = statistic("nunique")
    # person 0 alone has 7, persons 0 and 1 have 8, person 2 has 9 twice
    people = PersonRecords(np.array([7, 8, 8, 9, 9]), np.zeros(5, int), np.array([0, 0, 1, 2, 2]), 1)
    assert without_each(asked, people.of_statistic(asked), UNIVERSE).tolist() == [2, 3, 2]
    assert local_sensitivity(asked, people.of_statistic(asked), UNIVERSE, np.array([3.0]), 2).tolist() == [2]


@pytest.mark.parametrize("k", [7, 40])
@pytest.mark.parametrize("name", ["var", "std(ddof=0)"])
def test_a_variance_of_many_records_a_person(name, k):
    """Of all mixtures of records at the ends, and as many at the mean."""
    definition, asked = DEFINITIONS[name], chosen(name)
    for people in ([(Fraction(1),)] * 3, [(LO, HI)] * 2, [(HI,)] * 5, [(Fraction(1), Fraction(3))] * 9):
        records, contributions = together(people), people_of(people).of_statistic(asked)
        more = [(LO,) * i + (HI,) * j for i in range(k + 1) for j in range(k + 1 - i)]
        more += [(mean(records, LO, HI),) * m for m in range(k + 1)]
        rests = [together(people[1:]), *(records + each for each in more)]
        expected = max(definition.change(records, rest, LO, HI) for rest in rests)
        value = np.array([definition.value(records, LO, HI)])
        assert local_sensitivity(asked, contributions, UNIVERSE, value, k) == pytest.approx(expected, abs=1e-9)


def test_beyond_what_is_tried():
    """A variance may change by all that it can be then, never by less."""
    contributions = people_of([(Fraction(1),), (Fraction(2),)]).of_statistic(statistic("var"))
    assert local_sensitivity(statistic("var"), contributions, UNIVERSE, np.array([0.5]), 10_001).tolist() == [8.0]


@pytest.mark.parametrize("groups", [1, 2, 3, 9])
def test_losses_in_several_groups(groups):
    """The loss in a group, and the largest of others that a person is in besides."""
    losses = np.array([0.3, 0.1, 0.5, 0.3])
    found = top_of_groups(losses, groups)
    for own, at in zip(found, range(4), strict=True):
        others = sorted(np.delete(losses, at), reverse=True)
        assert own == pytest.approx(losses[at] + math.fsum(others[: groups - 1]))
