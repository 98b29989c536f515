"""The entry point."""

from __future__ import annotations

import sys

from exactlyonce.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
