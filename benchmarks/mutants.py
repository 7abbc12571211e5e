"""Mutants: single lines of core, judge, ledger and answers made wrong, each of which the default tests must notice.

    python benchmarks/mutants.py [NUMBER ...]

It changes a copy of the repository, never the files here, and runs the tests that are there for the line. A mutant that
they pass meets all default tests, one that passes these too survives: write the test that was missing. A line that is
not there any more is to be replaced by the one that has its meaning now.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
# Among them the test that each line below is there: it would notice every mutant.
LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", ".hypothesis", "test_mutants.py")
LONGEST = 1800  # seconds of one run of tests: a mutant that hangs is noticed too

CORE = "sensitivity risk lattice worlds arithmetic mechanisms identifiability engine ranks"
NOISE = "mechanisms noise_lattice noise_distribution people_sensitivity whole_sums release"
JUDGE = "query refusals people private_keys joint groups wrong_types accessor sql_options"
LEDGER = (
    "ledger ledger_numbers ledger_rules ledger_audit ledger_curators ledger_least_group ledger_memory ledger_curator"
)
ANSWER = (
    "release curators_part facts_read ledger_rounding ledger_rules ledger_least_group ledger_curator tables printing"
)

MARGINS = "margins_least_squares margins_whole margins_asked consistent attack_margins"

# The file, what stands there once, what is written in its place, and the tests that are there for it.
MUTANTS = [
    # What a statistic is, and how far a record moves it.
    ("_core/statistics.py", "mu - universe.lo) / (n + 1)", "mu - universe.lo) / (n + 2)", CORE),
    ("_core/statistics.py", "(mu - records) / np.maximum(summary.n - 1, 1)", "(mu - records) / summary.n", CORE),
    ("_core/statistics.py", "(summary.singles > 0) & (summary.singles < summary.n)", "(summary.singles > 0)", CORE),
    ("_core/statistics.py", "-np.inf if universe.lo < 0", "-np.inf if universe.lo <= 0", CORE),
    ("_core/spread.py", "(4 if self.ddof == 0 else 2)", "(2 if self.ddof == 0 else 4)", CORE),
    ("_core/spread.py", "np.where(n > 2, remove, -variance)", "np.where(n > 1, remove, -variance)", CORE),
    ("_core/order.py", "summary, left, 2) - self", "summary, left, 1) - self", CORE),
    ("_core/order.py", "np.where(records == first, second, first)", "np.where(records == first, first, first)", CORE),
    ("_core/lattice.py", "change / Fraction(step)) + 1)", "change / Fraction(step)))", "lattice " + CORE),
    ("_core/lattice.py", "math.ceil(Fraction(magnitude)", "math.floor(Fraction(magnitude)", "lattice " + CORE),
    ("_core/lattice.py", "0.5 - lo * per_unit)", "0.0 - lo * per_unit)", "engine " + CORE),
    ("_core/risks/risk.py", "(1 - prior) / prior * np.exp", "prior / (1 - prior) * np.exp", "risk " + CORE),
    ("_core/risks/risk.py", "(belief(loss, priors) > risks) & (loss > 0)",
     "(belief(loss, priors) > 1) & (loss > 0)", "risk"),
    ("_core/risks/worlds.py", "(left + (right - self.mass))", "(left + right)", "worlds " + CORE),
    # What noise is drawn for.
    ("_mechanisms/two_sums.py", "self._sums(summary), PLACES", "self._sums(summary), PLACES // 2", NOISE),
    ("_mechanisms/two_sums.py", "np.minimum(low - more, value)", "np.minimum(low + more, value)", NOISE),
    ("_mechanisms/contract/base.py", "_success(float(self.eps_of(weight)))", "_success(float(self.eps))", NOISE),
    ("_mechanisms/geometric.py", "- math.log1p(-level)) / rate - 1)", "- math.log1p(-level)) / rate - 2)", NOISE),
    # Cells and margins: estimates, whole numbers, and what each measured table costs.
    ("_core/margins/least_squares.py", "self._times(axes, part) ** 2", "self._times(axes, part)", MARGINS),
    ("_core/margins/least_squares.py", "term - weights[more] / self", "term + weights[more] / self", MARGINS),
    ("_core/margins/nonnegative.py", "(times[part] / variances[part] + pull)", "(1 / variances[part] + pull)", MARGINS),
    ("_core/margins/nonnegative.py", "falling >= surplus", "falling > surplus - 1", MARGINS),
    ("_core/margins/allotment.py", "self.use / variance[:, None]", "self.use", MARGINS),
    ("_core/margins/summaries.py", "grid[places] = numbers", "grid[...] = numbers", MARGINS),
    ("_mechanisms/laws/fieller.py", "critical[::-1]", "critical", MARGINS),
    ("_answer/releasing.py", "universe, share * part)", "universe, share)", MARGINS),
    ("_answer/tables/adjusted.py", "math.sqrt(5 * free)", "math.sqrt(50 * free)", MARGINS),
    ("_ledger/rules/question.py", 'asked["margins"] = query.margins.said', "pass", MARGINS),
    # What is refused, and what a question costs.
    ("_model/query.py", "else total * self.times", "else total", JUDGE + " relations functions_noise ledger"),
    ("_model/query.py", "share if weight == 1 else share / weight", "share", JUDGE),
    ("_model/query.py", "listed and all(", "listed and any(", JUDGE + " ledger_memory ledger_curator"),
    ("_model/answering.py", "line.universe.magnitude <= LARGEST_WHOLE", "line.universe.magnitude <= 2**62", JUDGE),
    ("_model/unit.py", "way == ONE or set(by) <=", "way == ONE or set(by) &", JUDGE),
    ("_model/unit.py", "bool(columns) and set(columns) <=", "bool(columns) and set(columns) &", "people"),
    ("_model/unit.py", "if not 1 <= number <= MOST_ROWS", "if not 0 <= number <= MOST_ROWS", JUDGE),
    ("_model/unit.py", "min(most, max(listed, 1))", "1", "people ledger_least_group"),
    ("_model/unit.py", "self.rows if self.overall else", "1 if self.overall else", "people people_joint_loss"),
    ("_model/unit.py", "return self.largest_change(by_rows)", "return by_rows(self.rows)", "people_joint_loss"),
    ("_model/unit.py", "counts_ids and rows is not None", "counts_ids and False", "people_in_all_groups"),
    ("attack/_ledger.py", "min(rows, listed)", "rows", "attack_ledger"),
    ("engines/numpy/person_records.py", "self._hashes_of(keys, at))", "at.astype(np.uint64))",
     "private_keys_neighbours"),
    ("engines/numpy/smallest_hashes.py", "faulty = np.bitwise_count(sums) != added", "faulty = added > 99", "people"),
    ("_model/answering.py", "len(members) <= levels", "len(members) < levels", JUDGE + " approximate_quantiles"),
    ("_model/groups/private_keys.py", "return eps / 2 if are_private", "return eps if are_private", JUDGE),
    ("_model/groups/private_keys.py", "<= exact <= LARGEST_DELTA", "<= exact", JUDGE + " partition_selection"),
    ("_model/arguments.py", "isfinite(number) or number <= 0", "isfinite(number) or number < 0", JUDGE),
    ("_model/arguments.py", "if not 0 <= number <= 1", "if not 0 <= number", JUDGE),
    # What a condition means, and whose rows are chosen.
    ("_model/rowwise/decide.py", "yes = yes | missing_of(value)", "yes = yes", "one_meaning rowwise_accepted"),
    ("engines/sql/compiler/comparisons.py", '(">", ">=", "!=") else', '(">", ">=") else', "one_meaning"),
    ("engines/sql/compiler/comparisons.py", '"!=": [left, right]', '"!=": [right]', "one_meaning"),
    ("_relations/pruned.py", "& _columns_of(relation.right)", "& _columns_of(relation.left)", "canonical"),
    ("_relations/canonical.py", 'return ["bool", value]', 'return ["int", str(int(value))]', "canonical"),
    ("engines/sql/compiler/numbers.py", "WHEN {rest} >= {half}", "WHEN {rest} > {half}", "functions_of_engines"),
    ("engines/sql/compiler/relation.py", 'not in ("rank", "dense_rank")', 'in ("rank",)', "sql_elsewhere_joins"),
    ("_relations/owners.py", "self.is_proven and is_proven", "self.is_proven", "relations"),
    # What is paid, kept and checked.
    ("_ledger/rules/limits.py", "before.eps + eps > limit", "before.eps + eps >= limit", LEDGER),
    ("_ledger/rules/limits.py", "before.queries + cost.queries > most", "before.queries > most", LEDGER),
    ("_ledger/rules/limits.py", "Fraction(math.ceil(eps * DIGITS)", "Fraction(math.floor(eps * DIGITS)", LEDGER),
    ("_ledger/rules/limits.py", "math.floor(share * DIGITS)", "math.ceil(share * DIGITS)", "private_keys_several"),
    ("_ledger/accounts/account.py", "lambda: max([now,", "lambda: min([now,", LEDGER),
    ("_ledger/accounts/account.py", "limits, spent[self.analyst], alone", "limits, spent[EVERYBODY], alone", LEDGER),
    ("_ledger/rules/policy.py", "sum(self.counted(query)) * query.times", "sum(self.counted(query))", LEDGER),
    ("_ledger/rules/policy.py", "return folded(analyst)", "return not self.curators or folded(analyst)", LEDGER),
    ("_ledger/accounts/payer.py", "kept = None if fresh else", "kept =", LEDGER),
    ("_ledger/accounts/audit.py", "if seq != last + 1", "if seq < last + 1", LEDGER),
    ("_ledger/accounts/replay.py", "(cost.delta > 0 and rules", "(cost.delta > 1 and rules", "private_keys_ledger"),
    ("_ledger/rules/limits.py", "if mu2 <= left:", "if mu2 <= left * 2:", "ledger_success"),
    ("_core/risks/gaussian_dp.py", "min(normal_cdf(math.sqrt(mu2) / 2)", "min(normal_cdf(math.sqrt(mu2) / 4)",
     "gaussian"),
    ("_ledger/accounts/curator_facts.py", "np.where(rows > 1, rows * float(eps), sums)", "sums", "ledger_curator"),
    ("_ledger/accounts/memory.py", "if self.has_changed or not query", "if not query", "ledger_memory " + LEDGER),
    # What an answer shows, and to whom.
    ("_answer/releasing.py", "sees = bool(curator) or payer is None", "sees = True", ANSWER),
    ("_answer/releasing.py", "sizes[line.people] < least.size", "sizes[line.people] <= least.size", ANSWER),
    ("_answer/releasing.py", "        if query.is_private:  #", "        if True:  #", "ledger_memory " + ANSWER),
    ("_answer/answers/noisy.py", "np.floor(low / base)", "np.rint(low / base)", ANSWER),
    ("_answer/answers/noisy.py", "worst if self.looked else", "worst if not self.looked else", ANSWER),
    ("_answer/answers/noisy.py", "np.where(self.withheld, np.nan, low)", "low", ANSWER),
    ("_answer/answers/facts.py", "(number, loss + looked, between)", "(number, loss, between)", ANSWER),
    ("_answer/answers/facts.py", "number = -(-n // unit.rows)", "number = n", ANSWER + " people"),
    ("_answer/publishing.py", "if answer.bounds_from_data:", "if False:", ANSWER),
    ("_answer/release.py", "self.noisy, self.column)  #", "self.noisy, self.column, self.curator)  #", ANSWER),
]  # fmt: skip


def passes(copy: Path, tests: list[str]) -> bool:
    """Whether these tests pass in the copy, as they run by default, and within the time."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=copy, env=os.environ | {"PYTHONPATH": str(copy / "src")}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, check=False, timeout=LONGEST,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def files_of(copy: Path, tests: str) -> list[str]:
    """The files of these tests, in whatever folder each is."""
    return [str(file) for name in tests.split() for file in (copy / "tests").rglob(f"test_{name}.py")]


