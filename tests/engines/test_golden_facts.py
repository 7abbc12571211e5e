"""The curator's facts of 480 questions are those that pdrisk gave before its second edition, on both engines."""

import itertools
import json

import numpy as np
import pytest

import pdrisk
from paths import GOLDEN
from sql_people import BOUNDS, PEOPLE, REGIONS

EPS = 0.7
FACTS = ("n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability")
STATISTICS = {
    "count": "COUNT({})",
    "sum": "SUM({})",
    "mean": "AVG({})",
    "median": "MEDIAN({})",
    "quantile(0.25)": "QUANTILE_CONT({}, 0.25)",
    "min": "MIN({})",
    "max": "MAX({})",
    "var": "VAR_SAMP({})",
    "var(ddof=0)": "VAR_POP({})",
    "std": "STDDEV_SAMP({})",
}
SPECS = {"quantile(0.25)": ("quantile", {"q": 0.25}), "var(ddof=0)": ("var", {"ddof": 0})}
WHERE = {
    "": "",
    "age > 40": "age > 40",
    "region == 'north'": "region = 'north'",
    "distance > 50 and sex == 'f'": "distance > 50 AND sex = 'f'",
}
BY = {
    "": None,
    "region": REGIONS,
    "region, sex": list(itertools.product(REGIONS, ["f", "m"])),
}
EARLIER = json.loads((GOLDEN / "facts.json").read_text(encoding="utf-8"))


def by_pandas(column, where, by):
    """Facts of every statistic, shape (statistics, groups, facts)."""
    table = PEOPLE.dprisk.assess(
        column, [SPECS.get(name, name) for name in STATISTICS], EPS, bounds=BOUNDS[column], where=where or None,
        by=by.split(", ") if by else None, keys=BY[by], mechanism="laplace",
    )  # fmt: skip
    return table[list(FACTS)].to_numpy(dtype=float).reshape(len(STATISTICS), -1, len(FACTS))


def by_duckdb(column, where, by):
    """The same, asked in SQL."""
    asked = ", ".join(f"{form.format(column)} AS s{at}" for at, form in enumerate(STATISTICS.values()))
    query = (
        f"SELECT {asked} FROM people" + (f" WHERE {WHERE[where]}" if where else "") + (f" GROUP BY {by}" if by else "")
    )
    table = pdrisk.sql(
        query, eps=EPS * len(STATISTICS), bounds=BOUNDS, keys=BY[by], mechanism="laplace", curator=True, people=PEOPLE
    )
    return np.array([table[[f"s{at}_{fact}" for fact in FACTS]].to_numpy(dtype=float) for at in range(len(STATISTICS))])


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("column", BOUNDS)
@pytest.mark.parametrize("asked", [by_pandas, by_duckdb])
def test_facts(asked, column, where, by):
    expected = np.array(EARLIER[f"{column} | {where} | {by}"], dtype=float)
    np.testing.assert_allclose(asked(column, where, by), expected, rtol=1e-9, atol=1e-12)
