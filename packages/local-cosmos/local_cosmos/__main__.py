"""Runs the emulator; `--help` explains it."""

import sys

from local_cosmos.cli import main

sys.exit(main())
