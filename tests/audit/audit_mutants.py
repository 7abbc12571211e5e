"""Faults that an audit has to find: the kinds of bugs that noise libraries had, each put into pdrisk by hand.

Every mutant takes pytest's monkeypatch. Of the 13 violations that others found by replaying noise on neighbours
(published in 2026): missing values that poison, a scale too small, a threshold off by one, a cap that a redefined key
keeps, ties broken by the order of data.
"""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np

import pdrisk
from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._core.statistics import Mean, Sum
from pdrisk._mechanisms import discrete_laplace
from pdrisk._mechanisms.clipped_sums import ClippedSums
from pdrisk._mechanisms.contract import draws
from pdrisk._mechanisms.exponential import choice, weights
from pdrisk._mechanisms.geometric import Geometric
from pdrisk._mechanisms.laplace import Laplace
from pdrisk._mechanisms.noise import entropy, reference, sampler
from pdrisk._mechanisms.noise.exact_laplace import plus_discrete_laplace
from pdrisk._mechanisms.partition_selection import PartitionSelection
from pdrisk._mechanisms.two_sums import TwoSums
from pdrisk._model.query import Query
from pdrisk._sql.select import judge
from pdrisk._sql.select.compiled_query import CompiledQuery
from pdrisk.engines.numpy import frame as frames
from pdrisk.engines.numpy import single
from pdrisk.engines.numpy.person_records import Persons

# name: the sections of the audit that find it, one of them at least, and what is broken
MUTANTS = {}


def mutant(*sections):
    def register(broken):
        MUTANTS[broken.__name__.replace("_", " ")] = sections, broken
        return broken

    return register


@mutant("noise", "black box")
def a_scale_20_percent_too_small(patch):
    patch.setattr(draws, "discrete_laplace", lambda exact, change, eps: discrete_laplace(exact, change, eps * 5 / 4))


@mutant("noise")
def the_exact_sampler_draws_too_narrow(patch):
    patch.setattr(sampler, "plus_discrete_laplace", lambda exact, scale: plus_discrete_laplace(exact, scale * 4 / 5))


@mutant("noise")
def opendp_is_asked_for_too_little(patch):
    own = reference.opendp_measurement
    patch.setattr(reference, "opendp_measurement", lambda change, eps: own(change, eps * Fraction(5, 4)))


@mutant("noise")
def one_noise_for_all_groups(patch):
    def same(exact, change, eps):
        return exact + discrete_laplace(np.zeros(1, dtype=np.int64), change, eps)

    patch.setattr(draws, "discrete_laplace", same)


@mutant("noise")
def noise_that_is_kept_between_calls(patch):
    kept = {}

    def again(exact, scale):
        return exact + kept.setdefault((len(exact), scale), plus_discrete_laplace(np.zeros_like(exact), scale))

    patch.setattr(sampler, "plus_discrete_laplace", again)


@mutant("noise")
def a_choice_that_is_one_off(patch):
    own = choice.chosen_points
    patch.setattr(choice, "chosen_points", lambda *asked: np.maximum(own(*asked) - 1, 0))


@mutant("noise")
def a_bit_that_is_stuck(patch):
    own = entropy.urandom
    patch.setattr(entropy, "urandom", lambda size: bytes(byte | 2 for byte in own(size)))


