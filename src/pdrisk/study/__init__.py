"""Experiments of the SOEP paper on any data. Curator only: their results come from the data without noise."""

from pdrisk.study import figures, texts
from pdrisk.study.experiment import run
from pdrisk.study.exposure import exposure
from pdrisk.study.findings import findings

__all__ = ["exposure", "figures", "findings", "run", "texts"]
