"""What pandas users write out of habit: it works, or the error says in words what to write instead."""

import itertools
import pickle
import traceback
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import ColumnTypeError, ParameterError, PolicyError
from pdrisk._model.arguments import SAME, STATISTICS, statistic
from pdrisk._model.expressions.nearest import misspelt
from pdrisk._pandas.requests.options import DEFAULTS, OF_PANDAS
from pdrisk._sql.expressions.allowed_functions import FUNCTIONS, signatures
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
MUCH = 1000  # an eps at which counts show through the noise


def people() -> pd.DataFrame:
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4, 5, 6] * 10, "y": [0.0, 1] * 30, "member": [True, False, True] * 20})
    frame["region"] = pd.Categorical(["north", "south", "north"] * 20, categories=["west", "south", "north"])
    return frame


class TestStatisticsInWords:
    """A statistic is asked for by the name that answers carry."""

    @pytest.mark.parametrize(
        ("text", "pair"),
        [
            ("quantile(0.9)", ("quantile", {"q": 0.9})),
            ("quantile( q = .5 )", ("quantile", {"q": 0.5})),
            ("var(0)", ("var", {"ddof": 0})),
            ("std(ddof=1)", "std"),
            ("min(bounds_reached=True)", ("min", {"bounds_reached": True})),
        ],
    )
    def test_with_a_parameter(self, text, pair):
        assert statistic(text) == statistic(pair)

    @pytest.mark.parametrize(
        "spec", [*(name for name in STATISTICS if name != "quantile"), "quantile(0.25)", "var(ddof=0)", "std(ddof=0)"]
    )
    def test_labels_are_names(self, spec):
        assert statistic(statistic(spec).label) == statistic(spec)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("quantile", r'quantile needs q, as in "quantile\(0\.9\)"'), ("quantile(90)", "q must be between 0 and 1"),
            ("quantile(a)", "q must be a number"), ("quantile(p=0.9)", "quantile takes no p="),
            ("mean(0.9)", "mean takes no parameter"), ("var(2)", "ddof must be 0 .* or 1"),
            ("foo(1)", "unknown statistic 'foo'"), ("average", "Write 'mean'"), ("hist", r"ask df\.dprisk\.hist\("),
        ],
    )  # fmt: skip
    def test_refused(self, text, words):
        with pytest.raises(ParameterError, match=words):
            people().dprisk.agg({"x": text}, eps=1, bounds=(0, 9))


class TestNamedAggregation:
    """``agg(name=(column, statistic))`` as in pandas: one line for each name."""

    def test_values_are_those_of_a_dict(self):
        own = people().dprisk.agg(
            many=("x", "count"), tops=("x", "max"), filled=("y", "count"), eps=MUCH, bounds=(0, 9)
        )
        assert own.index.names == ["name"] and own.index.tolist() == ["many", "tops", "filled"]
        assert own.columns.tolist() == ["value", "low", "high", "eps", "worst_case", "release"]
        assert own["value"].round(1).tolist() == [60, 6, 60]
        same = people().dprisk.agg({"x": ["count", "max"], "y": "count"}, eps=MUCH, bounds=(0, 9))
        assert own["eps"].tolist() == same["eps"].tolist() and own["release"].tolist() == same["release"].tolist()

    def test_as_pandas_writes_it(self):
        options = {"eps": MUCH, "bounds": (0, 9)}
        own = people().dprisk.agg(many=pd.NamedAgg("x", "count"), top=("x", "max"), **options)
        assert own.index.tolist() == ["many", "top"] and own["value"].round(1).tolist() == [60, 6]
        if not issubclass(pd.NamedAgg, tuple):  # pandas 3 takes parameters
            most = people().dprisk.agg(most=pd.NamedAgg("x", "quantile", q=1), **options)
            assert most["value"].round(1).tolist() == [6]
            with pytest.raises(ParameterError, match="name the parameters of a statistic"):
                people().dprisk.agg(most=pd.NamedAgg("x", "quantile", 1), **options)

    def test_groups(self):
        table = people().dprisk.agg(
            top=("x", "max"), mean=("y", "mean"), eps=MUCH, bounds={"x": (0, 9), "y": (0, 1)}, by="member",
            keys=[False, True], curator=True,
        )  # fmt: skip
        assert table.index.names == ["name", "member"]
        assert table.loc["top", "value"].round(1).tolist() == [5, 6]
        said = " ".join(pdrisk.explain(table, "curator").split())
        assert "max(x), most exposed group: " in said and "mean(y), most exposed group: " in said
        assert "most exposed group: top" not in said

    @pytest.mark.parametrize(
        ("named", "error", "words"),
        [
            ({"a": ("x", "mean"), "b": ("x", "mean")}, ParameterError, r"mean\(x\) is asked for twice"),
            ({"epss": 1}, TypeError, r"unexpected keyword argument 'epss'\. Did you mean 'eps'\? A named statistic is"),
            ({"top": "max"}, TypeError, r'as in top=\("distance", "mean"\)'),
            ({"top": ("z", "max")}, pdrisk.UnknownColumnError, "unknown column 'z'"),
        ],
    )
    def test_refused(self, named, error, words):
        with pytest.raises(error, match=words):
            people().dprisk.agg(**named, eps=1, bounds=(0, 9))

    def test_not_beside_a_dict(self):
        with pytest.raises(ParameterError, match="not both"):
            people().dprisk.agg({"x": "max"}, top=("x", "max"), eps=1, bounds=(0, 9))


