"""Where clean-up of blobs starts from."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from devtools.modelcheck.specification.occasions import DAMAGED, FIRST, FOREIGN, NEW, SECOND, crashed
from devtools.modelcheck.specification.occasions_ordered import ONE, WRITING
from devtools.modelcheck.specification.playing import ABSENT, Occasion, Start, message, process
from devtools.modelcheck.specification.settings import COLOCATED, PRESETS, STRATEGIES, STREAM, WAITING, protocol_of
from devtools.modelcheck.specification.stored import ENTITY, Stored
from exactlyonce.attempt import Memory
from exactlyonce.protocols.outbox.clean import clean_blobs
from exactlyonce.records.blobs import ListedBlob


def cleanings_of_blobs() -> Iterator[Occasion]:
    """Every occasion to delete blobs."""
    for preset in (*PRESETS, COLOCATED, STREAM, WAITING):
        for stored in _pasts(preset):
            yield Occasion(preset, cleaning_blobs(preset, stored), stored)


def cleaning_blobs(preset: str, stored: Stored) -> Start:
    """A clean-up with all blobs as candidates, when all are old."""
    blobs = sorted(stored.blobs, key=lambda blob: blob.name)
    listed = tuple(ListedBlob(blob.name, blob.author, timedelta(days=1)) for blob in blobs)
    return Start(clean_blobs, (ENTITY, listed, ABSENT, Memory(), protocol_of(STRATEGIES[preset])))


def _pasts(preset: str) -> Iterator[Stored]:
    """Blobs that were committed, lately or long ago; of attempts that died; and both."""
    strategy = STRATEGIES[preset]
    first, others = (WRITING, (ONE,)) if preset == WAITING else (message("m1", "blob"), (FIRST, SECOND, NEW))
    yield Stored()
    lost = crashed(strategy, Stored(), first, "entity")
    yield lost
    for before in (Stored(), lost):
        yield process(strategy, before, first)[1]
        yield process(strategy, before, first, *others)[1]
    _, processed = process(strategy, lost, first, *others)
    for document in (FOREIGN, DAMAGED):
        yield processed.with_entity(document)
    yield process(STRATEGIES[STREAM if preset == COLOCATED else COLOCATED], Stored(), NEW)[1]
