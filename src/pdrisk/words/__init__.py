"""What a release means, in words: `explained` for everybody who has to know, `participant` for one person."""

from pdrisk.digits import probability
from pdrisk.words.counts import common_denominator, counted, reached, times_right
from pdrisk.words.explain import AUDIENCES, explained, not_for_others, participant
from pdrisk.words.languages import LANGUAGES, texts
from pdrisk.words.told import Exposed, Line, Told

__all__ = [
    "AUDIENCES",
    "LANGUAGES",
    "Exposed",
    "Line",
    "Told",
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