class TestCategories:
    """``keys="categories"``: those of a categorical, in their order, whoever is in the data."""

    def test_in_a_call(self):
        table = people().dprisk.count(eps=MUCH, by="region", keys="categories")
        assert table.index.tolist() == ["west", "south", "north"] and table["value"].tolist() == [0, 20, 40]
        assert "the categories of the column; that they are a code book" in " ".join(
            pdrisk.explain(table, "publication").split()
        )

    def test_beside_a_list(self):
        keys = {"region": "categories", "member": [True]}
        assert people().dprisk.count(eps=MUCH, by=["region", "member"], keys=keys)["value"].tolist() == [0, 0, 40]
        wide = people().assign(other=people()["region"]).dprisk.crosstab("region", "other", eps=MUCH, keys="categories")
        assert wide.to_numpy().tolist() == [[0, 0, 0], [0, 20, 0], [0, 0, 40]]
        assert people()["region"].dprisk.value_counts(eps=MUCH, keys="categories").index[0] == "north"

    @pytest.mark.parametrize("keys", ["categories", {"region": "categories"}])
    def test_in_sql(self, keys):
        query = "SELECT region, COUNT(*) AS n FROM f WHERE member GROUP BY region"
        table = pdrisk.sql(query, eps=MUCH, keys=keys, f=people())
        assert table["region"].tolist() == ["west", "south", "north"] and table["n"].tolist() == [0, 0, 40]
        whole = pdrisk.sql(f"{query} UNION ALL SELECT 'all', COUNT(*) FROM f", eps=MUCH, keys=keys, f=people())
        for answer in (table, whole):
            said = " ".join(pdrisk.explain(answer, "publication").split())
            assert "the categories of the column; that they are a code book" in said

    def test_two_columns_in_sql(self):
        frame = people().assign(other=people()["region"])
        query = "SELECT other, region, COUNT(*) AS n FROM f GROUP BY other, region"
        table = pdrisk.sql(query, eps=MUCH, keys="categories", f=frame)
        assert table["n"].tolist() == [0, 0, 0, 0, 20, 0, 0, 0, 40]

    def test_declared_once(self):
        frame = people().dprisk.declare(keys={"region": "categories"})
        assert frame.dprisk.count(eps=MUCH, by="region")["value"].tolist() == [0, 20, 40]
        table = pdrisk.sql("SELECT region, COUNT(*) AS n FROM frame GROUP BY region", eps=MUCH, frame=frame)
        assert table["n"].tolist() == [0, 20, 40]

    def test_refused(self, tmp_path):
        with pytest.raises(ParameterError, match=r'keys=\[\.\.\.\] \(or keys="categories", if they are a public code'):
            people().dprisk.count(eps=1, by="region")
        with pytest.raises(ParameterError, match=r"keys=\[\.\.\.\], or declare"):
            people().dprisk.count(eps=1, by="member")
        with pytest.raises(ColumnTypeError, match="column 'member' has none"):
            people().dprisk.count(eps=1, by="member", keys="categories")
        for of in ("member", "upper(region)"):
            with pytest.raises(ColumnTypeError, match="takes those of a categorical column of one pandas frame"):
                pdrisk.sql(f"SELECT {of}, COUNT(*) FROM f GROUP BY {of}", eps=1, keys="categories", f=people())
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="d", eps=1)
        for keys in ("categories", {"region": "categories"}):
            with pytest.raises(PolicyError, match='keys="categories" reveals which categories'):
                people().dprisk.count(eps=1, by="region", keys=keys, ledger=ledger)
            query = "SELECT region, COUNT(*) FROM f GROUP BY region"
            with pytest.raises(PolicyError, match='keys="categories" reveals which categories'):
                pdrisk.sql(query, eps=1, keys=keys, ledger=ledger, f=people())
        assert ledger.remaining().spent == 0


