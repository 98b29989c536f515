"""Processes that tests start import the packages of this checkout, whatever is installed: as pytest does by `pythonpath`."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGES = sorted(path.parent for path in (Path(__file__).resolve().parent / "packages").glob("*/pyproject.toml"))

_inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*map(str, PACKAGES), *filter(None, _inherited)]))
