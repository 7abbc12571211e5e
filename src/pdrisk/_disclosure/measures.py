"""Disclosure measures of a table: k-anonymity, k-map, delta-presence, l-diversity, t-closeness, unique rows."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.risks.loglinear import MOST_CELLS, log_linear
from pdrisk._core.risks.table_disclosure import MODELS, closeness, diversity, expected_reciprocal, probability_below
from pdrisk._disclosure.classes import Classes, classes_of, occurring
from pdrisk._disclosure.generalize import check_generalize
from pdrisk._disclosure.population import both_sides
from pdrisk._disclosure.results import (
    DeltaPresence,
    Found,
    KAnonymity,
    KMap,
    KMapEstimate,
    LDiversity,
    TCloseness,
    UniqueRows,
)
from pdrisk._disclosure.sql_table import SQLKeys
from pdrisk._disclosure.tables import FrameKeys, KeyRequest, KeyTable, Side, several_rows
from pdrisk._model.expressions.columns import column_kind
from pdrisk._model.expressions.kinds import DATE, NUMBER, TIME, ZONED
from pdrisk._model.plain import float_of
from pdrisk._model.rowwise import Within
from pdrisk._pandas.requests.declared import declarations_of
from pdrisk.engines.base import DataTable
from pdrisk.engines.columnar.table import ColumnTable
from pdrisk.engines.numpy.frame import FrameTable
from pdrisk.engines.sql.servers.sql_table import StoredTable
from pdrisk.errors import ColumnTypeError, ParameterError

DISTANCES = ("auto", "equal", "ordered")


def keys_of(table: DataTable, header: pd.DataFrame, within: Within | None) -> KeyTable:
    """Keys of a Dataset's table, after what it selected and assigned; its header has the assigned columns."""
    if isinstance(table, FrameTable | ColumnTable):
        return FrameKeys(table, header, within)
    assert isinstance(table, StoredTable)
    return SQLKeys(table.stored(), declarations_of(table.header), within)


def asked(on: object, generalize: object = None, person: object = None) -> KeyRequest:
    """Request of a measure, judged without the data."""
    keys = _named(on)
    if not keys:
        raise ParameterError("on= names no column: list the keys that an attacker may know, such as ['age', 'zip'].")
    for name in keys:
        if keys.count(name) > 1:
            raise ParameterError(f"on= names {name!r} twice: name each key column once.")
    persons = () if person is None else _named(person)
    if both := [name for name in persons if name in keys]:
        raise ParameterError(f"{both[0]!r} cannot say who a person is and be a key: leave it out of on=.")
    return KeyRequest(keys, check_generalize(generalize, keys), persons)


def _named(columns: Any) -> tuple[Hashable, ...]:
    listed = list(columns) if isinstance(columns, list | pd.Index) else [columns]
    for name in listed:
        if name is None or not isinstance(name, Hashable):
            raise ColumnTypeError(
                f"columns are named by their labels, or by a list of them, not {type(name).__name__}."
            )
    return tuple(listed)


def _one_named(option: str, columns: Any) -> Hashable:
    named = _named(columns)
    if len(named) != 1:
        raise ParameterError(f"{option}= names one column, not {len(named)}.")
    return named[0]


def _classes(table: KeyTable, wanted: KeyRequest) -> tuple[Classes, NDArray[np.int64]]:
    """Classes of one table, with their numbers of people."""
    side = table.read(wanted)
    classes = classes_of(side)
    return classes, somebody(classes.people())


