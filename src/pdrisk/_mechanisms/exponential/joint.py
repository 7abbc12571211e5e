"""Joint choice of several points by the worst of their scores: an order statistic and the ends of its interval."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from pdrisk._core.cells import Cells
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._mechanisms.exponential.choosing import chosen_items, uniform_below
from pdrisk._mechanisms.exponential.items import Items, items_of
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score, Weights
from pdrisk._mechanisms.noise.entropy import Bits


@dataclass(frozen=True, slots=True)
class Spare:
    """Candidate beside the points that means one of them: the best one where a target lies beyond all records."""

    point: int  # what it means
    # `slope`, `offset`: of n records its score is ``max(0, slope n - offset)``; it has the least number of
    # places
    slope: int
    offset: int

    def score(self, n: IntArray) -> IntArray:
        """Its score in groups of so many records."""
        return np.maximum(self.slope * n - self.offset, 0)


@dataclass(frozen=True, slots=True)
class Target:
    """What one of the points is asked for."""

    score: Score
    spare: Spare | None = None


@dataclass(frozen=True)
class Joint:
    """Choice of a point for each target, with weights that fall with the largest of their scores.

    Notes
    -----
    A record moves the score of every point, as an answer to any target, within ``[-down, up]``, those of the largest
    moves; so it moves the largest of several scores within it, and what `Weights` says of points holds for tuples of
    points, whose places are the products of their points' places.

    With W for the weights, 0 after the last, ``W[h]`` is the sum of ``W[t] - W[t + 1]`` for all levels t from h on. So
    a level is chosen first, t with probability in proportion to ``W[t] - W[t + 1]`` times the product of the numbers of
    places that score t or better for each target; and then, for each target, one of these places.
    """

    targets: tuple[Target, ...]
    measure: Measure
    eps: Fraction

    @property
    def outcomes(self) -> int:
        """Sum of the places of all tuples over the least, rounded up."""
        return (self.measure.spread + 1) ** len(self.targets)

    @cached_property
    def weights(self) -> Weights:
        """The weights of the scores."""
        scores = [target.score for target in self.targets]
        return Weights.of_all(scores, self.outcomes, self.eps)

    def levels(self, cells: Cells) -> Levels:
        """The levels in these cells."""
        key = self, "levels"
        if key not in cells.derived:
            cells.derived[key] = Levels.of(self, cells)
        levels: Levels = cells.derived[key]
        return levels

    def drawn(self, cells: Cells, bits: Bits) -> IntArray:
        """A point for each target and group, shape (targets, G)."""
        levels = self.levels(cells)
        at = chosen_items(levels.mass.copy(), levels.group, levels.first, levels.exact, bits)
        index = levels.index[at]
        rows = []
        for target, items, scored, places, spare in zip(
            self.targets, levels.items, levels.scored, levels.places, levels.spares, strict=True
        ):
            good = (scored <= index[items.group]) & (items.width > 0)
            start = np.where(good, self.measure.before(items.start), self.measure.total)
            start = np.minimum.reduceat(start, items.first[:-1])  # of the one run of such points
            place = uniform_below(places[at], bits)
            if target.spare is None:
                rows.append(self.measure.point(start + place))
                continue
            spare_places = np.where(spare <= index, self.measure.least, 0)
            point = self.measure.point(np.minimum(start + np.maximum(place - spare_places, 0), self.measure.total - 1))
            rows.append(np.where(place < spare_places, target.spare.point, point))
        return np.stack(rows)

    def masses(self, cells: Cells, row: int) -> tuple[Items, FloatArray, FloatArray]:
        """Items of one target, their probabilities, and the spare candidate's, shape (G,).

        They are times one number of each group. A place that scores h is chosen with the levels from h on, in each as
        likely as all others.
        """
        levels = self.levels(cells)
        share = levels.mass / np.maximum(levels.places[row], 1)
        share /= np.maximum.reduceat(share, levels.first[:-1])[levels.group]
        sums = np.cumsum(share[::-1])[::-1]
        after = np.append(sums, 0.0)[levels.first[1:]]
        share = sums - after[levels.group]
        items = levels.items[row]
        mass = share[levels.at(items.group, levels.scored[row])] * items.places
        spare, groups = levels.spares[row], np.arange(len(items.n))
        return items, mass, np.where(spare < 0, 0.0, share[levels.at(groups, spare)] * self.measure.least)

    def log_shares(self, cells: Cells, drawn: IntArray) -> FloatArray:
        """Log-probability of tuples of points, shape (targets, draws), in each group, shape (G, draws)."""
        levels, table = self.levels(cells), np.append(self.weights.shares, 0.0)
        last = len(table) - 1
        whole = np.log(np.add.reduceat(levels.mass, levels.first[:-1]))
        logs = np.empty((len(whole), drawn.shape[1]))
        for group in range(len(logs)):
            ways = []  # of each row: as a point, and as the spare candidate
            for row, (target, points) in enumerate(zip(self.targets, drawn, strict=True)):
                items = levels.items[row]
                part = slice(int(items.first[group]), int(items.first[group + 1]))
                some = items.width[part] > 0
                at = np.searchsorted(items.start[part][some], points, side="right") - 1
                scored = levels.scored[row][part][some][at]
                ways.append([(scored, self.measure.before(points + 1) - self.measure.before(points))])
                if target.spare is not None:
                    spare = np.where(points == target.spare.point, levels.spares[row][group], last)
                    ways[-1].append((spare, np.full(len(points), self.measure.least)))
            held = np.zeros(drawn.shape[1])
            for way in itertools.product(*ways):
                share = table[np.max([index for index, _ in way], axis=0)]
                held += share * np.prod([places.astype(np.float64) for _, places in way], axis=0)
            logs[group] = np.log(held) - whole[group]
        return logs

    def loss(self, first: Cells, second: Cells) -> float:
        """Largest log-ratio of the probabilities of all tuples in two worlds, added up over groups.

        The ratio is largest for a tuple in which one point is the worst in the second world, and the others are the
        best in the first: if they are worse than it in the second, they are that one.
        """
        worlds = self.levels(first), self.levels(second)
        logs = np.log(self.weights.shares)
        whole = [np.log(np.add.reduceat(world.mass, world.first[:-1])) for world in worlds]
        total = 0.0
        for group in range(len(whole[0])):
            indices = [self._indices(worlds, row, group) for row in range(len(self.targets))]
            shift, worst = whole[1][group] - whole[0][group], 0.0
            for one, other, sign in ((0, 1, 1), (1, 0, -1)):
                best = [pair[one].min() for pair in indices]
                for row, row_pair in enumerate(indices):
                    others = max((index for at, index in enumerate(best) if at != row), default=0)
                    apart = logs[np.maximum(row_pair[one], others)] - logs[row_pair[other]]
                    worst = max(worst, float(apart.max() + sign * shift))
            total += worst
        return total

    def _indices(self, worlds: tuple[Levels, Levels], row: int, group: int) -> tuple[IntArray, IntArray]:
        """Where the weights of each run of points, and of the spare candidate, stand in the table in two worlds."""
        runs = []
        for levels in worlds:
            items = levels.items[row]
            part = slice(int(items.first[group]), int(items.first[group + 1]))
            some = items.places[part] > 0
            runs.append((items.start[part][some], levels.scored[row][part][some], levels.spares[row][group]))
        starts = self.measure.before(np.concatenate([start for start, _, _ in runs]))
        starts = self.measure.point(np.unique(starts))  # the first points of each run that have places
        one, other = (
            np.append(scored[np.maximum(np.searchsorted(start, starts, side="right") - 1, 0)], max(spare, 0))
            for start, scored, spare in runs
        )
        return (one[:-1], other[:-1]) if self.targets[row].spare is None else (one, other)


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels of G groups between which the numbers of places change, in their order."""

    # `group`, `index`: the group, and where the level's weight stands in the table; shape (m,)
    group: IntArray
    index: IntArray
    first: IntArray  # where each group begins, and the end; shape (G + 1,)
    places: tuple[IntArray, ...]  # for each target the number of places that score so or better; shape (m,)
    # weight of the levels up to the next one here, in units of the largest weight, times the places of all
    # targets; shape (m,)
    mass: FloatArray
    # `items`, `scored`, `spares`: for each target its items, where their weights stand in the table, and where
    # the spare candidate's does in each group; -1 without one
    items: tuple[Items, ...]
    scored: tuple[IntArray, ...]
    spares: tuple[IntArray, ...]
    drops: list[int]  # weights of the levels up to the next one here, exactly
    size: int  # length of the table

    @classmethod
    def of(cls, joint: Joint, cells: Cells) -> Levels:
        """The levels of a choice."""
        weights, measure = joint.weights, joint.measure
        size = len(weights.table)
        parts, keys, counts = [], [], []
        for target in joint.targets:
            items = items_of(cells, target.score, weights, measure)
            index = weights.index(target.score.of(items.less, items.up_to, target.score.target(items.n)[items.group]))
            groups = np.arange(len(items.n))
            spare = np.full(len(groups), -1) if target.spare is None else weights.index(target.spare.score(items.n))
            key, count = items.group * size + index, items.places
            if target.spare is not None:
                key = np.append(key, groups * size + spare)
                count = np.append(count, np.full(len(groups), measure.least))
            order = np.argsort(key[count > 0], kind="stable")
            keys.append(key[count > 0][order])
            counts.append(np.concatenate([[0], np.cumsum(count[count > 0][order])]))  # modulo 2**64, as differences are
            parts.append((items, index, spare))
        levels = np.unique(np.concatenate(keys))
        group, at = np.divmod(levels, size)
        first = np.searchsorted(group, np.arange(len(cells.first)))
        places = tuple(
            total[np.searchsorted(key, levels, side="right")] - total[np.searchsorted(key, group * size)]
            for key, total in zip(keys, counts, strict=True)
        )
        beyond = np.append(at, size)[1:]
        beyond[first[1:] - 1] = size
        table = (*weights.table, 0)
        drops = [table[one] - table[other] for one, other in zip(at.tolist(), beyond.tolist(), strict=True)]
        mass = np.array([drop / table[0] for drop in drops])  # Python's division of integers rounds once
        for place in places:
            mass *= place
        items, scored, spares = zip(*parts, strict=True)
        return cls(group, at, first, places, mass, items, scored, spares, drops, size)

    def at(self, group: IntArray, index: IntArray) -> IntArray:
        """Where the levels of groups stand here."""
        position = np.searchsorted(self.group * self.size + self.index, group * self.size + index)
        return np.minimum(position, len(self.index) - 1)

    def exact(self, part: slice) -> list[int]:
        """The masses of some levels as whole numbers."""
        masses = self.drops[part]
        for places in self.places:
            masses = [mass * number for mass, number in zip(masses, places[part].tolist(), strict=True)]
        return masses