class TestOptionsOfPandas:
    """An option of pandas is refused with what to do instead."""

    @pytest.mark.parametrize("name", OF_PANDAS)
    def test_named(self, name):
        with pytest.raises(TypeError, match=rf"unexpected keyword argument '{name}'\. {name}=: .+\.$"):
            people().dprisk.median("x", eps=1, bounds=(0, 9), **{name: True})

    def test_no_option_of_ours(self):
        assert not set(OF_PANDAS) & set(DEFAULTS)

    @pytest.mark.parametrize("by", [pd.Grouper(key="region"), [pd.Grouper(key="region"), "member"]])
    def test_a_grouper(self, by):
        with pytest.raises(ColumnTypeError, match=r"no Grouper: make the groups a column before, as in df\.assign"):
            people().dprisk.count(eps=1, by=by, keys=["north"])

    @pytest.mark.parametrize("asked", [people().dprisk, people()["x"].dprisk, pdrisk.Dataset(people())])
    def test_brackets(self, asked):
        with pytest.raises(TypeError, match=r'ask the column itself, as in df\["age"\]\.dprisk'):
            asked["x"]
        with pytest.raises(TypeError):
            list(asked)

    def test_a_condition_for_a_column(self):
        with pytest.raises(pdrisk.UnknownColumnError, match="A condition stands in where="):
            people().dprisk.count("x > 2", eps=1)

    def test_agg_of_a_number(self):
        with pytest.raises(ColumnTypeError, match=r'names, as in typical=\("distance", "median"\)'):
            people().dprisk.agg(3, eps=1)

    @pytest.mark.parametrize(("name", "meant"), SAME.items())
    def test_other_names(self, name, meant):
        with pytest.raises(AttributeError, match=rf"has no '{name}': write \.{meant}\("):
            getattr(people().dprisk, name)


