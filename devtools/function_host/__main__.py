"""Entry of `python -m devtools.function_host`."""

import sys

from .cli import main

sys.exit(main())