@mutant("replay")
def sensitivity_by_the_private_number_of_records(patch):
    """R/n of a mean, as if n were public."""
    own = Laplace.draw

    def draw(self, summary, source=discrete_laplace, bits=None):
        if not isinstance(self.statistic, Mean):
            return own(self, summary, source)
        n = max(int(summary.n.max(initial=0)), 1)
        return own(self, summary, lambda exact, change, eps: source(exact, -(-change // n), eps))

    patch.setattr(Laplace, "draw", draw)


@mutant("replay")
def a_filter_that_looks_at_other_rows(patch):
    own = frames.selected_rows

    def above_the_mean(frame, where, given=None):
        rows = own(frame, where, given)
        return rows & (frame["y"] >= frame["y"][rows].mean()).to_numpy() if "y" in frame else rows

    patch.setattr(frames, "selected_rows", above_the_mean)


@mutant("replay")
def a_cap_by_the_order_of_rows(patch):
    """Of each group the first three rows are kept, whoever they are of."""
    own = frames.key_codes

    def capped(frame, columns, keys):
        codes = own(frame, columns, keys)
        for group in range(len(keys)):
            codes[np.flatnonzero(codes == group)[3:]] = len(keys)
        return codes

    patch.setattr(frames, "key_codes", capped)


@mutant("replay")
def ties_broken_by_the_order_of_rows(patch):
    own = frames.column_values

    def first_come(column):
        values = np.array(own(column), dtype=np.float64)
        alike = values == np.nanmin(values, initial=np.inf)
        alike[np.flatnonzero(alike)[: len(values) // 2]] = False
        return np.where(alike, values + np.arange(len(values)), values)

    patch.setattr(frames, "column_values", first_come)


@mutant("replay")
def eps_charged_once_for_overlapping_groups(patch):
    """The first group also holds everybody of the others."""
    own = Geometric.draw

    def draw(self, summary, source=discrete_laplace, bits=None):
        n = summary.n.copy()
        n[:1] = n.sum()
        return own(self, replace(summary, n=n), source)

    patch.setattr(Geometric, "draw", draw)


@mutant("replay", "black box")
def eps_that_is_not_split(patch):
    """Each of several releases costs all of it."""
    from pdrisk._pandas.requests import judged_requests as requests

    own = requests.asked_epsilon
    patch.setattr(requests, "asked_epsilon", lambda *asked: own(*asked) * 2)


@mutant("replay")
def a_missing_value_that_poisons(patch):
    own = frames.column_values

    def poisoned(column):
        values = np.array(own(column), dtype=np.float64)
        return np.full_like(values, np.nan) if np.isnan(values).any() else values

    patch.setattr(frames, "column_values", poisoned)


@mutant("replay")
def a_float_sum_whose_error_exceeds_its_bound(patch):
    """Records added up as 32-bit floats."""
    own = frames.summary_of_one

    def narrow(values, universe, needs, selected=None):
        found = own(values, universe, needs, selected)
        if found.steps is None:
            return found
        return replace(found, steps=found.steps.astype(np.float32).astype(np.int64))

    patch.setattr(frames, "summary_of_one", narrow)


@mutant("replay")
def records_that_are_not_clamped(patch):
    own = single.clamped
    wide = pdrisk._core.universe.Universe

    def unclamped(values, universe, **options):
        return own(values, wide(universe.lo - universe.width, universe.hi + universe.width), **options)

    patch.setattr(single, "clamped", unclamped)


@mutant("replay", "black box")
def the_answer_of_nothing_is_an_end(patch):
    own = Mean.value
    patch.setattr(Mean, "value", lambda self, s, u: np.where(s.n == 0, u.lo, own(self, s, u)))


@mutant("replay", "black box")
def a_mean_of_half_its_sensitivity(patch):
    own = Mean.global_sensitivity
    patch.setattr(Mean, "global_sensitivity", lambda self, universe: own(self, universe) / 2)


@mutant("replay")
def a_sensitivity_off_by_one(patch):
    own = Geometric._change.fget
    patch.setattr(Geometric, "_change", property(lambda self: max(own(self) - 1, 1)))


@mutant("replay")
def weights_for_twice_the_eps(patch):
    own = weights._weights
    patch.setattr(weights, "_weights", lambda up, down, points, eps: own(up, down, points, 2 * eps))


@mutant("replay")
def a_sum_without_noise(patch):
    own = TwoSums.draw

    def draw(self, summary, source=discrete_laplace, bits=None):
        noisy = own(self, summary, source)
        noisy[1] = summary.n * 2**30 - summary.places
        return noisy

    patch.setattr(TwoSums, "draw", draw)


@mutant("replay")
def an_interval_from_the_exact_number_of_records(patch):
    held = []
    draw, interval = TwoSums.draw, TwoSums.interval

    def seen(self, summary, *rest):
        held[:] = [int(summary.n.sum())]
        return draw(self, summary, *rest)

    def wider(self, drawn, level):
        low, high = interval(self, drawn, level)
        return low - 1 / (1 + held[0]), high + 1 / (1 + held[0])

    patch.setattr(TwoSums, "draw", seen)
    patch.setattr(TwoSums, "interval", wider)


@mutant("replay")
def a_refusal_where_nobody_is_left(patch):
    own = frames.FrameEngine.read

    def read(self, query):
        found = own(self, query)
        if any((each.n == 0).any() for each in found.summaries):
            raise pdrisk.ParameterError("nobody is in this group")
        return found

    patch.setattr(frames.FrameEngine, "read", read)


@mutant("replay")
def groups_that_nobody_is_in_are_left_out(patch):
    own = frames.FrameEngine.read

    def read(self, query):
        if query.groups is None or len(query.groups.columns) > 1:
            return own(self, query)
        held = set(self.frame[query.groups.columns[0]])
        keys = tuple(key for key in query.groups.keys if key[0] in held)
        return own(self, replace(query, groups=replace(query.groups, keys=keys)))

    patch.setattr(frames.FrameEngine, "read", read)


@mutant("replay")
def a_payment_by_the_number_of_records(patch):
    own = pdrisk.Ledger.pay

    def pay(self, query, fresh=False, dataset=None, origin=None):
        times = 1 + len(origin.frame) % 2
        return own(self, replace(query, times=times), fresh, dataset, origin)

    patch.setattr(pdrisk.Ledger, "pay", pay)


@mutant("replay")
def people_with_several_rows_who_cost_no_more_than_one(patch):
    patch.setattr(Query, "weight", lambda self, line, eps=None: Fraction(1))


@mutant("replay")
def people_who_count_in_more_groups_than_they_may(patch):
    patch.setattr(Persons, "_within_groups", lambda self, rows, persons, group, groups: (rows, persons, group))


@mutant("replay")
def rows_of_a_person_chosen_by_their_order(patch):
    patch.setattr(Persons, "_mixed", lambda self, *parts: np.arange(len(parts[0]), dtype=np.uint64))


@mutant("replay")
def a_join_whose_multiplicity_is_ignored(patch):
    """All rows that a join makes of a person count, however many were paid for."""
    own = judge.compiled_query

    def read(*asked):
        engine, owners = own(*asked), asked[-1]
        return engine if owners is None else replace(engine, plan=replace(engine.plan, people=None))

    patch.setattr(judge, "compiled_query", read)


@mutant("replay")
def clipping_points_that_cost_what_the_answer_costs_too(patch):
    patch.setattr(ClippedSums, "_stages", property(lambda self: (self.eps, self.eps / 2)))


@mutant("replay")
def a_warning_that_depends_on_the_data(patch):
    own = frames.FrameEngine.read

    def read(self, query):
        found = own(self, query)
        if any((each.n < 5).any() for each in found.summaries):
            warnings.warn("few people", UserWarning, stacklevel=2)
        return found

    patch.setattr(frames.FrameEngine, "read", read)


@mutant("noise")
def a_delta_half_as_large_again(patch):
    own = PartitionSelection.draw
    patch.setattr(PartitionSelection, "draw", lambda self, *rest: own(replace(self, delta=self.delta * 3 / 2), *rest))


@mutant("noise")
def a_group_of_one_person_more(patch):
    own = PartitionSelection.draw
    patch.setattr(PartitionSelection, "draw", lambda self, *rest: own(replace(self, least=self.least - 1), *rest))


@mutant("replay")
def a_kind_of_number_that_depends_on_the_data(patch):
    """As whole numbers become floats where one is missing."""
    sizes = []
    read, values = frames.FrameEngine.read, NoisyAnswers.values._compute

    def counted(self, query):
        found = read(self, query)
        sizes[:] = [int(found.summaries[0].n.sum())]
        return found

    patch.setattr(frames.FrameEngine, "read", counted)
    patch.setattr(
        NoisyAnswers, "values", property(lambda self: values(self).astype(float) if sizes == [0] else values(self))
    )


@mutant("replay")
def sql_counts_a_record_twice(patch):
    own = CompiledQuery.read

    def read(self, query):
        found = own(self, query)
        summaries = tuple(replace(each, n=each.n + (each.n > 3)) for each in found.summaries)
        return replace(found, summaries=summaries)

    patch.setattr(CompiledQuery, "read", read)


@mutant("replay")
def a_lattice_from_the_data(patch):
    """Answers are rounded to steps of a size that the largest record decides."""
    own = Sum.steps

    def steps(self, summary, universe):
        return own(self, summary, universe) * np.maximum(summary.n, 1)

    patch.setattr(Sum, "steps", steps)