class TestAllThatIsMissing:
    """One error names every argument that is missing."""

    @pytest.mark.parametrize(
        ("ask", "named"),
        [
            (lambda d: d.mean("x"), ["bounds=(lo, hi), the range that values of 'x'", "eps="]),
            (lambda d: d.mean("x", by="region"), ["'x'", "eps=", "the public list of the groups of by=region"]),
            (lambda d: d.count(by="region"), ["eps=", "keys=[...]"]),
            (lambda d: d.agg({"x": "mean", "y": "max"}, eps=1), ["values of 'x'", "values of 'y'"]),
            (lambda d: d.agg(a=("x", "mean"), b=("y", "max")), ["values of 'x'", "values of 'y'", "eps="]),
            (lambda d: d.corr("x", "y"), ["bounds={'x': (lo, hi), 'y': (lo, hi)}", "eps="]),
        ],
    )
    def test_named_together(self, ask, named):
        with pytest.raises(ParameterError, match=r"^several arguments are missing: ") as caught:
            ask(people().dprisk)
        assert all(each in str(caught.value) for each in named)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

    def test_one_alone_is_told_at_length(self):
        with pytest.raises(ParameterError, match=r"^mean\(x\) needs bounds, .*suggest_bounds"):
            people().dprisk.mean("x", eps=1)
        with pytest.raises(ParameterError, match=r"^pass exactly one of eps=, risk= and success="):
            people().dprisk.count()
        with pytest.raises(ParameterError, match=r"^corr\(x, y\) needs bounds of column 'x'"):
            people().dprisk.corr("x", "y", eps=1)

    def test_what_is_wrong_comes_in_its_order(self):
        with pytest.raises(ParameterError, match=r"^mean\(x\) needs bounds"):
            people().dprisk.mean("x", eps=-1)
        with pytest.raises(pdrisk.UnknownColumnError):
            people().dprisk.mean("z", by="region")
        with pytest.raises(ParameterError, match="eps must be finite"):
            people().dprisk.count(eps=-1, by="region")


class TestTracebacks:
    """The traceback of pdrisk's own error ends at the call."""

    @pytest.mark.parametrize(
        "call",
        [
            lambda d: d.mean("x"), lambda d: d.agg({"x": "meen"}), lambda d: d.declare(bounds={"z": (0, 1)}),
            lambda d: d.count(eps=1, where="x.mean() > 1"), lambda d: d.assess("z"),
            lambda d: d.count(eps=1).explain("nobody"), lambda d: pdrisk.sql("SELECT 1", eps=1),
            lambda d: pdrisk.Dataset(people()).query("x.mean() > 1"),
        ],
    )  # fmt: skip
    def test_no_inner_frames(self, call):
        with pytest.raises(pdrisk.PdriskError) as caught:
            call(people().dprisk)
        files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert sum("pdrisk" in name.replace("\\", "/").rsplit("/src/", 1)[-1] for name in files) <= 1
        assert caught.value.__cause__ is None


class TestNotebooks:
    """What a notebook shows: HTML or a picture, whose text is escaped."""

    def test_texts(self, tmp_path):
        release = people().dprisk.count(eps=1)
        ledger = pdrisk.Ledger(tmp_path / "<b>.db", dataset="a & b", eps=1)
        bounds = people().dprisk.suggest_bounds("x", eps=100)
        for shown in (release.explain(), release.picture_text(), ledger, ledger.remaining(), bounds):
            html = shown._repr_html_()
            assert html.startswith("<pre") and html.endswith("</pre>") and "\n" in html
        assert "a &amp; b" in ledger._repr_html_() and "<b>" not in ledger._repr_html_()
        assert release.explain() == str(release.explain()) and pickle.loads(pickle.dumps(release.explain()))

    def test_ipython(self):
        written = []
        people().dprisk.count(eps=1).explain()._repr_pretty_(type("Printer", (), {"text": written.append})(), False)
        assert written[0].startswith("Imagine the hardest case") and "\\n" not in written[0]

    @pytest.mark.parametrize("kind", ["icons", "risk"])
    def test_pictures(self, kind):
        picture = people().dprisk.count(eps=1).picture(kind)
        assert picture._repr_png_().startswith(b"\x89PNG")


