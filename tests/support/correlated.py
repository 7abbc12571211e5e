"""What engines read of several columns for the release of all their correlations."""

from dataclasses import replace

import numpy as np

from pdrisk._core.pairs import CorrAmong
from pdrisk._core.products import products_of_places
from pdrisk._core.summary import Summary


def summarised(places):
    """The summary of records at these places, shape (n, k), with those of every two columns."""
    places = np.asarray(places, dtype=np.int64).reshape(len(places), -1)
    pairs = CorrAmong.all_of(places.shape[1])
    sums = [
        products_of_places(places[:, each.first], places[:, each.second], (2, 2)).sum(axis=1)[:, None] for each in pairs
    ]
    together = tuple(Summary(np.array([len(places)]), products={(2, 2): own}) for own in sums)
    return replace(together[0], together=together)


def repeated(summary, times):
    """The same records in so many groups."""
    groups = np.zeros(times, dtype=np.int64)
    return replace(summary.of_rows(groups), together=tuple(own.of_rows(groups) for own in summary.together))
