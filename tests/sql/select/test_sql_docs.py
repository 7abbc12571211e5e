"""docs/sql.md tells what is understood."""

import re

from paths import DOCS
from pdrisk._sql.expressions.allowed_functions import FUNCTIONS


def test_every_function_that_is_allowed_is_listed_and_no_other() -> None:
    listed = (DOCS / "sql.md").read_text(encoding="utf-8").split("<!-- functions -->")[1].split("<!-- end -->")[0]
    assert sorted(re.findall(r"`([^`]+)`", listed)) == sorted(FUNCTIONS)