def fate(copy: Path, file: str, old: str, new: str, tests: str) -> str:
    """What becomes of one mutant."""
    path = copy / "src" / "pdrisk" / file
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        return f"GONE: {text.count(old)} lines have that text"
    path.write_text(text.replace(old, new), encoding="utf-8")
    named = files_of(copy, tests)
    try:
        if not passes(copy, named):
            return "killed"
        return "killed by other tests" if not passes(copy, []) else "SURVIVES"
    finally:
        path.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("number", nargs="*", type=int, help="of a mutant, from 1; all unless given")
    chosen = parser.parse_args().number or range(1, len(MUTANTS) + 1)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="pdrisk-mutants-") as folder:
        copy = Path(folder)
        shutil.copytree(REPOSITORY, copy, ignore=LEFT_OUT, dirs_exist_ok=True)
        named = sorted({file for number in chosen for file in files_of(copy, MUTANTS[number - 1][3])})
        if not passes(copy, named):
            sys.exit("these tests fail as the code is: " + " ".join(named))
        for number in chosen:
            file, old, new, tests = MUTANTS[number - 1]
            found = fate(copy, file, old, new, tests)
            wrong += not found.startswith("killed")
            print(f"{number:3} {found}: {file}: {old}  ->  {new}", flush=True)
    print(f"{wrong} of {len(chosen)} are not killed")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
