"""``python -m pytest_sandboxbench.cli``."""

import sys

from . import main

sys.exit(main())
