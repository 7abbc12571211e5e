"""Smallest and largest records of files: no further scan for them, and no other answer."""

import sys

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk.engines.sql.dialects.dialect import BY_RECORD
from pdrisk.engines.sql.servers.duckdb_engine import run_there
from pdrisk.engines.sql.summary import aggregates


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A file with what sorts oddly, NaN and infinities among it."""
    frame = pd.DataFrame({"x": [3.0, np.nan, -np.inf, 7.5, np.inf, -2.0, 7.5, 120.0] * 40})
    path = str(tmp_path_factory.mktemp("ends") / "x.parquet")
    frame.to_parquet(path)
    return path, frame


class TestEndsOfFiles:
    """A file is read once, a stored table by its blocks."""

    @pytest.mark.parametrize("name", ["mean", "max", "min", "median", "var"])
    def test_the_curator_sees_the_same(self, stored, name, monkeypatch) -> None:
        path, frame = stored
        told = []
        for alias in (BY_RECORD, "no source has this in it"):
            monkeypatch.setattr(aggregates, "BY_RECORD", alias)
            told.append(getattr(pdrisk.Dataset(path, bounds={"x": (0, 100)}), name)("x", eps=1).curator)
        told.append(getattr(frame.dprisk, name)("x", eps=1, bounds=(0, 100)).curator)
        facts = [(each.n, each.local_sensitivity, each.clamped) for each in told]
        assert facts[0] == facts[1] == facts[2]

    @pytest.mark.parametrize("is_file", [True, False])
    def test_statements(self, stored, monkeypatch, is_file) -> None:
        sent = []

        def noting(connection, sql, values, read):
            sent.append(sql)
            return run_there(connection, sql, values, read)

        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT range::DOUBLE AS x FROM range(100)")
        data = pdrisk.Dataset(stored[0] if is_file else (con, "t"), bounds={"x": (0, 100)})
        own = [module for name, module in sys.modules.items() if name.startswith("pdrisk.")]
        for module in [each for each in own if getattr(each, "run_there", None) is run_there]:
            monkeypatch.setattr(module, "run_there", noting)
        data.mean("x", eps=1, curator=True)
        assert sum(text.count("ORDER BY") for text in sent) == (0 if is_file else 2)
