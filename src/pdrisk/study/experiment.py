"""The experiment of the SOEP paper (Allmann et al. 2024, section 4) on any frame."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.foreign import own_errors
from pdrisk._core.once import once
from pdrisk._core.risks.risk import METRICS
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray
from pdrisk._model.arguments import checked_mechanism
from pdrisk._model.declared.aliases import Bounds, Eps
from pdrisk._model.declared.attributes import ATTRIBUTE, EXACT
from pdrisk._model.plain import plain_label
from pdrisk.engines.numpy.samples import summary_of_samples
from pdrisk.study.checkpoint import Folder
from pdrisk.study.measures import Measures, measures
from pdrisk.study.plan import Variable, eps_list, metric_names, statistics_of, variables, whole_number
from pdrisk.study.progress import progress_bar
from pdrisk.study.sampling import sampling95

#: Where the paper varies eps its text gives no numbers. These ten show both ends of what it describes: from where the
#: release tells nothing to where it tells everything.
STATISTICS = ("mean", "median", "min", "max", "var")  # the paper's queries
EPS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)

KEPT_AS = 1  # of what files hold: raised whenever the same question would be computed differently
PIECE = 2**17  # records of the samples that one worker holds at a time
THREADS = 4


@own_errors
def run(
    df: pd.DataFrame,
    columns: Hashable | list[Hashable],
    statistics: Any = STATISTICS,
    *,
    eps: Eps | Sequence[Eps] = EPS,
    sample_sizes: Any = None,
    repetitions: int = 100,
    metrics: Any = METRICS,
    bounds: Bounds | None = None,
    mechanism: str = "laplace",
    ddof: int = 1,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
    resume: Any = None,
) -> pd.DataFrame:
    """Curator only: study of the risks of answers about random samples of your data, by statistic, sample size and eps.

    Each column is taken as a whole population. Samples are drawn from its values without replacement, several of each
    size. For every sample the sensitivities of each statistic and the risks at each eps are computed. No noise is
    drawn, nothing is spent, and nothing of the result may be published.

    Parameters
    ----------
    df : DataFrame
    columns : column or list of columns
        Columns of numbers. Declared missing codes are missing.
    statistics : name, pair or list of these
        As in ``["mean", ("quantile", {"q": 0.9})]``.
    eps : float or list of float
        Privacy losses, in nats; by default ten from 0.01 to 50. The paper's text does not name its own.
    sample_sizes : int, float or list of these, optional
        Numbers of people (``int``), or shares of a column's values above 0 and up to ``1.0``, which is all of them.
        Sizes that come out equal are taken once. By default eight shares from 0.001 to 1, of at least two people. The
        paper's text does not name its own.
    repetitions : int
        Number of samples of each size. There is only one sample of all values, since all would be equal.
    metrics : list of str
        Which of the four risks to compute.
    bounds : (lo, hi), "column", or dict from column to these, optional
        Universe of a column, in its unit. If it is neither given nor declared, it is the column's own finite range, as
        in the paper. ``"column"`` takes that range in any case.
    mechanism : str
        Mechanism whose risks and noise are computed: by default the paper's. ``"auto"`` takes those that a release has
        by default; or the name of one.
    ddof : {1, 0}
        Of ``var`` and ``std`` without one of their own. The paper's global sensitivity of the variance, half of the
        squared range, is that of 1.
    seed : int
        Seed of the samples. They depend on it, on the column's name and values and on their size alone, not on the
        other columns, the order of rows or the number of workers. With more repetitions the first samples stay the
        same.
    workers : int, optional
        Number of threads; by default the number of processors, at most 4.
    progress : bool
        Show a bar on the terminal after a second; none if stderr is not a terminal.
    resume : path, optional
        Folder where finished parts are kept. The same call then goes on where it was stopped, and returns the very same
        frame. Other studies may keep parts there, too. The files are for the curator only, like the result.

    Returns
    -------
    DataFrame
        One row for each column, statistic, sample and eps, in this order: ``column statistic mechanism sample_size
        proportion repetition eps n global_sensitivity local_sensitivity noise95`` and the risks. ``proportion`` is the
        share of the column's values in the sample, as it was asked for, so it is the same for columns of different
        length: of 14,734 values a tenth is 1,473. In 95 % of cases an answer is within ``noise95`` of
        the exact one, in the unit of the answer. ``attrs["study"]`` says how the frame was made: seed, repetitions and
        ddof; and for each column its bounds and their source, the number of values, where between the bounds their
        median lies (0 to 1), and ``sampling95``: how far the exact statistics of all values may be from those of the
        population, 95 % sure, if the values are a simple random sample of it.

    Raises
    ------
    ParameterError
        If columns cannot be studied; the text names all of them, each with what to do.

    Notes
    -----
    ``global_sensitivity`` is that of the universe, ``local_sensitivity`` that of the sample: see docs/numbers.md. The
    local sensitivity of the variance is the true one, not the paper's, which misses two of six candidates.

    Examples
    --------
    >>> import pdrisk
    >>> survey = pdrisk.datasets.soep_like(missing="nan")
    >>> table = pdrisk.study.run(survey, "distance", "max", eps=1, sample_sizes=[100, 1.0], repetitions=20)
    >>> table.groupby("sample_size")["two_worlds"].mean().round(1)
    sample_size
    100      0.7
    14734    0.5
    Name: two_worlds, dtype: float64
    """
    losses, risks = eps_list(eps), metric_names(metrics)
    plan = StudyPlan(
        measures(statistics_of(statistics, whole_number("ddof", ddof, 0)), checked_mechanism(mechanism), losses),
        whole_number("repetitions", repetitions, 1),
        whole_number("seed", seed, 0),
    )
    threads = min(os.cpu_count() or 1, THREADS) if workers is None else whole_number("workers", workers, 1)
    chosen = variables(df, columns, bounds, sample_sizes)
    folder = None if resume is None else Folder(resume)
    blocks = [Block(plan, variable, size) for variable in chosen for size in variable.sizes]
    parts = _finished(blocks, threads, folder, shown=bool(progress))
    tables = []
    for variable in chosen:
        column_parts = [(block, part) for block, part in zip(blocks, parts, strict=True) if block.variable is variable]
        tables.append(_table(plan, variable, column_parts, losses, risks))
    result = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    result.attrs = _attrs(plan, chosen, int(ddof))
    return result


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """Plan of a study: settings that are the same for all columns."""

    measures: Measures
    repetitions: int
    seed: int

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Statistics of each sample."""
        return self.measures.statistics


