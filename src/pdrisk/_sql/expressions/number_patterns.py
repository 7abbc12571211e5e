"""Numbers written by a pattern of PostgreSQL's TO_CHAR, such as ``FM9,990.00``."""

from __future__ import annotations

import re
from typing import Final

from pdrisk._model.expressions.kinds import NOTHING, NUMBER, TEXT
from pdrisk._sql.syntax.pieces import Expression, case, written_constant
from pdrisk.errors import ParameterError

#: Digits by 9 and 0, with thousands apart; signs, exponents, and what a locale decides, are not read.
NUMBER_PATTERN: Final = re.compile(
    r"(?P<bare>FM)?(?P<whole>[90]{1,17}|[90]{1,3}(,[90]{3}){1,5})(\.(?P<rest>[90]{1,9}))?"
)
ADVICE: Final = "TO_CHAR writes a number by 9, 0, commas between thousands, a point and FM alone, as in 'FM9,990.00'"


def number_by_pattern(value: Expression, pattern: object) -> Expression:
    """A number as text."""
    read = NUMBER_PATTERN.fullmatch(pattern) if isinstance(pattern, str) else None
    if read is None or value.kind not in (NUMBER, NOTHING):
        raise ParameterError(f"{ADVICE}.")
    whole, rest = read["whole"], read["rest"] or ""
    digits = whole.replace(",", "")
    zeros = len(digits) - digits.index("0") if "0" in digits else 0
    if ("," in whole and zeros > 1) or (read["bare"] and "9" in rest) or "09" in rest:
        raise ParameterError(f"{ADVICE}; no zeros before commas, and behind the point zeros alone with FM.")
    number = f"round(CAST({value.sql} AS DOUBLE), {len(rest)})"
    size = f"abs({number})"
    sql = f"format('{{:{',' * (',' in whole)}.{len(rest)}f}}', {size})"
    if zeros > 1:
        sql = case([(f"{size} < 1e{zeros - 1}", f"lpad({sql}, {zeros + len(rest) + bool(rest)}, '0')")], sql)
    elif rest and not zeros:
        sql = case([(f"{size} < 1", f"substring({sql}, 2)")], sql)
    hidden = written_constant(re.sub("[90]", "#", str(pattern).removeprefix("FM")))
    sql = case([(f"{size} >= 1e{len(digits)}", hidden)], f"({sql})")
    sql = f"{case([(f'{number} < 0', written_constant('-'))], written_constant(''))} || ({sql})"
    sql = sql if read["bare"] else f"lpad({sql}, {len(str(pattern)) + 1}, ' ')"
    return Expression(f"TRY({sql})", TEXT, "VARCHAR")
