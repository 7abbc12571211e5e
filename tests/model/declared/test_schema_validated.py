"""Validation is pandera's: pdrisk listens, whichever is imported first, and never changes or stops it."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from pandera.errors import SchemaError, SchemaErrors

import pdrisk
from ledgers import typed
from pdrisk._pandas.requests import declared, validated
from schemas import marked, schema_of

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

C = pa.Check
EXACT = 1e9

START = "import pandas as pd\nframe = pd.DataFrame({'x': [1, 2, 3]})\n"
VALIDATE = "frame = pa.DataFrameSchema({'x': pa.Column(int, pa.Check.in_range(0, 9))}).validate(frame)\n"
ASK = "print(frame.query('x > 1').dprisk.mean('x', eps=1e9).bounds)"
OLD_FINDER = "class Finder:\n    def find_module(self, name, path=None):\n        pass\n"
ORDERS = {
    "pandera first": "import pandera.pandas as pa\nimport pdrisk\n" + VALIDATE,
    "pdrisk first": "import pdrisk\nimport pandera.pandas as pa\n" + VALIDATE,
    "another flavour first": "import pdrisk\nimport pandera.polars\nimport pandera.pandas as pa\n" + VALIDATE,
    "types first": "import pdrisk\nfrom pandera.typing import DataFrame\nimport pandera.pandas as pa\n" + VALIDATE,
    "pandera at work before": "import pandera.pandas as pa\n" + VALIDATE + "import pdrisk\n" + VALIDATE,
    "pdrisk within a function": "import pandera.pandas as pa\ndef f():\n    import pdrisk\nf()\n" + VALIDATE,
    "beside a finder of the old kind": OLD_FINDER + "import sys\nsys.meta_path.insert(0, Finder())\nimport pdrisk\n"
    "import pandera.pandas as pa\n" + VALIDATE,
    "looked for before": "import importlib.util\nimport pdrisk\n"
    "importlib.util.find_spec('pandera.accessors.pandas_accessor')\nimport pandera.pandas as pa\n" + VALIDATE,
}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


class TestImports:
    """The order of imports makes no difference, and pandera is imported by nobody but its users."""

    @pytest.mark.slow
    @pytest.mark.sampled(8)
    @pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
    def test_orders(self, order):
        assert run(START + order + ASK) == "(0.0, 9.0)"

    @pytest.mark.slow
    def test_validated_before_pdrisk_was_there(self):
        early = START + "import pandera.pandas as pa\n" + VALIDATE + "import pdrisk\n"
        assert run(early + ASK.replace(".query('x > 1')", "")) == "(0.0, 9.0)"

    @pytest.mark.slow
    def test_the_declaration_of_an_early_frame_travels(self):
        early = START + "import pandera.pandas as pa\n" + VALIDATE + "import pdrisk\n"
        assert run(early + "frame = frame.dprisk.declare(missing={'x': [3]})\n" + ASK) == "(0.0, 9.0)"

    @pytest.mark.slow
    def test_pandera_is_not_imported(self):
        asked = (
            "import pdrisk, sys\n"
            "frame = frame.dprisk.declare(bounds={'x': (0, 9)}, keys={'x': [1]}, missing={'x': [3]})\n"
            "frame.dprisk.mean('x', eps=1e9), frame.dprisk.declared, frame.dprisk.assess('x')\n"
            "pdrisk.sql('SELECT AVG(x) FROM frame', eps=1e9, frame=frame)\n"
            "print([name for name in sys.modules if name.split('.')[0] == 'pandera'])"
        )
        assert run(START + asked) == "[]"

    @pytest.mark.slow
    def test_without_pandera_everything_else_works(self):
        blocked = (
            "import sys\nsys.modules['pandera'] = None\nimport pdrisk\n"
            "frame = frame.dprisk.declare(bounds={'x': (0, 9)}, keys={'x': [2, 1]}, missing={'x': [3]})\n"
            "print(frame.query('x > 0').dprisk.mean('x', eps=1e9).bounds)\n"
            "print(frame.dprisk.count(eps=1e9, by='x').index.tolist(), len(frame.dprisk.declared))\n"
            "print(len(frame.dprisk.assess('x')), frame['x'].dprisk.individual_risk(eps=1).isna().tolist())\n"
            "print(pdrisk.sql('SELECT COUNT(x) AS n FROM frame', eps=1e9, frame=frame)['n'].round().tolist())\n"
            "for ask in (pdrisk.schema_for, pdrisk.datasets.soep_like_schema):\n"
            "    try:\n        ask()\n    except ImportError as error:\n        print('ImportError')\n"
            "try:\n    pdrisk.bounds_from({})\nexcept pdrisk.ColumnTypeError as error:\n    print('ColumnTypeError')\n"
        )
        lines = run(START + blocked).splitlines()
        assert lines[:2] == ["(0.0, 9.0)", "[2, 1] 1"]
        assert lines[2].endswith("[False, False, True]")
        assert lines[3:] == ["[2]", "ImportError", "ImportError", "ColumnTypeError"]

    def test_listening_twice_is_listening_once(self):
        from pandera.accessors.pandas_accessor import PanderaAccessor

        before = PanderaAccessor.add_schema
        finders = list(sys.meta_path)
        validated.watch()
        validated.watch()
        assert PanderaAccessor.add_schema is before
        assert before.__name__ == "add_schema"
        assert sys.meta_path == finders


def small() -> pd.DataFrame:
    return pd.DataFrame({"x": [1, 2, 3], "y": [4.0, np.nan, 6.0], "g": ["a", "b", "a"]})


DAY = pd.Timestamp("2020-01-02")
# What pdrisk cannot understand, or not of this column.
BROKEN = {
    "a misspelt name": pa.Column(metadata={"dprisk": {"bound": (0, 1)}}),
    "no dict": pa.Column(metadata={"dprisk": 5}),
    "a mark that is no dict": pa.Column(checks=C(lambda x: x > 0, statistics={"dprisk": 5})),
    "marks of two kinds": pa.Column(checks=[C(lambda x: x > 0, statistics={"dprisk": 5}), marked(bounds=(0, 9))]),
    "reversed bounds": pa.Column(metadata={"dprisk": {"bounds": (9, 0)}}),
    "an unequal list": pa.Column(metadata={"dprisk": {"keys": [[1, 2], [3]]}}),
    "a mark of two ends that meet not": pa.Column(checks=[C.ge(0), C.le(-1, raise_warning=True)]),
    "an object": pa.Column(metadata={"dprisk": {"keys": [object()]}}),
}


@pytest.mark.filterwarnings("ignore::pandera.errors.SchemaWarning")
class TestWhatIsNotUnderstood:
    """It does not stop a validation; whoever asks for the column is told, and nobody else."""

    @pytest.mark.parametrize("name", BROKEN)
    @pytest.mark.parametrize("step", [lambda frame: frame, pd.DataFrame.copy], ids=["at once", "later"])
    def test_the_column(self, name, step):
        schema = pa.DataFrameSchema(
            {"x": BROKEN[name], "y": pa.Column(checks=C.in_range(0, 9), nullable=True)}, name="s"
        )
        frame = schema.validate(small())
        pd.testing.assert_frame_equal(frame, small())
        frame = step(frame)
        for ask in (
            lambda: frame.dprisk.mean("x", eps=1),
            lambda: frame.dprisk.max("x", eps=1, bounds=(0, 1)),
            lambda: frame["x"].dprisk.count(eps=1),
            lambda: frame.dprisk.count(eps=1, by="x", keys=[1]),
            lambda: frame.dprisk.count(eps=1, where="x > 1"),
            lambda: frame.dprisk.assess(["y", "x"]),
            lambda: frame.dprisk.declare(bounds={"x": (0, 9)}),
            lambda: small().dprisk.declare(schema),
        ):
            with pytest.raises(pdrisk.ParameterError, match="'x'") as caught:
                ask()
            assert (caught.value.__cause__, caught.value.__context__) == (None, None)
        assert "column 'x' of the schema 's'" in frame.dprisk.declared.loc["x", "source"]

    @pytest.mark.parametrize("name", BROKEN)
    @pytest.mark.parametrize("step", [lambda frame: frame, pd.DataFrame.copy], ids=["at once", "later"])
    def test_other_columns(self, name, step):
        schema = pa.DataFrameSchema({"x": BROKEN[name], "y": pa.Column(checks=C.in_range(0, 9), nullable=True)})
        frame = step(schema.validate(small()))
        assert frame.dprisk.mean("y", eps=EXACT).bounds == (0, 9)
        assert frame.dprisk.count("y", eps=EXACT, by="g", keys=["a", "b"], where="y > 4", curator=True)[
            "n"
        ].tolist() == [1, 0]
        assert frame.dprisk.count(eps=EXACT).curator.n == 3
        assert frame[["y"]].dprisk.declared.index.tolist() == ["y"]

    def test_bounds_beyond_the_range_concern_whoever_needs_bounds(self):
        frame = schema_of(C.ge(0), metadata={"dprisk": {"bounds": (-1, 9), "missing": [3]}}).validate(small())
        for ask in (frame.dprisk.mean, frame.dprisk.assess):
            with pytest.raises(pdrisk.ParameterError, match=r"\(-1, 9\) of 'x' are wider"):
                ask("x", eps=1)

    def test_a_mask_reads_no_column(self):
        frame = pa.DataFrameSchema({"x": BROKEN["no dict"]}).validate(small())
        assert frame.dprisk.count("y", eps=1, where=frame["g"] == "a").curator.n == 2

    @pytest.mark.parametrize(
        "schema",
        [
            pa.DataFrameSchema({"x": pa.Column()}, metadata={"dprisk": {"bounds": (0, 1)}}),
            pa.DataFrameSchema({"x": pa.Column(checks=C.in_range(0, 9))}, checks=marked(bounds=(0, 1))),
            pa.DataFrameSchema({"[xy]": pa.Column(regex=True, nullable=True)}, metadata={"dprisk": {"bounds": (0, 1)}}),
        ],
        ids=["metadata", "mark", "pattern"],
    )
    def test_what_is_said_of_no_column_is_told_at_once_and_later(self, schema):
        frame = schema.validate(small())
        for same in (frame, frame.copy(), frame.query("x > 0")):
            with pytest.raises(pdrisk.ParameterError, match="belongs to single columns"):
                same.dprisk.mean("x", eps=1)

    @pytest.mark.parametrize(
        ("column", "values", "ask"),
        [
            (pa.Column(metadata={"dprisk": {"missing": ["no"]}}), [1, 2], {"column": "x"}),
            (pa.Column(metadata={"dprisk": {"missing": [-1]}}), pd.array(["a", "b"], "string"), {"column": "x"}),
            (pa.Column(metadata={"dprisk": {"missing": [DAY]}}), [1, 2], {"column": "x"}),
            (pa.Column(metadata={"dprisk": {"keys": ["no"]}}), [1, 2], {"by": "x"}),
            (pa.Column(metadata={"dprisk": {"keys": [1, 2]}}), pd.array(["a", "b"], "string"), {"by": "x"}),
            (pa.Column(checks=C.isin([1, 2, DAY])), [1, 2], {"by": "x"}),
        ],
    )
    def test_keys_and_codes_of_another_kind(self, column, values, ask):
        schema = pa.DataFrameSchema({"x": column})
        frame = schema.validate(pd.DataFrame({"x": values, "y": [1, 2]}))
        with pytest.raises(pdrisk.ColumnTypeError, match=r"column 'x' is .* but the column holds"):
            frame.dprisk.count(eps=1, **ask)
        if "column" in ask:
            with pytest.raises(pdrisk.ColumnTypeError, match=r"code of column 'x' is .* but the column holds"):
                frame.dprisk.declare(schema)
        assert frame.dprisk.count("y", eps=1).curator.n == 2

    def test_a_missing_date_among_the_keys(self):
        schema = schema_of(metadata={"dprisk": {"keys": [DAY, pd.NaT]}}, nullable=True)
        frame = pd.DataFrame({"x": [DAY, pd.NaT, DAY]})
        for known in (schema.validate(frame), schema.validate(frame).copy(), frame.dprisk.declare(schema)):
            assert known.dprisk.count(eps=EXACT, by="x", curator=True)["n"].tolist() == [2, 1]

    @pytest.mark.parametrize("end", [10**400, np.float32(9)], ids=["10^400", "float32"])
    def test_an_end_of_any_kind_of_number(self, end):
        frame = schema_of(C.in_range(0, end)).validate(small())
        assert frame.dprisk.count("g", eps=1).curator.n == 3


class TestValidationStaysAsItIs:
    """Results, errors and the schema itself are the same with pdrisk and without."""

    @pytest.mark.parametrize("error", [Exception, TypeError, OverflowError, RecursionError, pdrisk.ParameterError])
    def test_whatever_goes_wrong(self, monkeypatch, error):
        def failing(data, schema):
            raise error

        monkeypatch.setattr(declared, "attach", failing)
        schema = schema_of(C.in_range(0, 9))
        frame = schema.validate(small())
        pd.testing.assert_frame_equal(frame, small())
        assert frame.pandera.schema == schema

    def test_attrs_that_somebody_else_filled(self):
        frame = small()
        frame.attrs["dprisk"] = {"mine": 1}
        result = schema_of(C.in_range(0, 9)).validate(frame)
        assert result.attrs == {"dprisk": {"mine": 1}}
        with pytest.raises(pdrisk.ParameterError, match="not what declare wrote"):
            result.dprisk.mean("x", eps=1)

    def test_errors_are_those_of_pandera(self):
        schema = schema_of(C.in_range(0, 2))
        with pytest.raises(SchemaError, match="in_range"):
            schema.validate(small())
        with pytest.raises(SchemaErrors) as caught:
            schema.validate(small(), lazy=True)
        assert caught.value.failure_cases["failure_case"].tolist() == [3]

    def test_a_schema_that_says_nothing_leaves_no_trace(self):
        assert pa.DataFrameSchema({"x": pa.Column(int), "g": pa.Column(str)}).validate(typed(small())).attrs == {}

    @pytest.mark.slow
    def test_the_survey_validates_by_its_schema(self):
        schema = pdrisk.datasets.soep_like_schema()
        for missing in ("codes", "nan"):
            survey = schema.validate(pdrisk.datasets.soep_like(missing=missing))
            release = survey.dprisk.mean("distance", eps=EXACT, where="distance > 0")
            assert (release.curator.n, release.bounds) == (14734, (1, 675))
        assert pdrisk.bounds_from(schema) == {
            "age": (17, 120),
            "hours": (0, 18),
            "distance": (1, 675),
            "income": (0, 2_700_000),
        }
        assert pdrisk.keys_from(schema)["state"] == list(pdrisk.datasets.STATES)


class TestListening:
    """Validation never fails because of pdrisk, however it is imported."""

    KNOWN = (
        "import pandas as pd, pandera.pandas as pa\n"
        "frame = pa.DataFrameSchema({'x': pa.Column(int, pa.Check.ge(0))}).validate(pd.DataFrame({'x': [1]}))\n"
        "assert 'dprisk' in frame.copy().attrs\n"
    )

    def run(self, code):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    @pytest.mark.slow
    def test_somebody_only_looked_for_the_module(self):
        look = "import pdrisk, importlib.util\nimportlib.util.find_spec('pandera.accessors.pandas_accessor')\n"
        self.run(look + self.KNOWN)

    @pytest.mark.slow
    def test_the_module_is_loaded_anew(self):
        again = "import importlib, sys\nimportlib.reload(sys.modules['pandera.accessors.pandas_accessor'])\n"
        self.run("import pdrisk\n" + self.KNOWN + again + self.KNOWN)

    @pytest.mark.slow
    def test_a_loader_that_cannot_be_written_to(self):
        finder = """
import importlib.machinery, sys
class Loader:
    __slots__ = ("inner",)
    def __init__(self, inner): self.inner = inner
    def create_module(self, spec): return None
    def exec_module(self, module): self.inner.exec_module(module)
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name.startswith("pandera") else None
        if spec is not None and spec.origin is not None:
            spec.loader = Loader(spec.loader)
        return spec
sys.meta_path.insert(0, Finder)
import pdrisk
"""
        self.run(finder + self.KNOWN)