def somebody(sample: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of people, or the error if there is nobody."""
    if not sample.any():
        raise ParameterError("nobody is in the table: it has no row, or none with a person's id.")
    return sample


def k_anonymity(table: KeyTable, wanted: KeyRequest) -> KAnonymity:
    """Size of the smallest class."""
    classes, sample = _classes(table, wanted)
    present = sample > 0
    return KAnonymity(
        wanted.keys, int(sample.sum()), classes.sides[0].left_out, Found(classes, present, {"sample": sample}),
        k=int(sample[present].min()), unique=int(np.count_nonzero(sample == 1)),
    )  # fmt: skip


def k_map(
    table: KeyTable,
    wanted: KeyRequest,
    *,
    population: object,
    population_counts: object,
    weights: object,
    model: object,
    on_missing: object,
) -> KMap | KMapEstimate:
    """Smallest size in the population of a class in the table."""
    if weights is not None:
        if population is not None or population_counts is not None:
            raise ParameterError("pass exactly one of population=, population_counts= and weights=.")
        return _estimate(table, wanted, weights, model)
    if population is None and population_counts is None:
        raise ParameterError(
            "k_map needs to know the population: pass population= (a table of people), population_counts= (numbers by "
            "key), or weights= of the sample, for an estimate."
        )
    classes, sample, whole = both_sides(table, wanted, population, population_counts, on_missing)
    present = somebody(sample) > 0
    return KMap(
        wanted.keys, int(sample.sum()), classes.sides[0].left_out,
        Found(classes, present, {"sample": sample, "population": whole}),
        k_map=int(whole[present].min()), k=int(sample[present].min()), population=int(whole.sum()),
    )  # fmt: skip


def delta_presence(
    table: KeyTable, wanted: KeyRequest, *, population: object, population_counts: object, on_missing: object
) -> DeltaPresence:
    """Smallest and largest share of a population class that is in the table."""
    classes, sample, whole = both_sides(table, wanted, population, population_counts, on_missing)
    somebody(sample)
    present = whole > 0
    ratio = np.divide(sample, whole, out=np.zeros(len(whole)), where=present)
    return DeltaPresence(
        wanted.keys, int(sample.sum()), classes.sides[0].left_out,
        Found(classes, present, {"sample": sample, "population": whole, "ratio": ratio}),
        delta_min=float(ratio[present].min()), delta_max=float(ratio[present].max()),
        k_map=int(whole[sample > 0].min()), k=int(sample[sample > 0].min()), population=int(whole.sum()),
    )  # fmt: skip


def unique_rows(table: KeyTable, wanted: KeyRequest, *, weights: object, model: object) -> UniqueRows:
    """People alone in their class."""
    estimate = ends = None
    if weights is None:
        classes, sample = _classes(table, wanted)
    else:
        known = _estimate(table, wanted, weights, model)
        classes, sample = known._found.classes, known._found.values["sample"]
        estimate, ends = known.population_unique, known.population_unique_range
    people, unique = int(sample.sum()), int(np.count_nonzero(sample == 1))
    return UniqueRows(
        wanted.keys, people, classes.sides[0].left_out,
        Found(classes, sample > 0, {"sample": sample, "unique": sample == 1}),
        unique=unique, share=unique / people, population_unique=estimate, population_unique_range=ends,
    )  # fmt: skip


def _estimate(table: KeyTable, wanted: KeyRequest, weights: object, model: object) -> KMapEstimate:
    """Sizes in the population from weights, and the risks that follow."""
    if not isinstance(model, str) or model not in MODELS:
        raise ParameterError(f"model is one of {', '.join(MODELS)}, not {model!r}.")
    constant = None
    if isinstance(weights, numbers.Real) and not isinstance(weights, bool):
        constant = float_of("weights", weights)
        if not 1 <= constant < np.inf:
            raise ParameterError("a weight is how many people of the population a person stands for: 1 or more.")
        classes, sample = _classes(table, wanted)
        size = sample * constant
    else:
        column = _one_named("weights", weights)
        classes, sample = _classes(table, KeyRequest(wanted.keys, wanted.generalize, wanted.person, column))
        if wanted.person and classes.sides[0].persons is not None and (classes.lines() > sample).any():
            raise several_rows()
        row_weights = classes.sides[0].weights
        assert row_weights is not None  # asked for
        if not np.isfinite(row_weights).all() or (row_weights < 0).any():
            raise ParameterError(f"the weights in column {column!r} must be finite, at least 0, and none missing.")
        size = classes.weights()
        if (size < sample * (1 - 1e-9)).any():
            raise ParameterError(
                f"the weights in column {column!r} add up to fewer people than there are in a class: a weight is how "
                "many people of the population a person stands for."
            )
    present = sample > 0
    size = np.maximum(size, sample)
    chosen = classes.order(present)  # so that sums are rounded alike, in whatever order rows come
    ranks = [column.ranks()[classes.codes(at, chosen)] for at, column in enumerate(classes.sides[0].columns)]
    few, many = sample[chosen].astype(np.float64), size[chosen]
    risk, expected = np.zeros(len(sample)), np.zeros(len(sample))
    risk[chosen] = _risks(few, many, model)
    fit = log_linear(ranks, few, many)
    models = [(many, model)]
    if len(wanted.keys) > 1:  # else main effects are the classes themselves, and the model knows no more than weights
        models = [(few + (1 - few / many) * sizes, "poisson") for sizes in (fit.chosen, fit.independent)] + models
    reidentified = [math.fsum(_risks(few, *fitted) * few) for fitted in models]
    alone = few == 1
    unique = [math.fsum(probability_below(2, few[alone], sizes[alone], model_name)) for sizes, model_name in models]
    expected[chosen] = models[0][0]
    return KMapEstimate(
        wanted.keys, int(sample.sum()), classes.sides[0].left_out,
        Found(classes, present, {"sample": sample, "population": size, "expected": expected, "risk": risk}),
        k_map=float(many.min()), k=int(few.min()), highest_risk=float(risk.max()),
        reidentified=reidentified[0], reidentified_range=(min(reidentified), max(reidentified)),
        population_unique=unique[0], population_unique_range=(min(unique), max(unique)),
        model=model, interactions=tuple((wanted.keys[one], wanted.keys[other]) for one, other in fit.interactions),
        is_whole=fit.cells <= MOST_CELLS,
    )  # fmt: skip


def _risks(few: NDArray[np.float64], many: NDArray[np.float64], model: str) -> NDArray[np.float64]:
    """Individual risks of classes; those of the same two numbers, which are few where weights are, have the same."""
    pairs, at = np.unique(few + 1j * many, return_inverse=True)
    return expected_reciprocal(pairs.real, pairs.imag, model)[at]


def _with_values(table: KeyTable, wanted: KeyRequest, sensitive: object) -> tuple[Classes, NDArray[np.int64], Any]:
    """The classes, the people in each, and lines of (class, value, people) for each known value that occurs in one."""
    column = _one_named("sensitive", sensitive)
    if column in wanted.keys:
        raise ParameterError(f"{column!r} is a key and the sensitive column: within a class it has one value.")
    side = table.read(KeyRequest((*wanted.keys, column), wanted.generalize, wanted.person))
    values = side.columns[-1]
    classes = classes_of(_keys_of(side))
    pair = classes.numbers[0] * values.size + values.codes
    pairs, counts = occurring(pair, classes.size * values.size, side.persons, side.times)
    at, code = pairs // values.size, pairs % values.size
    sample = np.rint(np.bincount(at, weights=counts, minlength=classes.size)).astype(np.int64)
    somebody(sample)
    order = values.ranks()
    used = np.unique(order[code[code > 0]])
    place = np.searchsorted(used, order[code])
    known = np.flatnonzero(code > 0)
    known = known[np.lexsort((place[known], at[known]))]
    if len(known) == 0:
        raise ParameterError(f"the sensitive column {column!r} has no value: all are missing.")
    return classes, sample, (at[known], place[known], counts[known], values)


def _keys_of(side: Side) -> Side:
    """The table without its last column."""
    return Side(side.columns[:-1], side.times, side.persons, None, side.left_out, side.rows)


def l_diversity(table: KeyTable, wanted: KeyRequest, sensitive: Hashable) -> LDiversity:
    """Number of different values of a sensitive column in each class."""
    classes, sample, (at, _, counts, _) = _with_values(table, wanted, sensitive)
    distinct, entropy, largest = diversity(at, counts, classes.size)
    known = distinct > 0
    values = {
        "sample": sample,
        "distinct": np.where(known, distinct, np.nan),
        "entropy_l": entropy,
        "largest_share": largest,
    }
    return LDiversity(
        wanted.keys, int(sample.sum()), classes.sides[0].left_out, Found(classes, sample > 0, values),
        sensitive=sensitive, l=int(distinct[known].min()), entropy_l=float(entropy[known].min()),
        largest_share=float(largest[known].max()),
    )  # fmt: skip


def t_closeness(table: KeyTable, wanted: KeyRequest, sensitive: Hashable, distance: object) -> TCloseness:
    """Distance of each class's sensitive values from those of the whole table."""
    if not isinstance(distance, str) or distance not in DISTANCES:
        raise ParameterError(f"distance is one of {', '.join(DISTANCES)}, not {distance!r}.")
    classes, sample, (at, place, counts, values) = _with_values(table, wanted, sensitive)
    kind = column_kind(pd.Series(values.labels))
    ordered = values.ordered or kind in (NUMBER, TIME, ZONED, DATE) if distance == "auto" else distance == "ordered"
    distances = closeness(at, place, counts, classes.size, ordered=ordered)
    return TCloseness(
        wanted.keys, int(sample.sum()), classes.sides[0].left_out,
        Found(classes, sample > 0, {"sample": sample, "distance": distances}),
        sensitive=sensitive, t=float(np.nanmax(distances)), distance="ordered" if ordered else "equal",
    )  # fmt: skip