class TestNearestNames:
    """A question "Did you mean ...?" is about a slip of the finger, never about another function."""

    def test_no_function_of_pandas(self):
        others = {name for kind in (pd.DataFrame, pd.Series) for name in dir(kind) if not name.startswith("_")}
        accessor = people().dprisk
        known = [name for name in dir(accessor) if not name.startswith("_")]
        for name in sorted(others - set(known)):
            with pytest.raises(AttributeError) as caught:
                getattr(accessor, name)
            assert "Did you mean" not in str(caught.value), name

    def test_no_function_of_duckdb(self):
        names = workspace._functions()
        assert len(names) > 500
        for name in sorted(names - {*FUNCTIONS, *AGGREGATES}):
            with pytest.raises(ParameterError) as caught:
                signatures(name)
            assert "Did you mean" not in str(caught.value), name

    @pytest.mark.parametrize("name", ["mad", "sem", "mode", "medoid", "hist", "most", "sun", "co", ""])
    def test_of_another_meaning(self, name):
        assert misspelt(name, ["mean", "median", "max", "sum", "min", "count", "instr", "std"]) == ""

    def test_slips(self):
        known = ["mean", "median", "max", "count", "quantile"]
        slips = {
            "meen": "mean",
            "MEAN": "mean",
            "medain": "median",
            "amx": "max",
            "cuont": "count",
            "quantle": "quantile",
        }
        for slip, meant in slips.items():
            assert misspelt(slip, known) == f" Did you mean {meant!r}?"

    def test_against_every_text(self):
        """Brute force: every text of these letters, against all that one slip makes of a name."""
        name, letters = "mean", "aemnq"
        slips = {name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in range(3)}
        for at in range(5):
            slips |= {name[:at] + letter + name[at:] for letter in letters}
            slips |= {name[:at] + letter + name[at + 1 :] for letter in letters if at < 4}
        for length in (3, 4, 5):
            for text in map("".join, itertools.product(letters, repeat=length)):
                assert bool(misspelt(text, [name])) == (text in slips), text


class TestRefusalsThatAreRight:
    """A refusal names what there is instead, and does not accuse what is harmless."""

    @pytest.mark.parametrize(
        ("select", "words"),
        [
            ("average(x)", r"write AVG\(x\)"), ("hist(x)", "df.dprisk.hist"), ("nunique(x)", r"COUNT\(DISTINCT x\)"),
            ("var(x)", "VAR_SAMP"), ("medain(x)", r"Did you mean median\(\)"),
        ],
    )  # fmt: skip
    def test_in_sql(self, select, words):
        with pytest.raises(ParameterError, match=words):
            pdrisk.sql(f"SELECT {select} FROM f", eps=1, f=people())

    def test_different_values_are_counted(self):
        assert pdrisk.sql("SELECT COUNT(DISTINCT x) AS n FROM f", eps=MUCH, f=people())["n"].tolist() == [6]
        assert people().dprisk.nunique("x", eps=MUCH).value == 6
        assert people().dprisk.agg({"x": "nunique"}, eps=MUCH)["value"].tolist() == [6]

    @pytest.mark.parametrize(
        "call", ["Timestamp('2020-01-31')", "@pd.Timestamp('2020-01-31')", "to_datetime('2020-01-31')"]
    )
    def test_times(self, call):
        frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=60)})
        with pytest.raises(ParameterError, match="Write the time as text, as in `day >= '2020-01-31'`") as caught:
            frame.dprisk.count(eps=1, where=f"day >= {call}")
        assert "other records" not in str(caught.value)
        start = np.datetime64("2020-01-31")  # noqa: F841 - named in the filter
        for written in ("day >= '2020-01-31'", "day >= @start"):
            assert frame.dprisk.count(eps=MUCH, where=written).value == 30


class TestAllThatIsMissingInSql:
    """Bounds and eps in one error, where both are missing; a dp_ function may hold its own eps."""

    def test_both(self):
        with pytest.raises(
            ParameterError, match=r"^avg\(x\) needs bounds, .* The query needs eps, too, .*: pass eps=1\.$"
        ):
            pdrisk.sql("SELECT AVG(x) FROM f", f=people())

    @pytest.mark.parametrize(
        ("query", "eps"), [("SELECT AVG(x) FROM f", 1), ("SELECT dp_mean(x, eps := 1) AS m FROM f", None)]
    )
    def test_one(self, query, eps):
        with pytest.raises(ParameterError, match="needs bounds") as caught:
            pdrisk.sql(query, eps=eps, f=people())
        assert "needs eps, too" not in str(caught.value)


