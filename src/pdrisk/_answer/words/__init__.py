"""Explanations of a release in words: `explained` for each audience, `participant` for one person."""

from pdrisk._answer.words.explain import AUDIENCES, explained, not_for_others, participant
from pdrisk._answer.words.languages import ENGLISH, LANGUAGES, texts
from pdrisk._core.risks.whole_numbers import common_denominator, counted, reached, times_right
from pdrisk._digits import probability

__all__ = [
    "AUDIENCES",
    "ENGLISH",
    "LANGUAGES",
    "common_denominator",
    "counted",
    "explained",
    "not_for_others",
    "participant",
    "probability",
    "reached",
    "texts",
    "times_right",
]
