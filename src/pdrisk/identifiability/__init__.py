"""Differential identifiability (Lee & Clifton 2011, 2012): possible worlds, and what an answer tells about them.

An attacker who knows all but one of the people in the data thinks of every world the data could be, and compares the
answers of these worlds with the noisy one. All of this is computed from the data without noise: for the curator only.

>>> worlds = worlds_with([1, 3], universe=range(1, 11))         # Lee & Clifton 2012, section 4
>>> found = of_worlds(worlds, risk=1 / 3)
>>> found.worlds, round(found.scale, 4), round(found.exact, 4), round(found.tight_eps, 4)
(8, 2.1286, 0.2294, 2.2496)
"""

from pdrisk.identifiability.possible import worlds_with, worlds_without_one
from pdrisk.identifiability.result import Identifiability, of_worlds

__all__ = ["Identifiability", "of_worlds", "worlds_with", "worlds_without_one"]
