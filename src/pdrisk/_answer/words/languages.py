"""Languages of the texts that people read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.words.english import TEXTS as ENGLISH
from pdrisk._core.foreign import shown
from pdrisk._model.unit import ONE_RECORD
from pdrisk.errors import ParameterError

__all__ = ["ENGLISH", "LANGUAGES", "of_rows", "texts"]

LANGUAGES: Final[dict[str, Mapping[str, str]]] = {"en": ENGLISH}


def texts(language: object, about: Answer | None = None) -> Mapping[str, str]:
    """The texts of a language by field; those about an answer are of what it hides, if that is not a person."""
    if not isinstance(language, str) or language not in LANGUAGES:
        raise ParameterError(f"unknown language {shown(language)}; available: {', '.join(LANGUAGES)}.")
    wording = LANGUAGES[language]
    if about is None or not (about.replaces or of_rows(about)):
        return wording
    variant = "replaced" if about.replaces else "of_rows"
    return {name: wording.get(f"{name}_{variant}", text) for name, text in wording.items()}


def of_rows(answer: Answer) -> bool:
    """Whether each row is protected by itself, where a person may have several."""
    return not (answer.has_person or answer.unit == ONE_RECORD)
