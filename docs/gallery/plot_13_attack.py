"""
Tracker attack
==============

A simulated attack on counts about a synthetic survey: does this person work more than eight hours a day? You learn why
refusing small groups protects nobody, and what noise does.
"""

import matplotlib.pyplot as plt
import pandas as pd

import pdrisk
from pdrisk import attack

survey = pdrisk.datasets.soep_like(missing="nan")  # nobody in it is real
survey["long_hours"] = survey["hours"] > 8
person = {"sex": "female", "age": 23, "state": "Bremen"}
survey.merge(pd.DataFrame([person]))

# %%
# The attacker subtracts one large count from another; the difference is one person. The counts are exact, rounded to
# tens, restricted to five people or more, or noisy. Rounding protects only by luck, if both counts round alike.
found = attack.tracker(survey, person, "long_hours", eps=0.5)
found.table.round(3)

# %%
# Each attack was simulated thousands of times. The black mark is what no attack on the noisy counts can exceed.
_, axes = plt.subplots(figsize=(5, 2.4), dpi=150, layout="constrained")
axes.barh(found.table.index, 100 * found.table["achieved"], color=["#D55E00"] * 3 + ["#0072B2"], height=0.6)
axes.axvline(50, color="#666666", linestyle="--", label="a coin")
axes.plot(100 * found["noisy"].claimed, "noisy", "|", color="black", markersize=22, label="claimed, at most")
axes.set(xlabel="attacker is right, of 100 times", xlim=(0, 102))
axes.invert_yaxis()
axes.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
plt.show()
