"""What a read model reckons before it writes: long names, long ledgers and large states count as well."""

from __future__ import annotations

from exactlyonce import EntityTooLarge, Envelope
from exactlyonce.attempt import Handle, Work
from exactlyonce.handling.runner import Runner
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.sequences import Sequence
from exactlyonce.values.frozen_json import Json
from tests.unit.boards import BOARDS, SCREENS, Readers, scored

LONG = BOARDS.ref("\N{GRINNING FACE}" * 250)


class ReadersOfALongName(Readers):
    """A read model whose key is long."""

    def __init__(self) -> None:
        super().__init__()
        self.entity = LONG
        self._runner = Runner(BOARDS, LONG, SCREENS)

    def work(self, *messages: Envelope, handle: Handle | None = None) -> Work:
        return Work(LONG, messages, handle or self.handle, self._runner.absent)


def test_what_is_large_beside_the_state_that_there_is_can_never_be_held() -> None:
    readers = Readers()
    readers.delivered(scored(1, padding="x", keep=1_300_000))
    ((_, error),) = readers.delivered(scored(3, padding="x" * 700_000)).failed
    assert isinstance(error, EntityTooLarge)


def test_the_ledger_takes_room_in_the_document() -> None:
    sequences = tuple(Sequence("screens", f"screen-{number}", 1) for number in range(20_000))
    ledger = Ledger(1, type="board", protocol="resequencer", sequences=sequences)
    readers = Readers(entity_document(Json('{"id":"b","seen":[],"kept":""}'), ledger))
    ((_, error),) = readers.delivered(scored(1, padding="x", keep=700_000)).stopped
    assert isinstance(error, EntityTooLarge)


def test_keys_of_messages_take_room_in_a_batch() -> None:
    readers = Readers()
    readers.delivered(*(scored(number, id=f"{number}-{'m' * 45_000}") for number in range(1, 50)))
    assert readers.reception().next == 50


def test_the_key_of_the_read_model_takes_room_in_a_batch() -> None:
    for padding in range(35_000, 37_500, 100):
        readers = ReadersOfALongName()
        held = (scored(number, key=LONG.id, padding="x" * padding) for number in range(2, 51))
        finished = readers.delivered(*held)
        assert len(readers.waiting) + len(finished.failed) == 49
