"""The papers' experiments on any data. Curator only: what these return comes from the data without noise."""

from pdrisk.study import figures, texts
from pdrisk.study.experiment import run
from pdrisk.study.exposure import exposure
from pdrisk.study.findings import findings

__all__ = ["exposure", "figures", "findings", "run", "texts"]
