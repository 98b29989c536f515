"""How tests start the command: from the package's own folder, so that a process imports what stands there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[1]
COMMAND: Final = (sys.executable, "-m", "local_cosmos", "--port", "0")