class TestCrosstabAsPandasHasIt:
    """``normalize`` in all spellings of pandas; what it takes besides is refused with what to write."""

    KEYS: ClassVar = {"region": ["north", "south"], "member": [True, False]}

    @pytest.mark.parametrize("normalize", ["index", "columns", "all", True, False, 0, 1])
    def test_shares(self, normalize):
        frame = people()
        own = frame.dprisk.crosstab("region", "member", eps=10**4, keys=self.KEYS, normalize=normalize)
        wanted = pd.crosstab(frame["region"], frame["member"], normalize=normalize)
        wanted = wanted.reindex(index=list(own.index), columns=list(own.columns))
        assert own.to_numpy() == pytest.approx(wanted.to_numpy(), abs=0.01)

    @pytest.mark.parametrize("normalize", [2, -1, "row", "rows", 0.5, None.__class__, ["region"]])
    def test_no_such_share(self, normalize):
        with pytest.raises(ParameterError, match='normalize can be "index", "columns" or "all"'):
            people().dprisk.crosstab("region", "member", eps=1, keys=self.KEYS, normalize=normalize)

    @pytest.mark.parametrize(("normalize", "same"), [(True, "all"), ("region", ["region"]), (False, None)])
    @pytest.mark.parametrize("name", ["count", "sum"])
    def test_shares_of_the_long_table(self, name, normalize, same):
        ask = getattr(people().dprisk, name)
        given = {"column": "x", "by": ["region", "member"], "keys": self.KEYS, "eps": 10**6, "bounds": (0, 9)}
        given |= {} if name == "sum" else {"column": None, "bounds": None}
        one, other = (ask(**given, normalize=each)["value"] for each in (normalize, same))
        assert one.tolist() == pytest.approx(other.tolist(), abs=1e-3)

    def test_histogram(self):
        frame = people()
        options = {"bins": [0, 3, 5, 6], "eps": 10**5}
        wanted = np.histogram(frame["x"], [0, 3, 5, 6])[0] / 60
        for asked in (
            frame.dprisk.hist("x", normalize=True, **options),
            frame["x"].dprisk.hist(normalize=True, **options),
        ):
            assert asked["value"].tolist() == pytest.approx(wanted, abs=1e-3) and asked["value"].sum() == pytest.approx(
                1
            )
            assert ((asked["low"] <= asked["value"]) & (asked["value"] <= asked["high"])).all()
        assert frame.dprisk.hist("x", normalize=False, **options)["value"].tolist() == (wanted * 60).tolist()
        each = frame.dprisk.hist("x", normalize="member", by="member", keys=[True, False], **options)["value"]
        assert each.groupby(level=0).sum().tolist() == pytest.approx([1, 1])
        own = np.histogram(frame.loc[frame["member"], "x"], [0, 3, 5, 6])[0] / 40
        assert each.loc[True].tolist() == pytest.approx(own.tolist(), abs=1e-3)
        axes = pdrisk.plot(frame.dprisk.hist("x", normalize=True, **options))
        assert sum(bar.get_width() * bar.get_height() for bar in axes.patches) == pytest.approx(1)
        assert axes.get_ylabel() == "share per unit of x"
        with pytest.raises(TypeError, match=r"density=: normalize=True gives shares"):
            frame.dprisk.hist("x", density=True, **options)

    def test_value_counts(self):
        frame = people()
        table = frame.dprisk.value_counts("region", eps=10**4, keys=["south", "north"], normalize=True)
        assert table.index.tolist() == ["north", "south"] and table["value"].sum() == pytest.approx(1)
        assert table["value"].tolist() == pytest.approx([2 / 3, 1 / 3], abs=0.01)
        assert (table["low"] < table["value"]).all() and (table["value"] < table["high"]).all()
        series = frame["region"].dprisk.value_counts(eps=10**4, keys=["south", "north"], normalize=True)
        assert series["value"].tolist() == pytest.approx([2 / 3, 1 / 3], abs=0.01)
        with pytest.raises(ColumnTypeError, match="normalize is True or False, not of type str"):
            frame.dprisk.value_counts("region", eps=1, keys=["south"], normalize="all")

    @pytest.mark.parametrize(
        ("ask", "error", "words"),
        [
            (lambda d, f: d.crosstab(f["region"], f["member"]), ColumnTypeError, r"crosstab\('region', 'member',"),
            (lambda d, f: d.crosstab(["region"], "member"), ColumnTypeError, r"one column on each side"),
            (lambda d, f: d.crosstab("region", "member", margins_name="All"), TypeError, r"index=\{pdrisk\.ALL"),
            (lambda d, f: d.crosstab("region", "member", values="x"), ParameterError, "belong together"),
            (
                lambda d, f: d.crosstab("region", "member", values="x", aggfunc=["mean"]), ColumnTypeError,
                r"one statistic in its cells: .* agg\(",
            ),
            (
                lambda d, f: d.crosstab("region", "member", values="x", aggfunc=np.mean, eps=1), ColumnTypeError,
                "Write 'mean'",
            ),
            (lambda d, f: d.agg({"x": np.median}, eps=1), ColumnTypeError, "no functions. Write 'median'"),
            (lambda d, f: d.agg([np.average], eps=1, bounds=BOTH), ColumnTypeError, "Write 'mean'"),
            (lambda d, f: d.agg({"x": lambda x: x.mean()}, eps=1), ColumnTypeError, r"no functions\.$"),
            (lambda d, f: d.value_counts("x", bins=3), TypeError, r"bins are those of hist\("),
            (lambda d, f: d.hist("x", bins=5.5, bounds=(0, 9), eps=1), ColumnTypeError, "whole number of bins"),
            (lambda d, f: d.pivot_table(values="x", index="region"), AttributeError, r"write \.crosstab\("),
        ],
    )  # fmt: skip
    def test_said_instead(self, ask, error, words):
        with pytest.raises(error, match=words):
            ask(people().dprisk, people())


