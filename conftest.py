"""Tests write nothing into the home of whoever runs them."""

import os

os.environ.setdefault("PDRISK_SECRET", "of the tests, in the place of the file that pdrisk would make")
