"""Simulated attacks on noisy answers, and their success beside the risk that was claimed.

Each attack simulates an attacker many times. It gives an `Outcome`, or several if it compares ways to publish: the
claim, the success with its Clopper-Pearson interval, a verdict, a picture and the same as text.
"""

from pdrisk._core.risks.binomial import clopper_pearson
from pdrisk.attack._averaging import averaging
from pdrisk.attack._black_box import epsilon_lower_bound
from pdrisk.attack._disclosure import attribute_disclosure, intersection
from pdrisk.attack._informed import many_worlds, two_worlds
from pdrisk.attack._ledger import ledger
from pdrisk.attack._membership import membership
from pdrisk.attack._outcome import Outcome, Outcomes
from pdrisk.attack._reconstruction import reconstruction
from pdrisk.attack._trackers import differencing, tracker

__all__ = [
    "Outcome",
    "Outcomes",
    "attribute_disclosure",
    "averaging",
    "clopper_pearson",
    "differencing",
    "epsilon_lower_bound",
    "intersection",
    "ledger",
    "many_worlds",
    "membership",
    "reconstruction",
    "tracker",
    "two_worlds",
]