class TestDates:
    """Bins of dates by the names that pandas has for periods, and their beginnings and ends."""

    DAYS = pd.DataFrame({"day": pd.date_range("2020-01-01", "2021-12-31")})

    @pytest.mark.parametrize(
        ("bins", "period"),
        [("D", "D"), ("W", "W"), *((each, each[0]) for each in ("M", "MS", "ME", "Q", "QS", "QE", "Y", "YS", "YE"))],
    )
    def test_names(self, bins, period):
        frame = self.DAYS.iloc[:500] if bins == "D" else self.DAYS  # of more bins it is refused
        ends = (frame["day"].iloc[0], frame["day"].iloc[-1])
        table = frame.dprisk.hist("day", eps=10**4, bins=bins, bounds=ends)
        wanted = frame["day"].dt.to_period(period).value_counts(sort=False)
        assert table["value"].tolist() == wanted.tolist()
        assert table.index.tolist() == wanted.index.start_time.tolist()

    def test_a_time_zone(self):
        frame = self.DAYS.assign(day=self.DAYS["day"].dt.tz_localize("UTC"))
        with pytest.raises(ColumnTypeError, match=r"as in df\['day'\]\.dt\.tz_localize\(None\)"):
            frame.dprisk.hist("day", eps=1, bins="month", bounds=("2020-01-01", "2021-12-31"))

    def test_a_missing_text(self):
        frame = pd.DataFrame({"name": ["max", "xenia", None] * 9})
        with pytest.raises(ParameterError, match="never finds a missing text: leave na= out"):
            frame.dprisk.count(eps=1, where="name.str.contains('x', na=False)")
        assert frame.dprisk.count(eps=10**4, where="name.str.contains('x')").value == 18


BOTH = {"x": (0, 10), "y": (0, 1)}


