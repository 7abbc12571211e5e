"""Sample data: a synthetic stand-in for the survey of the SOEP paper, and its schema. No row is a person's."""

from pdrisk.datasets.soep import EDUCATION, EMPLOYMENT, MISSING_CODES, SEXES, STATES, soep_like
from pdrisk.datasets.soep_schema import soep_like_schema

__all__ = ["EDUCATION", "EMPLOYMENT", "MISSING_CODES", "SEXES", "STATES", "soep_like", "soep_like_schema"]
