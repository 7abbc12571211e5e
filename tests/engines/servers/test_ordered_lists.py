"""Lists of records that a server gives for each group."""

import itertools

import numpy as np

from pdrisk.engines.sql.summary.order_lists import Lists


def test_each_list_is_put_in_order():
    for sizes in itertools.product((0, 1, 3), repeat=3):
        first = np.concatenate([[0], np.cumsum(sizes)])
        for values in itertools.islice(itertools.product((0.0, 1.0, 2.0), repeat=sum(sizes)), 0, None, 7):
            found = Lists(np.array(values), first).ascending()
            wanted = [x for a, b in itertools.pairwise(first) for x in sorted(values[a:b])]
            assert (found.values.tolist(), found.first.tolist()) == (wanted, first.tolist())
