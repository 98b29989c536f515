"""Runs the emulator; `--help` explains it."""

import sys

from devtools.cosmos_emulator.cli import main

sys.exit(main())
