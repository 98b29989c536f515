"""The page's quickstart runs, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from local_service_bus.testing import require_endpoint

PACKAGE = Path(__file__).resolve().parents[1]


def test_the_quickstart_loses_a_lock() -> None:
    require_endpoint()
    code = re.findall(r"^```python\n(.*?)^```", (PACKAGE / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    ran = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "Delivered again: one\n"), ran.stderr
