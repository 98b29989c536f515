"""Entry of `python -m function_host`."""

import sys

from .cli import main

sys.exit(main())
