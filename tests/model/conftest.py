"""The real stack for traces of the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_cosmos.inprocess import RunningEmulator
from verification.reproduction.reality import emulator_of_the_model


@pytest.fixture(scope="module")
def emulator() -> Iterator[RunningEmulator]:
    with emulator_of_the_model() as running:
        yield running