@dataclass(frozen=True)
class Block:
    """All samples of one size of one column, which are computed and kept together."""

    plan: StudyPlan
    variable: Variable
    size: int

    @property
    def everybody(self) -> bool:
        """Whether the samples are the whole column."""
        return self.size == len(self.variable.values)

    @property
    def repetitions(self) -> int:
        """Number of samples: of everybody one, since all are equal."""
        return 1 if self.everybody else self.plan.repetitions

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the measures: of each statistic, of each sample."""
        return self.plan.measures.rows, len(self.plan.statistics), self.repetitions

    @property
    def work(self) -> int:
        """Number of records to look at."""
        return self.size * self.repetitions

    @property
    def generator(self) -> np.random.Generator:
        """Random numbers of the block, from the seed, the column's name and the size."""
        name = hashlib.blake2b(repr(plain_label(self.variable.column)).encode(), digest_size=16).digest()
        words = [int(word) for word in np.frombuffer(name, dtype="<u4")]
        key = (*words, self.size % 2**32, self.size >> 32)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.plan.seed, spawn_key=key)))

    @once
    def fingerprint(self) -> str:
        """Name for everything that decides the measures; not the choice of risks, nor eps with Laplace noise."""
        import pdrisk  # its version; the package is above this module

        variable, plan = self.variable, self.plan
        settings: dict[str, Any] = {
            "kept_as": KEPT_AS,
            "pdrisk": pdrisk.__version__,
            "numpy": np.__version__,  # whose streams may change
            "seed": plan.seed,
            "column": repr(plain_label(variable.column)),
            "values": hashlib.sha256(variable.values.tobytes()).hexdigest(),
            "universe": [variable.universe.lo.hex(), variable.universe.hi.hex()],
            "size": self.size,
            "repetitions": self.repetitions,
            "statistics": [statistic.label for statistic in plan.statistics],  # with q and ddof
        }
        if plan.measures.eps:
            settings |= {"mechanisms": plan.measures.mechanisms, "eps": plan.measures.eps}
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()

    def computed(self, done: Callable[[int], object], stop: threading.Event) -> FloatArray:
        """The measures, in pieces of bounded size."""
        generator, values, universe = self.generator, self.variable.values, self.variable.universe
        measures = self.plan.measures
        result = np.empty(self.shape)
        rows = max(PIECE // self.size, 1)
        for first in range(0, self.repetitions, rows):
            if stop.is_set():
                break
            last = min(first + rows, self.repetitions)
            if self.everybody:
                samples = values[np.newaxis, :]
            else:
                samples = np.empty((last - first, self.size))
                for row in samples:
                    row[:] = values[generator.choice(len(values), self.size, replace=False, shuffle=False)]
                samples.sort(axis=1)
            result[..., first:last] = measures.of(summary_of_samples(samples, universe, measures.needs), universe)
            done(samples.size)
        return result


def _finished(blocks: list[Block], threads: int, folder: Folder | None, *, shown: bool) -> list[FloatArray]:
    """The parts of all blocks, kept or computed now."""
    by_place: dict[int, FloatArray] = {}
    if folder is not None:
        kept = ((place, folder.load(block.fingerprint, block.shape)) for place, block in enumerate(blocks))
        by_place = {place: part for place, part in kept if part is not None}
    # The largest first: no thread is left with one of them at the end.
    left = sorted(set(range(len(blocks))) - set(by_place), key=lambda place: -blocks[place].work)
    stop = threading.Event()
    with progress_bar(sum(blocks[place].work for place in left), shown=shown) as add:

        def part(place: int) -> FloatArray:
            result = blocks[place].computed(add, stop)
            if folder is not None and not stop.is_set():
                folder.save(blocks[place].fingerprint, result)
            return result

        if threads == 1 or len(left) < 2:
            by_place |= {place: part(place) for place in left}
        else:
            by_place |= _in_threads(part, left, threads, stop)
    return [by_place[place] for place in range(len(blocks))]


def _in_threads(
    part: Callable[[int], FloatArray], places: Iterable[int], threads: int, stop: threading.Event
) -> dict[int, FloatArray]:
    with ThreadPoolExecutor(threads) as pool:
        futures = {pool.submit(part, place): place for place in places}
        try:
            return {futures[future]: future.result() for future in as_completed(futures)}
        except BaseException:  # also Ctrl-C: what is left is not worth waiting for, and ends at its next piece
            stop.set()
            raise


def _table(
    plan: StudyPlan,
    variable: Variable,
    parts: list[tuple[Block, FloatArray]],
    losses: tuple[float, ...],
    wanted: tuple[str, ...],
) -> pd.DataFrame:
    """The rows of one column: statistics outside, then samples, eps inside."""
    measured = np.concatenate([part for _, part in parts], axis=2)
    eps = np.array(losses)
    sizes = np.concatenate([np.full(block.repetitions, block.size, dtype=np.int64) for block, _ in parts])
    shares = np.array([variable.sizes[int(size)] for size in sizes])
    repeats = np.concatenate([np.arange(block.repetitions, dtype=np.int64) for block, _ in parts])
    shape = (len(plan.statistics), len(sizes), len(eps))
    n = sizes[np.newaxis, :, np.newaxis]
    whole = np.array([statistic.global_sensitivity(variable.universe) for statistic in plan.statistics])
    noise, risks = plan.measures.risks(measured, n, variable.universe, losses)

    def spread(values: Any) -> Any:
        return np.broadcast_to(values, shape).ravel()

    labels, names = (np.empty(len(plan.statistics), dtype=object) for _ in range(2))
    labels[:] = [statistic.label for statistic in plan.statistics]
    names[:] = plan.measures.mechanisms
    column = np.empty(1, dtype=object)
    column[0] = variable.column
    return pd.DataFrame(
        {
            "column": pd.Series(spread(column)).infer_objects(),
            "statistic": pd.Series(spread(labels[:, np.newaxis, np.newaxis])).infer_objects(),
            "mechanism": pd.Series(spread(names[:, np.newaxis, np.newaxis])).infer_objects(),
            "sample_size": spread(n),
            "proportion": spread(shares[:, np.newaxis]),
            "repetition": spread(repeats[:, np.newaxis]),
            "eps": spread(eps),
            "n": spread(n),
            "global_sensitivity": spread(whole[:, np.newaxis, np.newaxis]),
            "local_sensitivity": spread(measured[0][..., np.newaxis]),
            "noise95": spread(noise),
            **{name: spread(risks[name]) for name in wanted},
        }
    )


def _attrs(plan: StudyPlan, chosen: list[Variable], ddof: int) -> dict[Hashable | None, Any]:
    """Plain values: pandas writes attrs to Parquet as JSON."""
    about: list[dict[str, Any]] = [
        {
            "column": plain_label(variable.column),
            "bounds": [variable.universe.lo, variable.universe.hi],
            "bounds_from": variable.bounds_from,
            "values": len(variable.values),
            "median_at": (float(np.median(variable.values)) - variable.universe.lo) / variable.universe.width,
            "sampling95": {
                statistic.label: error
                for statistic in plan.statistics
                if not math.isnan(error := sampling95(statistic, variable.values))
            },
        }
        for variable in chosen
    ]
    return {
        ATTRIBUTE: json.dumps(EXACT),
        "study": {"seed": plan.seed, "repetitions": plan.repetitions, "ddof": ddof, "columns": about},
    }
