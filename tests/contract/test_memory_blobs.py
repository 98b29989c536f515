"""Blobs in memory do what every place for blobs has to do."""

from __future__ import annotations

import pytest

from exactlyonce.blobs.port import AsyncBlobs, AwaitedBlobs, MemoryBlobs
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.library import WriteOnce
from exactlyonce.records.blobs import Blob
from exactlyonce.testing.contracts.blobs import BlobContract


class TestMemoryBlobs(BlobContract):
    @pytest.fixture
    def blobs(self) -> AsyncBlobs:
        return AwaitedBlobs(MemoryBlobs())


@pytest.mark.parametrize(("outcome", "there"), [((True, False), True), ((False, False), False), ((False, True), False)])
def test_one_that_may_not_have_arrived_makes_all_of_them_unknown(outcome: tuple[bool, bool], there: bool) -> None:
    blobs = MemoryBlobs(outcome=lambda blob: outcome if blob.name == "b" else (True, True))
    assert blobs.perform(WriteOnce(tuple(Blob(name, b"", "t/x") for name in "abc"))) is UNKNOWN
    assert sorted(blobs.written) == (["a", "b", "c"] if there else ["a", "c"])
