"""Node, and clients for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def require_node(*packages: str) -> None:
    """Skip the test where Node or one of these npm packages is not installed; fail where `CI` is set.

    Args:
        packages: Names, such as `@azure/cosmos`, looked for as Node does: in `node_modules` of this folder and of all above.
    """
    given = [Path(place) for place in os.environ.get("NODE_PATH", "").split(os.pathsep) if place]
    folders = [*(folder / "node_modules" for folder in HERE.parents), *given]
    missing = [name for name in packages if not any((folder / name).is_dir() for folder in folders)]
    if shutil.which("node") is None or missing:
        message = f"Needs Node 20 or newer and `npm install {' '.join(missing)}`."
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
