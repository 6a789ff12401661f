"""``python -m fgl_core.cli`` is ``fgl``."""

import sys

from fgl_core.cli import main

sys.exit(main())
