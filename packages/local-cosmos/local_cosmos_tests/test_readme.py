"""The page's quickstart runs, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def test_the_quickstart_loses_a_reply() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", (PACKAGE / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    ran = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("No reply, and yet it is there: {'id': '1', 'customer': 'ada'")
