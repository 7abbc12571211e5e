"""Spark on this machine, for tests that need it: started once, and small."""

import importlib.util
import os
import shutil
import sys

import pytest

needs_spark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or not (shutil.which("java") or os.environ.get("JAVA_HOME")),
    reason="no Spark: it takes pip install 'pdrisk[spark]' and Java 17",
)

CONFIGURATION = {
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "America/St_Johns",  # half an hour off: no answer may depend on it
}


CONNECT = os.environ.get("PDRISK_TEST_SPARK") == "connect"  # as .ci/spark-connect sets it
MASTER = "local[2, 4]"  # a task that fails is tried four times


def session():
    """The session of these tests, classic, or of Spark Connect with a server of its own."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of tasks that run Python: tests' own
    builder = SparkSession.builder.remote(MASTER) if CONNECT else SparkSession.builder.master(MASTER)
    for name, value in CONFIGURATION.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