class TestSeveralColumns:
    """As pandas has ``agg(["mean", "std"])`` and ``corr()`` of a frame; with one eps for all of them."""

    def test_statistics_of_all_columns_with_bounds(self):
        frame = people()
        found = frame.dprisk.agg(["mean", "count"], eps=10**6, bounds=BOTH)
        assert found.index.tolist() == [(x, s) for x in "xy" for s in ("mean", "count")]
        assert found["value"].tolist() == pytest.approx([3.5, 60, 0.5, 60])
        same = frame.dprisk.agg({"x": ["mean", "count"], "y": ["mean", "count"]}, eps=10**6, bounds=BOTH)
        assert found["eps"].tolist() == same["eps"].tolist() and found.index.equals(same.index)
        declared = pdrisk.Dataset(frame, bounds={"y": (0, 1)})
        assert declared.agg("mean", eps=1).index.tolist() == [("y", "mean")]
        assert declared.agg("mean", eps=1, by="region", keys=["north", "south"]).shape[0] == 2

    def test_correlations_of_every_two(self):
        frame = people().assign(z=lambda rows: rows["x"] * 2)
        bounds = BOTH | {"z": (0, 20)}
        found = frame.dprisk.corr(["x", "y", "z"], eps=10**6, bounds=bounds)
        assert found.index.tolist() == [("x", "y"), ("x", "z"), ("y", "z")]
        wanted = frame[["x", "y", "z"]].corr()
        assert found["value"].tolist() == pytest.approx([wanted.loc[pair] for pair in found.index], abs=1e-3)
        assert set(found["eps"]) == {10**6} and set(found["release"]) == {1}
        by = frame.dprisk.corr(["x", "z"], eps=10**6, bounds=bounds, by="region", keys=["north", "south"])
        assert by.index.names == ["region", "x", "y"] and by["value"].tolist() == pytest.approx([1, 1], abs=1e-3)

    def test_without_columns_all_that_have_bounds(self):
        frame, bounds = people().assign(z=lambda rows: rows["x"] * 2), BOTH | {"z": (0, 20)}
        found = frame.dprisk.corr(eps=10**6, bounds=bounds)
        assert found.index.equals(frame.dprisk.corr(["x", "y", "z"], eps=10**6, bounds=bounds).index)
        assert found["value"].tolist() == pytest.approx(
            [*frame[["x", "y"]].corr().iloc[0, 1:], 1, *frame[["y", "z"]].corr().iloc[0, 1:]], abs=1e-3
        )
        assert frame.dprisk.corr(frame.columns[:2], eps=1, bounds=bounds).index.tolist() == [("x", "y")]
        declared = frame.dprisk.declare(bounds=BOTH)
        assert declared.dprisk.corr(eps=1).index.tolist() == [("x", "y")]
        assert declared.dprisk.describe(eps=1).index.get_level_values(0).unique().tolist() == ["x", "y"]

    @pytest.mark.parametrize(
        ("asked", "words"),
        [
            (lambda d: d.corr(eps=1), "none has any: pass bounds="),
            (lambda d: d.describe(eps=1), "none has any: pass bounds="),
            (lambda d: d.agg(["mean"], eps=1), "none has any: pass bounds="),
            (lambda d: d.agg(["mean"], eps=1, bounds=(0, 1)), "none has any: pass bounds="),
            (lambda d: d.agg(["mean"], eps=1, bounds={"nope": (0, 1)}), "unknown column 'nope'"),
            (lambda d: d.agg([], eps=1, bounds=BOTH), "at least one|empty|statistics"),
            (lambda d: d.mean(["x", "y"], eps=1, bounds=BOTH), "not by a value of type list: ask about several"),
            (lambda d: d.corr(["x"], eps=1, bounds=BOTH), "takes 2 to 45, each once"),
            (lambda d: d.corr(["x", "x"], eps=1, bounds=BOTH), "takes 2 to 45, each once"),
            (lambda d: d.corr(["x"] * 99, eps=1, bounds=BOTH), "takes 2 to 45, each once"),
            (lambda d: d.corr(["x", ["y"]], eps=1, bounds=BOTH), "not by a value of type list"),
            (lambda d: d.corr("x", eps=1, bounds=BOTH), "corr needs two columns"),
            (lambda d: d.corr(["x", "y"], eps=1), "needs bounds of column 'x'"),
        ],
    )
    def test_refused(self, asked, words):
        with pytest.raises((ParameterError, ColumnTypeError), match=words):
            asked(people().dprisk)
