"""Noise is fresh: no value's noise tells another's."""

import itertools
import math
import os
import random
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from noisy_answers import DRAWS, STATISTICS, answers
from pdrisk._mechanisms import discrete_laplace

pytestmark = [pytest.mark.system_entropy, pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")]


class TestFreshness:
    """Every value has its own noise: over groups, calls, seeds and processes."""

    BITS = 0.03  # Hoeffding: agreement of n fair, independent bits is off by more with 2 exp(-2 n .03**2) = 5e-16

    def bits(self, draws):
        """Two fair coins in each draw: its sign, and whether it is beyond the median distance."""
        scale = STATISTICS["mean"][-1]
        return [draws > 4.0, np.abs(draws - 4.0) > scale * math.log(2)]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
    def test_a_process_forked_while_another_thread_draws(self):
        """It draws itself; a lock that the other thread held, and nobody would free, would stop it forever."""
        code = """
import os, signal, threading, time
import pandas as pd, pdrisk

frame, drawing = pd.DataFrame({"x": [1.0] * 9}), threading.Event()

def draw():
    drawing.set()
    ended = time.monotonic() + 0.5
    while time.monotonic() < ended:
        frame.dprisk.count(eps=1)

thread = threading.Thread(target=draw)
thread.start()
drawing.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    frame.dprisk.count(eps=1)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), frame.dprisk.count(eps=1e6).value)
"""
        found = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, timeout=60
        )
        assert found.stdout.split() == ["7", "9"]

    @pytest.mark.slow
    def test_groups_and_calls_are_independent(self):
        first, second = (answers("mean", 1)["value"].to_numpy() for _ in range(2))
        pairs = [(first, second)] + [(first[lag:], first[:-lag]) for lag in (1, 2, 3, 4, 8, 16, 64, 256, 1024)]
        for one, other in pairs:
            for a, b in itertools.product(self.bits(one), self.bits(other)):
                assert abs((a == b).mean() - 0.5) < self.BITS
        for bit in self.bits(first):
            assert abs(bit.mean() - 0.5) < self.BITS
        assert abs((self.bits(first)[0] == self.bits(first)[1]).mean() - 0.5) < self.BITS

    def test_the_two_sums_of_a_mean_are_independent(self):
        noise = discrete_laplace(np.zeros((2, DRAWS), dtype=np.int64), 2**30, Fraction(1)) / 2**30
        one, other = (self.bits(each * STATISTICS["mean"][-1] + 4.0) for each in noise)
        for a, b in itertools.product(one, other):
            assert abs((a == b).mean() - 0.5) < self.BITS

    def test_no_value_comes_twice(self):
        # At eps=1e-6 two draws are equal with a probability of 1/(4 scale) = 1e-16: 6e-11 for 1000 draws.
        values = np.concatenate([answers("mean", 1e-6, keys=250)["value"].to_numpy() for _ in range(4)])
        assert len(np.unique(values)) == 1000

    def test_no_seed_repeats_a_value(self):
        series, values = pd.Series([1.0, 5.0]), []
        for _ in range(10):
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002
            values.append(series.dprisk.mean(eps=1e-6, bounds=(0, 10), mechanism="laplace").value)
        assert len(set(values)) == 10

    def test_forked_and_fresh_processes_draw_their_own(self):
        program = (
            "import os, pandas as pd, pdrisk, warnings; warnings.simplefilter('ignore')\n"
            "ask = lambda: repr(pd.Series([1.0]).dprisk.max(eps=1e-6, bounds=(0, 10), mechanism='laplace').value)\n"
            "print(ask(), flush=True)\n"
            "for _ in range(4):\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        print(ask(), ask(), flush=True); os._exit(0)\n"
            "    os.waitpid(child, 0)\n"
            "print(ask())\n"
        )
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        seen = []
        for _ in range(2):
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
            assert done.returncode == 0, done.stderr
            seen += done.stdout.split()
        assert len(seen) == len(set(seen)) == 20
