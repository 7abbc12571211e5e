"""Random SQL questions about several tables, in which all rows of one person are there or not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

import pdrisk
from pdrisk._audit.questions import AuditQuestion, Generator, shuffled

EPS: Final = (0.5, 1.0, 2.0)
BOUNDS: Final = {"days": (0, 8), "dose": (-1, 2), "age": (0, 90), "n": (0, 12)}
CODES: Final = ["a", "b", "c"]
PUBLIC: Final = {
    "codes": pd.DataFrame({"code": CODES, "chapter": ["I", "I", "II"]}),
    "words": pd.DataFrame({"code": ["a", "a", "b", None], "word": ["cold", "cough", "flu", "none"]}),
}
# What stands after FROM, a column of numbers in it, and who a person is.
RELATIONS: Final = (
    ("patients p JOIN stays s ON p.pid = s.pid", "days", "p.pid"),
    ("patients p JOIN stays s USING (pid) JOIN drugs d USING (pid)", "days", "pid"),
    ("patients p LEFT JOIN drugs d USING (pid)", "age", "pid"),
    ("patients p JOIN stays s USING (pid) SEMI JOIN drugs d USING (pid)", "days", "pid"),
    ("stays s JOIN drugs d USING (pid)", "dose", "pid"),
    ("stays s JOIN codes c ON s.code = c.code", "days", "pid"),
    ("stays s JOIN words w ON s.code = w.code", "days", "pid"),
    ("stays s ANTI JOIN drugs d ON s.pid = d.pid AND d.dose > 0", "days", "s.pid"),
    ("patients WHERE pid IN (SELECT pid FROM stays WHERE code = 'a')", "age", "pid"),
    ("patients p WHERE NOT EXISTS (SELECT 1 FROM drugs d WHERE d.pid = p.pid)", "age", "pid"),
    ("stays a JOIN stays b ON a.pid = b.pid AND a.code <> b.code", "a.days", "a.pid"),
    ("(SELECT pid, days FROM stays UNION ALL SELECT pid, age AS days FROM patients) AS u", "days", "pid"),
    ("(SELECT pid, COUNT(*) AS n FROM stays GROUP BY pid) AS t JOIN drugs d USING (pid)", "n", "pid"),
    ("(SELECT pid, SUM(days) AS n FROM stays GROUP BY pid HAVING MEDIAN(days) > 1) AS t", "n", "pid"),
    ("(SELECT *, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY code) AS rn FROM stays) WHERE rn <= 2", "days", "pid"),
    ("(SELECT pid, days - LAG(days) OVER (PARTITION BY pid ORDER BY days) AS n FROM stays) AS t", "n", "pid"),
)
GROUPED: Final = 4  # of these, the first, have the sex of patients
AGGREGATES: Final = ("COUNT({x})", "SUM({x})", "AVG({x})", "MEDIAN({x})", "MAX({x})", "VAR_SAMP({x})")
OF_ROWS: Final = ("COUNT(*)", "SUM(DISTINCT {x})", "COUNT(DISTINCT {x})", "COUNT(*), AVG({x})")
WAYS: Final = ("mean", "sum", "max")


def random_join(generator: Generator) -> AuditQuestion:
    """A random question about several random tables, and the same tables without the rows of one person."""
    tables = _tables(generator)
    person = int(generator.integers(len(tables["patients"])))
    rest = {
        name: shuffled(generator, frame[~(frame["pid"] == person).to_numpy(dtype=bool, na_value=False)])
        for name, frame in tables.items()
    }
    at = int(generator.integers(len(RELATIONS)))
    relation, x, owner = RELATIONS[at]
    name = x.rpartition(".")[2]
    options: dict[str, Any] = {
        "eps": EPS[generator.integers(len(EPS))],
        "person": "pid",
        "bounds": {name: BOUNDS[name]},
    }
    kind = generator.random()
    if kind < 0.2:
        aggregate = f"COUNT(DISTINCT {owner})"
    elif kind < 0.4:
        aggregate = AGGREGATES[generator.integers(len(AGGREGATES))]
        options["per_person"] = WAYS[generator.integers(len(WAYS))]
    else:
        listed = (*AGGREGATES, *OF_ROWS)
        aggregate = listed[generator.integers(len(listed))]
        few = {"stays": int(generator.integers(1, 4)), "drugs": int(generator.integers(1, 3))}
        known = {"rows": few, "per_person": {"patients": "one"}}
        options |= known if kind < 0.7 else {"rows": int(generator.integers(1, 5))}
    written = f"SELECT {aggregate.format(x=x)} FROM {relation}"
    if at < GROUPED and generator.random() < 0.4:
        written = written.replace("SELECT ", "SELECT p.sex, ", 1) + " GROUP BY p.sex"
        options |= {"keys": ["f", "m", "q"], "constant": {"patients": ["sex"]}}
    if generator.random() < 0.3:
        options["mechanism"] = "laplace"
    words = f"{written} {options}, of {len(tables['patients'])} patients"
    return AuditQuestion(
        words, lambda data: pdrisk.sql(written, tables=data, public=PUBLIC, **options), rest, tables, options["eps"]
    )


def _tables(generator: Generator) -> dict[str, pd.DataFrame]:
    """Patients with one row each (or two by mistake), up to four stays and drugs each, and rows without a patient."""
    people = int(generator.choice([1, 2, 4, 9, 25]))
    patients = pd.DataFrame({"pid": np.arange(people), "age": generator.integers(0, 90, people)})
    patients["sex"] = generator.choice(["f", "m"], people)
    if generator.random() < 0.2:
        patients = pd.concat([patients, patients.iloc[:1].assign(age=7)], ignore_index=True)

    def several() -> pd.DataFrame:
        pid = np.repeat(np.arange(people + 1), generator.integers(0, 5, people + 1))
        return pd.DataFrame({"pid": pd.Series(pid, dtype="Int64").where(generator.random(len(pid)) > 0.05)})

    stays, drugs = several(), several()
    stays["code"] = generator.choice(np.array([*CODES, None], dtype=object), len(stays))
    stays["days"] = generator.integers(-1, 10, len(stays))
    drugs["dose"] = generator.choice([-0.0, 0.0, 1.5, 9.0, np.nan], len(drugs))
    return {"patients": patients.astype({"pid": "Int64"}), "stays": stays, "drugs": drugs}
