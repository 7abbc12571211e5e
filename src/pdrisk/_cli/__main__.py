"""``python -m pdrisk._cli``."""

import sys

from pdrisk._cli import main

sys.exit(main())
