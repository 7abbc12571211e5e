"""``python -m pdrisk.cli``."""

import sys

from pdrisk.cli import main

sys.exit(main())
