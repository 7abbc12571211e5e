"""k-anonymity and unique rows: how many people share each combination of keys."""

import bisect
import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from disclosure_oracle import people, sizes
from pdrisk._disclosure.measures import asked
from pdrisk._disclosure.suggest import coarser_ways
from pdrisk._disclosure.tables import FrameKeys
from pdrisk.engines.numpy.frame import FrameTable
from pdrisk.errors import ColumnTypeError, ParameterError, UnknownColumnError

KEYS = ["age", "zip", "sex", "wage", "away", "since"]


class TestClasses:
    """k is the size of the smallest class of rows whose keys are all the same."""

    @given(st.integers(0, 10_000), st.integers(1, 60), st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    def test_equals_counting_rows(self, seed, n, on):
        frame = people(seed, n)
        counted = sizes(frame, on)
        found = frame.dprisk.k_anonymity(on)
        assert found.k == min(counted.values()) and found.people == n
        assert found.unique == sum(number == 1 for number in counted.values())
        assert found.below(3) == sum(number for number in counted.values() if number < 3)
        assert sorted(found.classes["sample"]) == sorted(counted.values())

    @given(st.integers(0, 10_000), st.integers(1, 60), st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    def test_the_table_has_the_keys(self, seed, n, on):
        frame = people(seed, n)
        table = frame.dprisk.k_anonymity(on).classes.reset_index()
        found = {key: row["sample"] for key, row in zip(sizes_keys(table, on), table.to_dict("records"), strict=True)}
        assert found == dict(sizes(frame, on))

    @given(st.integers(0, 10_000), st.integers(1, 60))
    def test_a_person_with_several_rows_counts_once(self, seed, n):
        frame = people(seed, n)
        frame["pid"] = frame["pid"].where(frame["pid"] > 1)  # some of nobody known
        counted = sizes(frame, ["age", "zip"], "pid")
        if not counted:
            return
        found = frame.dprisk.k_anonymity(["age", "zip"], person="pid")
        assert found.k == min(counted.values()) and found.people == sum(counted.values())
        assert found.left_out == frame["pid"].isna().sum()

    def test_a_list_of_columns_says_who_a_person_is(self):
        frame = pd.DataFrame({"pid": [1, 1, 1, 2], "day": [1, 2, 2, 1], "zip": ["a"] * 4})
        assert frame.dprisk.k_anonymity("zip", person="pid").k == 2
        assert frame.dprisk.k_anonymity("zip", person=["pid", "day"]).k == 3

    def test_sparse_combinations_are_told_apart(self):
        """Five times 2**16 codes: in 64 bits the first column would be lost, and with it the last row's difference."""
        n = 2**16 - 1
        frame = pd.DataFrame({f"k{at}": [f"{at}-{each}" for each in range(n)] for at in range(5)})
        frame = pd.concat([frame, frame.iloc[[0]].assign(k0="0-1")], ignore_index=True)
        found = frame.dprisk.k_anonymity(list(frame))
        assert (found.k, found.unique, len(found.classes)) == (1, n + 1, n + 1)

    def test_whole_numbers_beyond_floats_are_told_apart(self):
        frame = pd.DataFrame({"id": pd.array([2**53, 2**53 + 1, None], dtype="Int64")})
        assert frame.dprisk.k_anonymity("id").unique == 3
        assert pd.DataFrame({"id": np.array([2**64 - 1, 2**64 - 2], dtype="u8")}).dprisk.k_anonymity("id").unique == 2


def sizes_keys(table, on):
    return [tuple(None if pd.isna(each) else each for each in row) for row in table[on].itertuples(index=False)]


class TestWherePycanonIsWrong:
    """pycanon 1.3.6 takes index labels for positions, drops missing keys, and counts unused categories."""

    def test_an_index_that_is_no_range(self):
        frame = pd.DataFrame({"zip": list("aabb"), "illness": ["flu", "cold", "flu", "flu"]}, index=[2, 3, 0, 1])
        # It reads the illness of class b for class a and the other way round: the classes' numbers are exchanged.
        assert frame.dprisk.l_diversity("zip", "illness").classes["distinct"].to_dict() == {"a": 2, "b": 1}
        # Labels beyond the rows are an IndexError there.
        assert frame.set_index(frame.index + 100).dprisk.l_diversity("zip", "illness").l == 1

    def test_labels_that_occur_twice(self):
        frame = pd.DataFrame({"zip": list("aab")}, index=[7, 7, 7])
        assert frame.dprisk.k_anonymity("zip").per_row().tolist() == [2, 2, 1]

    def test_an_unused_category_is_no_class(self):
        frame = pd.DataFrame({"sex": pd.Categorical(["f", "f", "m", "m"], categories=["f", "m", "x"])})
        found = frame.dprisk.k_anonymity("sex")
        assert found.k == 2 and len(found.classes) == 2

    def test_a_missing_key_is_a_value(self):
        frame = pd.DataFrame({"zip": ["a", "a", None]})
        found = frame.dprisk.k_anonymity("zip")
        assert found.k == 1 and found.people == 3  # pycanon: k = 2, of two rows

    def test_one_sensitive_value_is_no_division_by_zero(self):
        frame = pd.DataFrame({"zip": list("ab"), "score": [1, 1]})
        assert frame.dprisk.t_closeness("zip", "score").t == 0


class TestRows:
    """Each row is told the size of its class, in the order and with the index of the frame."""

    @given(st.integers(0, 10_000), st.integers(1, 60))
    def test_sizes_of_rows(self, seed, n):
        frame = people(seed, n)
        told = frame.dprisk.k_anonymity(["age", "zip"]).per_row()
        counted = sizes(frame, ["age", "zip"])
        assert told.index.equals(frame.index)
        assert told.tolist() == [counted[key] for key in sizes_keys(frame, ["age", "zip"])]
        alone = frame.dprisk.unique_rows(["age", "zip"])
        assert alone.per_row().tolist() == (told == 1).tolist()
        assert (alone.unique, alone.share) == ((told == 1).sum(), (told == 1).mean())

    def test_rows_of_nobody_known_are_missing(self):
        frame = pd.DataFrame({"zip": list("aab"), "pid": [1.0, np.nan, 3.0]})
        told = frame.dprisk.k_anonymity("zip", person="pid").per_row()
        assert told.isna().tolist() == [False, True, False] and told.dropna().tolist() == [1, 1]

    def test_the_worst_come_first(self):
        frame = pd.DataFrame({"zip": list("aaabbc")})
        assert frame.dprisk.k_anonymity("zip").worst(2).index.tolist() == ["c", "b"]


class TestDataset:
    """A Dataset has the measures too, of the records that it was reduced to and by its own declarations."""

    def test_filters_columns_codes_and_person(self):
        frame = pd.DataFrame({"age": [20, 24, 31, 35, -1], "pid": [1, 1, 2, 3, 4]})
        survey = pdrisk.Dataset(frame, missing={"age": [-1]})
        assert survey.k_anonymity("age").classes.index.isna().sum() == 1
        found = survey.query("age < 40").assign(decade="age // 10 * 10").k_anonymity("decade")
        assert found.classes["sample"].to_dict() == {20: 2, 30: 2}
        assert found.per_row().isna().tolist() == [False] * 4 + [True]
        persons = pdrisk.Dataset(frame, person="pid", per_person="one")
        assert persons.k_anonymity("age", generalize={"age": [-1, 0, 30, 40]}).classes["sample"].tolist() == [1, 1, 2]


class TestRefusals:
    """What is asked wrongly is said in words."""

    FRAME = pd.DataFrame({"age": [20, 21], "zip": ["85535", "85536"], "sex": ["f", "m"]})

    @pytest.mark.whole
    @pytest.mark.parametrize(
        ("on", "options", "said"),
        [
            ([], {}, "on= names no column"),
            ("aeg", {}, "Did you mean 'age'"),
            (["age", "age"], {}, "twice"),
            ("age", {"person": "age"}, "cannot say who a person is and be a key"),
            ("age", {"person": "pid"}, "unknown column 'pid'"),
            ("age", {"generalize": [0, 10]}, "generalize is a dict"),
            ("age", {"generalize": {"zip": 3}}, "none of the key columns"),
            ("age", {"generalize": {"age": 3}}, "no first letters"),
            ("zip", {"generalize": {"zip": -1}}, "0 or more"),
            ("zip", {"generalize": {"zip": [0, 10]}}, "bins are of numbers"),
            ("age", {"generalize": {"age": [0, 10]}}, "2 values of key column 'age' are outside the bins"),
            ("age", {"generalize": {"age": [0, 21]}}, "1 values of key column 'age' are outside the bins"),
            ("age", {"generalize": {"age": [10, 0]}}, "two or more rising"),
            ("age", {"generalize": {"age": [10]}}, "two or more rising"),
            ("age", {"generalize": {"age": {20: "young"}}}, "not in the mapping"),
            ("age", {"generalize": {"age": "decade"}}, "of type str"),
        ],
    )
    def test_said(self, on, options, said):
        with pytest.raises(ParameterError, match=said):
            self.FRAME.dprisk.k_anonymity(on, **options)

    def test_kinds(self):
        with pytest.raises(ColumnTypeError, match="no keys, such as lists"):
            pd.DataFrame({"tags": [["a"], ["b"]]}).dprisk.k_anonymity("tags")
        with pytest.raises(ColumnTypeError):
            self.FRAME.dprisk.k_anonymity(None)
        with pytest.raises(UnknownColumnError):
            self.FRAME.dprisk.k_anonymity(("age", "zip"))
        with pytest.raises(ParameterError, match="nobody is in the table"):
            self.FRAME.iloc[:0].dprisk.k_anonymity("age")


class TestGeneralize:
    """Bins hold their left edge, text keeps its first letters, mappings say what becomes of a value."""

    def test_bins_hold_their_left_edge(self):
        frame = pd.DataFrame({"age": [0, 9, 10, 19.5, np.nan]})
        table = frame.dprisk.k_anonymity("age", generalize={"age": [0, 10, 20]}).classes
        assert table["sample"].tolist() == [2, 2, 1]
        assert table.index[0] == pd.Interval(0, 10, closed="left") and pd.isna(table.index[2])

    def test_bins_of_timestamps(self):
        frame = pd.DataFrame({"born": pd.to_datetime(["1990-05-01", "1999-12-31", "2000-01-01"])})
        edges = pd.to_datetime(["1990-01-01", "2000-01-01", "2010-01-01"])
        assert frame.dprisk.k_anonymity("born", generalize={"born": list(edges)}).classes["sample"].tolist() == [2, 1]

    def test_bins_of_bins_are_joined(self):
        ages = pd.cut(pd.Series([1, 12, 25]), [0, 10, 20, 30], right=False)
        frame = ages.to_frame("age")
        assert frame.dprisk.k_anonymity("age", generalize={"age": [0, 20, 30]}).classes["sample"].tolist() == [2, 1]
        with pytest.raises(ParameterError, match="outside the bins"):
            frame.dprisk.k_anonymity("age", generalize={"age": [0, 15, 30]})

    def test_letters(self):
        frame = pd.DataFrame({"zip": ["85535", "85599", "855", "60629"]})
        table = frame.dprisk.k_anonymity("zip", generalize={"zip": 3}).classes
        assert table["sample"].to_dict() == {"606*": 1, "855": 1, "855*": 2}
        assert frame.dprisk.k_anonymity("zip", generalize={"zip": 0}).k == 4

    def test_mappings(self):
        frame = pd.DataFrame({"job": ["baker", "smith", "king", None]})
        to = {"baker": "craft", "smith": "craft", "king": None}
        table = frame.dprisk.k_anonymity("job", generalize={"job": to}).classes
        assert table["sample"].tolist() == [2, 2]
        assert frame.dprisk.k_anonymity("job", generalize={"job": pd.Series(to)}).k == 2

    def test_values_of_no_row_may_lie_outside(self):
        frame = pd.DataFrame({"age": pd.Categorical([1, 2], categories=[1, 2, 99])})
        assert frame.dprisk.k_anonymity("age", generalize={"age": [0, 10]}).k == 2


class TestSuggestion:
    """Every class is large enough, no combination of steps that is loses less, and it is reproducible."""

    @given(st.integers(0, 10_000), st.integers(12, 80), st.integers(2, 6))
    def test_reaches_k(self, seed, n, k):
        frame = people(seed, n)[["age", "sex", "since", "score"]]
        found = frame.dprisk.suggest_generalization(list(frame), k=k)
        assert found.k >= k
        again = frame.dprisk.k_anonymity(list(frame), generalize=found.generalize)
        assert (again.k, len(again.classes)) == (found.k, found.classes)
        last = found.steps.iloc[-1]
        assert (last["k"], last["classes"], last["below"]) == (found.k, found.classes, 0)

    def test_nothing_is_cut_where_nothing_must_be(self):
        found = pd.DataFrame({"sex": list("ffmm")}).dprisk.suggest_generalization("sex", k=2)
        assert found.generalize == {} and len(found.steps) == 1

    def test_steps_of_text_and_numbers(self):
        frame = pd.DataFrame({"zip": ["85535", "85536", "85637", "85638"], "age": [20, 21, 22, 23]})
        assert frame.dprisk.suggest_generalization("zip", k=2).generalize == {"zip": 4}
        assert frame.dprisk.suggest_generalization("age", k=2).generalize == {"age": [20, 22, 24]}
        jobs = pd.DataFrame({"job": ["baker"] * 5 + ["smith"] * 3 + ["king", "queen"]})
        found = jobs.dprisk.suggest_generalization("job", k=2).generalize["job"]
        assert found == {"baker": "baker", "smith": "smith", "king": "other", "queen": "other"}

    @staticmethod
    def lost(values: list, how) -> float:
        """Loss of a key, value by value: the share of the other values that a person's value is joined with."""
        coarser = {
            type(None): lambda value: value,
            int: lambda value: value[:how],
            dict: lambda value: how[value],
            list: lambda value: bisect.bisect_right(how, value),
        }[type(how)]
        groups = [coarser(value) for value in sorted(set(values))]
        joined = sum(groups.count(coarser(value)) - 1 for value in values)
        return joined / len(values) / max(1, len(groups) - 1)

    @pytest.mark.parametrize("seed", range(12))
    def test_nothing_loses_less(self, seed):
        """Of all combinations of the steps, each counted by itself, that reach k but for those that may be left out."""
        rng = np.random.default_rng(seed)
        n = int(rng.integers(12, 60))
        frame = pd.DataFrame(
            {
                "age": rng.integers(20, 20 + int(rng.integers(3, 40)), n),
                "zip": rng.choice(["111", "112", "121", "211", "212"], n),
                "job": rng.choice(["baker", "king", "smith", "queen", "tailor"], n, p=[0.5, 0.05, 0.3, 0.05, 0.1]),
            }
        )
        k, suppress = int(rng.integers(2, 6)), float(rng.choice([0, 0.05, 0.2]))
        on = list(frame)
        found = frame.dprisk.suggest_generalization(on, k=k, suppress=suppress)
        side = FrameKeys(FrameTable(frame), frame).read(asked(on))
        ways = [[None, *hows] for _, hows in coarser_ways(side, k)]
        losses = [[self.lost(frame[name].tolist(), how) for how in hows] for name, hows in zip(on, ways, strict=True)]
        enough = []
        for steps in itertools.product(*(range(len(hows)) for hows in ways)):
            cut = {name: hows[at] for name, hows, at in zip(on, ways, steps, strict=True) if at}
            below = frame.dprisk.k_anonymity(on, generalize=cut).below(k)
            if below <= suppress * n:
                enough.append(sum(own[at] for own, at in zip(losses, steps, strict=True)) / len(on))
        assert found.loss == pytest.approx(min(enough)) and found.is_least
        again = frame.dprisk.k_anonymity(on, generalize=found.generalize)
        assert found.suppressed == again.below(k) <= suppress * n
        kept = frame[(again.per_row() >= k).to_numpy()].dprisk.k_anonymity(on, generalize=found.generalize)
        assert (kept.k, len(kept.classes), kept.people) == (found.k, found.classes, n - found.suppressed)
        assert found.k >= k

    def test_a_small_step_and_a_few_left_out(self):
        """Three people of each age, and one far away: bins of 2, and not everything because of one person."""
        frame = pd.DataFrame({"age": [*np.repeat(np.arange(20, 40), 3), 95], "sex": ["f"] * 61})
        found = frame.dprisk.suggest_generalization(["age", "sex"], k=5, suppress=0.02)
        assert found.generalize["age"][:3] == [20, 22, 24] and set(found.generalize) == {"age"}
        assert (found.k, found.suppressed, found.classes) == (6, 1, 10)
        assert found.steps["cut"].tolist() == ["as it is", "bins of 2", "suppressed"]
        assert found.steps["changed"].tolist() == [0, 60, 1] and found.steps["below"].tolist() == [61, 1, 0]
        without = frame.dprisk.suggest_generalization(["age", "sex"], k=5)
        assert without.suppressed == 0 and without.loss > 10 * found.loss
        assert "suppressed" in repr(found) and "detail lost" in found._repr_html_()

    def test_a_missing_key_may_keep_it_from_k(self):
        """A class that no step makes larger; it is suppressed only if it may be."""
        frame = pd.DataFrame({"age": [*np.repeat(np.arange(20, 40), 3), np.nan]})
        assert frame.dprisk.suggest_generalization("age", k=5).k == 1
        assert frame.dprisk.suggest_generalization("age", k=5, suppress=0.02).k == 6

    def test_many_keys(self):
        """Of very many combinations some steps are left out; k is reached all the same."""
        rng = np.random.default_rng(1)
        frame = pd.DataFrame({name: rng.integers(0, 10**6, 300) for name in "abcdefgh"})
        found = frame.dprisk.suggest_generalization(list(frame), k=5, suppress=0.1)
        assert found.k >= 5 and found.suppressed <= 30
        flags = pd.DataFrame({f"flag{at}": rng.random(300) < 0.1 for at in range(40)})
        found = flags.dprisk.suggest_generalization(list(flags), k=5)
        assert found.k >= 5 and not found.is_least and "another may lose less" in repr(found)
        assert found.loss < 1

    @pytest.mark.parametrize("suppress", [-0.1, 1, float("nan"), "a", None])
    def test_shares(self, suppress):
        with pytest.raises((ParameterError, ColumnTypeError), match="suppress"):
            pd.DataFrame({"age": [1, 2]}).dprisk.suggest_generalization("age", k=2, suppress=suppress)

    def test_persons_are_counted_anew(self):
        frame = pd.DataFrame({"age": [20, 21, 22, 30], "pid": [1, 1, 1, 2]})
        found = frame.dprisk.suggest_generalization("age", k=2, person="pid")
        assert found.k == 2 and found.classes == 1

    def test_too_few_people(self):
        with pytest.raises(ParameterError, match="classes of 5 of 2 people"):
            pd.DataFrame({"age": [1, 2]}).dprisk.suggest_generalization("age")
        with pytest.raises(ParameterError, match="2 or more"):
            pd.DataFrame({"age": [1, 2]}).dprisk.suggest_generalization("age", k=1)

    @pytest.mark.parametrize("values", [[0.1, 0.2, 0.3, 0.30000000000000004], [-7.5, 0.0, 1e9], [1e-9, 2e-9, 5e-9]])
    def test_edges_hold_all_values(self, values):
        frame = pd.DataFrame({"x": values * 3})
        found = frame.dprisk.suggest_generalization("x", k=6)
        assert frame.dprisk.k_anonymity("x", generalize=found.generalize).k >= 6


class TestShown:
    """A result is shown as the curator's, in words, HTML, a dict and a picture with a twin in text."""

    FOUND = pd.DataFrame({"zip": ["a"] * 12 + ["b"] * 3 + ["c"], "s": list("xy") * 8}).dprisk.k_anonymity("zip")

    def test_words(self):
        assert repr(self.FOUND) == (
            "k-anonymity of zip\n  -- curator only: these come from the data, do not publish --\n"
            "  k                   1\n  unique              1\n  classes             3\n  people              16"
        )
        assert "do not publish" in self.FOUND._repr_html_()
        wanted = {"measure": "k-anonymity of zip", "on": ["zip"], "k": 1, "unique": 1, "people": 16, "left_out": 0}
        assert self.FOUND.to_dict() == wanted

    def test_tables_are_not_public(self):
        for table in (self.FOUND.classes, self.FOUND.worst(), self.FOUND.per_row().to_frame()):
            with pytest.raises(pdrisk.NotPublicError):
                pdrisk.public(table)

    def test_picture_in_text(self):
        assert self.FOUND.picture_text() == (
            "k-anonymity of zip: sizes of classes\n"
            "  size      people  share\n"
            "  1              1   6.2%  ####\n"
            "  2              0   0.0%\n"
            "  3 to 4         3  18.8%  ##########\n"
            "  5 to 9         0   0.0%\n"
            "  10 to 19      12  75.0%  ########################################\n"
            "  Curator only: these come from the data, do not publish."
        )

    def test_picture(self):
        figure = self.FOUND.picture()
        axes = figure.axes[0]
        assert [bar.get_width() for bar in axes.patches] == [1, 0, 3, 0, 12]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2", "3 to 4", "5 to 9", "10 to 19"]
        assert "do not publish" in " ".join(figure.get_supxlabel().split())

    def test_frozen(self):
        with pytest.raises(AttributeError):
            self.FOUND.k = 5


SURVEY = people(3, 200)
RESULTS = {
    "k_anonymity": lambda d: d.k_anonymity(["age", "zip"]),
    "k_map": lambda d: d.k_map(["age", "zip"], population=SURVEY),
    "k_map of a sample": lambda d: d.k_map(["age", "zip"], weights=3),
    "delta_presence": lambda d: d.delta_presence(["age", "zip"], population=SURVEY),
    "l_diversity": lambda d: d.l_diversity(["age", "zip"], "illness"),
    "t_closeness": lambda d: d.t_closeness(["age", "zip"], "score"),
    "unique_rows": lambda d: d.unique_rows(["age", "zip"], weights=3),
}


class TestEveryResult:
    """All results are shown alike: as the curator's, in words, as plain values, as a picture and in text."""

    @pytest.mark.whole
    @pytest.mark.parametrize("name", RESULTS)
    def test_shown(self, name):
        frame = SURVEY.iloc[:80]
        found = RESULTS[name](frame.dprisk)
        for said in (repr(found), found._repr_html_(), found.picture_text()):
            assert "do not publish" in said
        assert json.loads(json.dumps(found.to_dict()))["people"] == 80
        bars = [line.split() for line in found.picture_text().splitlines()[2:-1]]
        counted = 200 if name == "delta_presence" else 80  # its classes are those of the population
        numbers = [int(next(each for each in line[::-1] if each.isdigit())) for line in bars]
        assert sum(numbers) == counted
        axes = found.picture().axes[0]
        assert [bar.get_width() for bar in axes.patches] == numbers
        assert found.per_row().index.equals(frame.index)
        # The first of the worst has the number that the result is about.
        worst = found.worst(1).iloc[0]
        assert worst[found._main] in (*(getattr(found, told) for told in found._told), True)
