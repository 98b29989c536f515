"""Worlds in which nothing has happened yet. They are imported late, since a mutant takes the place of a module before that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.boards import Readers
    from tests.unit.script import Script


@pytest.fixture
def script() -> Script:
    """That of the sample entity."""
    from tests.unit.script import Script

    return Script()


@pytest.fixture
def readers() -> Readers:
    """That of a read model."""
    from tests.unit.boards import Readers

    return Readers()
