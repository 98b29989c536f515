"""Damage to what outboxes know of numbered messages, or to the messages themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from exactlyonce.records.channels import Channel, Forgotten
from exactlyonce.records.ledger import Apart
from exactlyonce.records.library import ChannelDocument
from tests.spark.transforms.planting import (
    DAY,
    HOUR,
    MINUTE,
    Planted,
    apart,
    channel,
    channel_of,
    kept,
    placed,
    receiver,
    ref,
    sealed,
    sender,
    sent,
    staged,
    told,
    with_entries,
)

Named = tuple[str, str | None, tuple[int, ...], str | None]
Plant = Callable[[str], list[Planted]]
NOBODY = "shop/of%20nobody"


def last_numbers_lost(case: str) -> list[Planted]:
    shop = sender(case, 9)
    return [shop, receiver(case, channel(shop.entity.source, (1, 7)), version=7)]


def all_numbers_lost(case: str) -> list[Planted]:
    return [sender(case, 2), receiver(case, version=0)]


def number_lost(case: str) -> list[Planted]:
    """The ledger and the document of the channel know different numbers, and neither knows one of them."""
    shop = sender(case, 9)
    board = receiver(case, channel(shop.entity.source, (6, 9)), version=8, apart=Apart(channels=True, sealed=True))
    board.records.append((apart(board.entity, 4, channel(shop.entity.source, (1, 3), (5, 6))), 3 * DAY))
    return [shop, board]


def number_of_nobody_lost(case: str) -> list[Planted]:
    return [receiver(case, channel(NOBODY, (2, 3), (6, 6)), version=3)]


def number_lost_of_a_busy_source(case: str) -> list[Planted]:
    """All are written all the time. A commit of two hours ago gave out number 5: of those that lack, only 2 to 5 are late."""
    shop = sender(case, 9, age=MINUTE)
    board = receiver(case, channel(shop.entity.source, (1, 1), (8, 9)), version=3, age=MINUTE)
    given = sent(shop.entity, "web/m-5", place=placed(shop.entity.source, board.entity, 5))
    return [
        with_entries(shop, told(shop.entity, 5, 2 * HOUR, outputs=(given,)), told(shop.entity, 6, MINUTE)),
        board,
    ]


def number_owed(case: str) -> list[Planted]:
    """It is late, and not lost: its source owes it."""
    shop = sender(case, 7)
    board = receiver(case, channel(shop.entity.source, (1, 6)), version=6)
    owed = sent(shop.entity, "web/m-6", place=placed(shop.entity.source, board.entity, 7))
    entry = told(shop.entity, 6, 2 * DAY, owed="staged", staged=True, outputs=(owed,))
    shop.records.append((staged(shop.entity, entry), 2 * DAY))
    return [with_entries(shop, told(shop.entity, 5, 3 * DAY), entry), board]


def source_restored(case: str) -> list[Planted]:
    shop = sender(case, 7)
    return [shop, receiver(case, channel(shop.entity.source, (1, 9)), version=9)]


def ledger_restored(case: str) -> list[Planted]:
    """It counts fewer messages than it has numbers and a foreign one."""
    board = receiver(case, channel(NOBODY, (1, 6)), version=6)
    return [with_entries(board, told(board.entity, 5, 2 * DAY))]


def receiver_gone(case: str) -> list[Planted]:
    """What is left of it is a channel."""
    board = receiver(case, version=9)
    return [replace(board, gone=True, records=[(apart(board.entity, 7, channel(NOBODY, (1, 7))), DAY)])]


def sealed_and_gone(case: str) -> list[Planted]:
    """What is left of it is its seal."""
    board = receiver(case, version=17)
    return [replace(board, gone=True, records=[(sealed(board.entity), DAY)])]


def behind_its_channels(case: str) -> list[Planted]:
    """A document of a channel was read from a younger ledger."""
    board = receiver(case, version=3, apart=Apart(channels=True, sealed=True))
    board.records = [(apart(board.entity, 4, channel(NOBODY, (1, 4))), DAY), (sealed(board.entity), DAY)]
    return [board]


def channel_forgotten(case: str) -> list[Planted]:
    """A document of an earlier turn is left, which says less than what was forgotten: it does not count."""
    shop, board = sender(case, 9), forgetful(case)
    board.records.append((_began(10, board, shop, (3, 4)), 3 * DAY))
    return [_numbering(shop, f"{10:012x}"), board]


def survivor_lacks_a_number(case: str) -> list[Planted]:
    """Documents of the turn count, and so do those of channels that began after the mark."""
    shop, board = sender(case, 9), forgetful(case)
    board.records.append((replace(_began(9, board, shop, (2, 4)), turn="turn"), 3 * DAY))
    board.records.append((_began(11, board, shop, (3, 4)), 3 * DAY))
    return [shop, board]


def forgetful(case: str) -> Planted:
    """An outbox that has forgotten channels, and counts their messages."""
    forgotten = Forgotten(10, "turn")
    return receiver(case, version=9, apart=Apart(channels=True, sealed=True, forgotten=forgotten))


def _began(at: int, board: Planted, shop: Planted, *received: tuple[int, int]) -> ChannelDocument:
    return apart(board.entity, 4, Channel(f"{at:012x}", shop.entity.source, received))


def _numbering(shop: Planted, channel: str) -> Planted:
    """The shop as the source of a channel."""
    assert shop.ledger is not None
    (sequence,) = shop.ledger.sequences
    return replace(shop, ledger=replace(shop.ledger, sequences=(replace(sequence, channel=channel),)))


def applied_as_two(case: str) -> list[Planted]:
    """Foreign messages still leave entries and records."""
    board = receiver(case, channel(NOBODY, (1, 3)), version=5)
    twice = [told(board.entity, version, 2 * DAY, message="web/m", tx=f"tx-{version}") for version in (2, 5)]
    board.records.append((kept(board.entity, twice[0]), 2 * DAY))
    return [with_entries(board, twice[1])]


def _of(case: str) -> str:
    return channel_of(ref("shop", case).source)


EXPECTED: Mapping[str, tuple[Plant, Callable[[str], set[Named]]]] = {
    "last numbers lost": (last_numbers_lost, lambda case: {("output_lost", None, (), f"{_of(case)} 8")}),
    "all numbers lost": (all_numbers_lost, lambda case: {("output_lost", None, (), f"{_of(case)} 1")}),
    "number lost": (number_lost, lambda case: {("number_missing", None, (), f"{_of(case)} 4")}),
    "number of nobody lost": (
        number_of_nobody_lost,
        lambda _: {("number_missing", None, (), f"{channel_of(NOBODY)} {number}") for number in (1, 4)},
    ),
    "number lost of a busy source": (
        number_lost_of_a_busy_source,
        lambda case: {("number_missing", None, (), f"{_of(case)} 2")},
    ),
    "number owed": (number_owed, lambda _: {("output_owed", "web/m-6", (6,), "tx-6")}),
    "source restored": (source_restored, lambda case: {("channel_ahead", None, (), f"{_of(case)} 8")}),
    "ledger restored": (ledger_restored, lambda _: {("count_mismatch", None, (6,), None)}),
    "receiver gone": (receiver_gone, lambda _: {("document_lost", None, (), None)}),
    "sealed and gone": (sealed_and_gone, lambda _: {("document_lost", None, (), None)}),
    "behind its channels": (behind_its_channels, lambda _: {("document_lost", None, (), None)}),
    "channel forgotten": (channel_forgotten, lambda _: set()),
    "survivor lacks a number": (
        survivor_lacks_a_number,
        lambda _: {("number_missing", None, (), f"{began:012x} 1") for began in (9, 11)},
    ),
    "applied as two": (applied_as_two, lambda _: {("at_most_one_state_change", "web/m", (2, 5), None)}),
}
