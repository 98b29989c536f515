"""Apps for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from exactlyonce_dev_tests.apps import new_app


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The template as an app, on free ports, with this repository's Azurite."""
    return new_app(tmp_path)
