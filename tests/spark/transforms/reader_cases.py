"""Damage to read models that take messages in order."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.records.companions import NumberedMessage
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outbox import Reception
from exactlyonce.values.envelope import message_key
from exactlyonce.values.frozen_json import Json
from tests.spark.transforms.planting import (
    DAY,
    MINUTE,
    NOW,
    Cases,
    Planted,
    age_of,
    channel_of,
    damage,
    numbered,
    reader,
    reception,
    ref,
)
from tests.spark.transforms.record_cases import beside

ONE, OTHER = "shop/of%20nobody", "shop/of%20somebody"

EXPECTED: Cases = {}


@damage(EXPECTED, lambda _: {("ledger_hole", None, (), held(2, 3))})
def number_passed_over(case: str) -> list[Planted]:
    planted = reader(case)
    del planted.companions[1:3]
    return [planted]


@damage(EXPECTED, lambda _: {("document_lost", None, (), None)})
def read_model_gone(case: str) -> list[Planted]:
    return [replace(reader(case), gone=True)]


@damage(EXPECTED, lambda _: {("document_lost", None, (), channel_of(source)) for source in (ONE, OTHER)})
def number_above_the_next(case: str) -> list[Planted]:
    """A document of the read model of before: of one source it says less, and of another nothing."""
    board = reader(case)
    board.companions.append((numbered(board.entity, 1, DAY, source=OTHER), DAY))
    return [_receiving(board, reception(ONE, 3))]


@damage(EXPECTED, lambda _: {("sequence_gap", None, (), f"{channel_of(ONE)} 5")})
def waiting(case: str) -> list[Planted]:
    held = reception(ONE, 5, held=((7, 7), (9, 10)), gap_since=NOW - 11 * MINUTE)
    return [_receiving(reader(case), held, 7, 9, 10)]


def _receiving(board: Planted, item: Reception, *held: int) -> Planted:
    body = Json.of({"secret": 6})
    board.companions += [
        (numbered(board.entity, number, 11 * MINUTE, source=ONE, held=body), 11 * MINUTE) for number in held
    ]
    return board.having(receptions=(item,))


@damage(EXPECTED, lambda _: {("sequence_gap", None, (), held(2, 3))})
def skipped(case: str) -> list[Planted]:
    board = reader(case)
    none = [numbered(board.entity, number, DAY, source=ONE, message=None) for number in (2, 3)]
    board.companions[1:3] = [(item, DAY) for item in none]
    return [board]


@damage(
    EXPECTED,
    lambda _: {("sequence_gap", None, (), held(*run, source)) for source in (ONE, OTHER) for run in ((2, 3), (5, 5))},
)
def skipped_in_two_runs(case: str) -> list[Planted]:
    """The same numbers of two sources, each with one in between that was not skipped."""
    board = ref("reader", case)
    taken = [
        numbered(board, number, DAY, source=source, **({"message": None} if number in (2, 3, 5) else {}))
        for source in (ONE, OTHER)
        for number in range(1, 7)
    ]
    return [_board(case, (reception(ONE, 7), reception(OTHER, 7)), *taken)]


@damage(EXPECTED, lambda _: {("sequence_gap", message_key(ONE, "n-2"), (), f"{channel_of(ONE)} 2")})
def two_with_one_number(case: str) -> list[Planted]:
    board = reader(case)
    return [beside(board, numbered(board.entity, 2, DAY, source=ONE, message=message_key(ONE, "other")))]


@damage(EXPECTED, lambda _: {("stuck_reader", message_key(ONE, "n-5"), (), f"{channel_of(ONE)} 5")})
def stuck(case: str) -> list[Planted]:
    return [_receiving(reader(case), reception(ONE, 5, held=((5, 6),), failing="HandlerFailed"), 5, 6)]


@damage(EXPECTED, lambda _: {("stuck_reader", None, (), f"{channel_of(ONE)} 7")})
def held_and_gone(case: str) -> list[Planted]:
    return [_receiving(reader(case), reception(ONE, 5, held=((6, 8),), gap_since=NOW - 9 * MINUTE), 6, 8)]


@damage(
    EXPECTED,
    lambda _: {
        ("stuck_reader", None, (), f"{channel_of(ONE)} 7"),
        ("stuck_reader", None, (), f"{channel_of(OTHER)} 10"),
    },
)
def held_of_another_source(case: str) -> list[Planted]:
    """Of one source the number that is gone is there of another; of the other the second range has lost one."""
    held, gap = {ONE: (6, 8), OTHER: (7, 9)}, NOW - 9 * MINUTE
    body = Json.of({"secret": 6})
    documents = [
        numbered(ref("reader", case), number, 9 * MINUTE, source=source, held=body)
        for source, numbers in held.items()
        for number in numbers
    ]
    receptions = (
        reception(ONE, 5, held=((6, 8),), gap_since=gap),
        reception(OTHER, 5, held=((7, 7), (9, 10)), gap_since=gap),
    )
    return [_board(case, receptions, *documents)]


@damage(EXPECTED, lambda _: {("at_most_one_state_change", message_key(ONE, "n-2"), (), None)})
def one_number_of_two_sources(case: str) -> list[Planted]:
    """One message, at the same number of two channels."""
    board = ref("reader", case)
    taken = [numbered(board, number, 2 * DAY, source=source) for source in (ONE, OTHER) for number in (1, 2)]
    taken[3] = replace(taken[3], message=taken[1].message)
    return [_board(case, (reception(ONE, 3), reception(OTHER, 3)), *taken)]


def _board(case: str, receptions: tuple[Reception, ...], *documents: NumberedMessage) -> Planted:
    ledger = Ledger(version=4, type="reader", protocol="resequencer", receptions=receptions)
    return Planted(
        ref("reader", case), ledger, 2 * DAY, companions=[(document, age_of(document.at)) for document in documents]
    )


def held(first: int, last: int, source: str = ONE) -> str:
    return f"{channel_of(source)} {first}-{last}"
