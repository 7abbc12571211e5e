"""Languages of the texts that people read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pdrisk._answer.words.english import TEXTS as ENGLISH
from pdrisk._core.foreign import shown
from pdrisk.errors import ParameterError

__all__ = ["LANGUAGES", "texts"]

LANGUAGES: Final[dict[str, Mapping[str, str]]] = {"en": ENGLISH}


def texts(language: object, *, replaces: bool = False) -> Mapping[str, str]:
    """The texts of a language by field; with ``replaces`` those about replaced records where they differ."""
    if not isinstance(language, str) or language not in LANGUAGES:
        raise ParameterError(f"unknown language {shown(language)}; available: {', '.join(LANGUAGES)}.")
    said = LANGUAGES[language]
    return {name: said.get(f"{name}_replaced", text) for name, text in said.items()} if replaces else said
