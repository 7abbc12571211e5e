"""docs/sql.md tells what is understood."""

import re
from pathlib import Path

from pdrisk._sql.expressions.allowed_functions import FUNCTIONS

DOCS = Path(__file__).parent.parent / "docs" / "sql.md"


def test_every_function_that_is_allowed_is_listed_and_no_other() -> None:
    listed = DOCS.read_text(encoding="utf-8").split("<!-- functions -->")[1].split("<!-- end -->")[0]
    assert sorted(re.findall(r"`([^`]+)`", listed)) == sorted(FUNCTIONS)
