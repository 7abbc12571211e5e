"""The functions a query may use: each decides a record by that record alone, and gives the same answer every time.

None of them is trusted not to fail: what could, is asked inside TRY, which makes it NULL for that record.
"""

from __future__ import annotations

from dataclasses import dataclass

from pdrisk._model.expressions.kinds import DATE, INTERVAL, NOTHING, NUMBER, TEXT, TIME, TRUTH
from pdrisk._model.expressions.nearest import misspelt
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk.errors import ParameterError

_KINDS = {
    "n": (NUMBER,), "t": (TEXT,), "b": (TRUTH,), "d": (DATE, TIME), "c": (TEXT,), "u": (TEXT,), "i": (NUMBER,),
    "p": (INTERVAL,), "v": (INTERVAL,), "w": (TEXT,),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signature:
    """Kinds of a function's arguments and of its result."""

    # one letter each: n number, t text, b truth value, d date or time, c constant text, u unit of time, i
    # constant integer, p constant interval, v interval, w unit of an interval; a final ``*`` repeats the letter
    # before
    arguments: str
    result: str  # a kind

    def fits(self, kinds: tuple[str, ...], constant: tuple[bool, ...]) -> bool:
        """Whether arguments of these kinds can be passed."""
        letters = self.arguments
        if letters.endswith("*"):
            letters = letters[:-1] + letters[-2] * (len(kinds) - len(letters) + 1)
        return len(letters) == len(kinds) and all(
            (kind in _KINDS[letter] or kind == NOTHING) and (fixed or letter not in "cuipw")
            for letter, kind, fixed in zip(letters, kinds, constant, strict=True)
        )


def _table() -> dict[str, tuple[Signature, ...]]:
    lines = {
        NUMBER: {
            "": "pi",
            "nn": "+ - * / // % ^ ** pow power mod fmod atan2 log",
            "n": "+ - abs round floor ceil ceiling trunc sqrt cbrt ln log log2 log10 exp sign sin cos tan asin "
            "acos atan "
            "radians degrees",
            "ni": "round trunc",
            "nn*": "greatest least",
            "niii": "width_bucket",
            "t": "length len strlen char_length character_length",
            "tt": "strpos instr position",
            "d": "year month day quarter week dayofweek weekday isodow dayofyear yearweek decade century hour "
            "minute second isoyear weekofyear dayofmonth epoch",
            "ud": "date_part datepart",
            "v": "epoch",
            "wv": "date_part datepart",
            "udd": "date_diff datediff date_sub datesub",
        },
        TRUTH: {
            "n": "isnan isinf isfinite",
            "tt": "contains starts_with prefix suffix ends_with",
            "tc": "~~ !~~ ~~* !~~* regexp_matches regexp_full_match",
        },
        TEXT: {
            "t": "lower upper lcase ucase trim ltrim rtrim reverse",
            "tn": "left right substr substring",
            "tnn": "substr substring",
            "tcc": "replace regexp_replace",
            "tccc": "regexp_replace",
            "tic": "lpad rpad",
            "dc": "strftime",
            "d": "dayname monthname",
            "tt": "||",
            "tt*": "concat",
            "tc": "regexp_extract",
            "tci": "regexp_extract split_part",
        },
        TIME: {
            "ud": "date_trunc datetrunc",
            "pd": "time_bucket",
            "dp": "date_add",
            "tc": "strptime try_strptime",
        },
        DATE: {"d": "last_day", "nnn": "make_date"},
    }
    table: dict[str, tuple[Signature, ...]] = {}
    for result, by_arguments in lines.items():
        for arguments, names in by_arguments.items():
            for name in names.split():
                table[name] = (*table.get(name, ()), Signature(arguments, result))
    return table


FUNCTIONS = _table()


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Others are not there for every type, and DuckDB says so only when it meets a record.
UNITS = _names("year quarter month week day hour minute second")
#: What ``date_part`` and EXTRACT take beside them, by the function that gives the same.
PARTS = {
    **{unit: unit for unit in UNITS}, **{f"{unit}s": unit for unit in UNITS if unit != "century"},
    "dow": "dayofweek", "dayofweek": "dayofweek", "weekday": "dayofweek", "isodow": "isodow", "doy": "dayofyear",
    "dayofyear": "dayofyear", "decade": "decade", "century": "century", "yearweek": "yearweek",
}  # fmt: skip
_CLOCK = _names(
    "now today current_date current_time current_timestamp get_current_timestamp localtime localtimestamp age"
)
_CHANCE = _names("random uuid gen_random_uuid uuidv4 uuidv7 setseed nextval currval")
_INSTEAD = {
    **dict.fromkeys(
        ("like_escape", "not_like_escape", "ilike_escape", "not_ilike_escape"),
        "ESCAPE is not understood: write contains(x, '%'), starts_with(x, '_') or regexp_matches(x, ...)",
    ),
    **dict.fromkeys(
        ("to_milliseconds", "to_microseconds", "to_decades", "to_centuries", "to_millennia", "to_quarters"),
        "this INTERVAL is not understood: write one of years, months, weeks, days, hours, minutes or seconds",
    ),
    **dict.fromkeys(
        ("typeof", "pg_typeof"),
        "typeof tells how a column is stored, which is public: look at the table, not at people",
    ),
    **dict.fromkeys(("~~~", "!~~~", "glob"), "GLOB is not understood: write LIKE, with % and _"),
    "to_char": "TO_CHAR of numbers writes noisy values alone, in the outer SELECT: leave it out here",
    "error": "error() would stop at a record and tell who is there: leave it out",
    **dict.fromkeys(
        ("bool_and", "bool_or", "every"),
        "BOOL_AND and BOOL_OR are decided by one person alone: ask how many there are, with "
        "COUNT(*) FILTER (WHERE ...)",
    ),
    "mode": "mode() picks the most frequent value: write COUNT(*) with GROUP BY, and ORDER BY COUNT(*) DESC LIMIT 1",
    "histogram": "HISTOGRAM counts records by public values, and stands in SELECT alone, beside groups",
    "hist": "SQL counts by values with HISTOGRAM(x): write that, or ask df.dprisk.hist",
    "average": "SQL's mean is AVG: write AVG(x)",
    **dict.fromkeys(("nunique", "n_unique"), "SQL counts different values with COUNT(DISTINCT x): write that"),
    **dict.fromkeys(("var", "std"), "SQL's are VAR_SAMP(x), VAR_POP(x), STDDEV_SAMP(x) and STDDEV_POP(x): write one"),
    "percentile": "SQL's percentile is QUANTILE_CONT(x, 0.9): write that",
    "unnest": "UNNEST makes several records of one, so that a person's share of the answer would have no bound",
    "grouping": "GROUPING belongs to ROLLUP, CUBE and GROUPING SETS, and is about one of their groups",
}
_EXACT = _names(
    "first last any_value arbitrary arg_max arg_min argmax argmin max_by min_by list array_agg string_agg group_concat "
    "listagg approx_top_k reservoir_quantile "
    "bit_and bit_or bit_xor bitstring_agg corr covar_pop covar_samp regr_slope regr_intercept regr_r2 regr_count "
    "product geomean geometric_mean kurtosis kurtosis_pop skewness entropy mad sem fsum sumkahan kahan_sum favg "
    "sum_no_overflow count_distinct json_group_array"
)


def check_clock(name: str) -> None:
    """Refuse functions that tell the time; some of them look like columns."""
    if name in _CLOCK:
        raise ParameterError(f"{name} changes with the clock: pass the day as a parameter, with ? and params=[...].")


def has_reason(name: str) -> bool:
    """Whether it is known why a function is refused everywhere."""
    return name in (_INSTEAD.keys() | _CHANCE | _CLOCK | _EXACT)


def signatures(name: str) -> tuple[Signature, ...]:
    """The forms of an allowed function."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in _INSTEAD:
        raise ParameterError(f"{_INSTEAD[name]}.")
    if name in _CHANCE:
        raise ParameterError(f"{name}() differs from record to record and from run to run, so no sensitivity is known.")
    check_clock(name)
    if name in _EXACT:
        raise ParameterError(
            f"{name}() is no statistic that pdrisk can add noise to: use COUNT, SUM, AVG, MEDIAN, QUANTILE_CONT, MIN, "
            "MAX, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, CORR, COVAR_POP, COVAR_SAMP or REGR_SLOPE."
        )
    nearest = misspelt(name, (*FUNCTIONS, *AGGREGATES), "{}()", is_other=workspace.is_function)
    raise ParameterError(
        f"{name}() is not on the list of functions known to decide each record by itself"
        + (f".{nearest}" if nearest else ": see docs/sql.md for the list, or compute the column beforehand.")
    )
