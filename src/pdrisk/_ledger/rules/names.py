"""Names of datasets and analysts, checked."""

from __future__ import annotations

import getpass
import unicodedata

from pdrisk._ledger.store.store import Ask, Store, decoded, text_in
from pdrisk.errors import ColumnTypeError, ParameterError


def named(what: str, value: object) -> str:
    """A name of one line."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ColumnTypeError(f"{what} must be a name, as text in one line that is not empty.")
    return value


def check_asker(store: Store, analyst: str | None) -> None:
    """Refuse a name other than the session's, if the database knows who asks."""
    if store.analyst is not None and analyst not in (None, store.analyst):
        raise ParameterError(
            f"{store.place} knows who asks: the role of the session, {store.analyst!r}, not {analyst!r}. Leave "
            "analyst= out, or connect as that role."
        )


def folded(name: str) -> str:
    """A name in the form by which names are compared: capitals, blanks and the composition of letters do not count."""
    whole = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(whole.split())


def user() -> str:
    """Name of the operating system's user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def names_of(ask: Ask, place: str) -> list[str]:
    """The datasets of a ledger, in order."""
    rows = ask("SELECT name FROM datasets")
    return decoded(place, lambda: sorted(text_in(name) for (name,) in rows))


def known_as(ask: Ask, place: str, dataset: str, analyst: str) -> str:
    """An analyst's name as spelled at the first payment, so that Anna and anna share one budget."""
    if ask("SELECT 1 FROM spending WHERE dataset = ? AND analyst = ? AND period = ''", (dataset, analyst)):
        return analyst
    rows = ask("SELECT analyst FROM spending WHERE dataset = ? AND period = '' ORDER BY analyst", (dataset,))
    alike = decoded(place, lambda: [name for (name,) in rows if folded(name) == folded(analyst)])
    return alike[0] if alike else analyst
