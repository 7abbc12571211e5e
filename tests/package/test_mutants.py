"""Each mutant of `benchmarks/mutants.py` is one that the code has, and that its tests can be run for."""

import ast
import sys
from collections import Counter

import pytest

from paths import BENCHMARKS, SOURCE, TESTS


@pytest.fixture(scope="module")
def mutants():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        import mutants

        yield mutants.MUTANTS
    sys.modules.pop("mutants")


class TestMutants:
    """Each is one line of the package, as it stands there today, made into another program."""

    def test_each_text_stands_once_in_its_file(self, mutants):
        sources = {file: (SOURCE / file).read_text(encoding="utf-8") for file, *_ in mutants}
        found = [(file, old, sources[file].count(old)) for file, old, *_ in mutants]
        assert [each for each in found if each[2] != 1] == []

    def test_each_is_another_program(self, mutants):
        """What does not compile, or means the same, would tell nothing of the tests."""
        for file, old, new, _ in mutants:
            source = (SOURCE / file).read_text(encoding="utf-8")
            before, after = ast.parse(source), ast.parse(source.replace(old, new))
            assert ast.dump(before) != ast.dump(after), f"{file}: {old}  ->  {new}"

    def test_none_stands_twice(self, mutants):
        assert [each for each, number in Counter(each[:3] for each in mutants).items() if number > 1] == []

    def test_the_tests_named_for_them_are_there(self, mutants):
        named = {name for *_, tests in mutants for name in tests.split()}
        assert sorted(name for name in named if not [*TESTS.rglob(f"test_{name}.py")]) == []
