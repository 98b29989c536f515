"""Where clean-up of what lies beside entities starts from."""

from __future__ import annotations

from collections.abc import Iterator

from devtools.modelcheck.specification.occasions import DAMAGED, FIRST, FOREIGN, NEW, SECOND, crashed
from devtools.modelcheck.specification.occasions_ordered import ONE, THREE, TWO
from devtools.modelcheck.specification.playing import Occasion, Start, process
from devtools.modelcheck.specification.settings import COLOCATED, STRATEGIES, STREAM, WAITING, protocol_of
from devtools.modelcheck.specification.stored import ENTITY, Stored
from exactlyonce.attempt import Memory
from exactlyonce.protocols.steps.clean_companions import clean_beside


def cleanings_beside() -> Iterator[Occasion]:
    """Every occasion to delete what lies beside an entity."""
    for preset in (COLOCATED, STREAM, WAITING):
        for stored in _pasts(preset):
            yield Occasion(preset, cleaning_beside(preset, stored), stored)


def cleaning_beside(preset: str, stored: Stored) -> Start:
    """A clean-up with all companions as candidates, when all are old."""
    candidates = tuple((id, etag) for id, (_, etag) in stored.companions().items())
    return Start(clean_beside, (protocol_of(STRATEGIES[preset]), ENTITY, candidates, Memory()))


def _pasts(preset: str) -> Iterator[Stored]:
    """Nothing; what was processed, and is owed or held; what others wrote over; and another protocol's."""
    strategy = STRATEGIES[preset]
    first, others = (ONE, (THREE,)) if preset == WAITING else (FIRST, (SECOND, NEW))
    yield Stored()
    processed = process(strategy, Stored(), first)[1]
    yield processed
    yield process(strategy, processed, *others)[1]
    yield crashed(strategy, Stored(), TWO if preset == WAITING else first, "entity")
    for document in (FOREIGN, DAMAGED):
        yield processed.with_entity(document)
