"""Damage to entities that keep records, or entries of a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce.records.companions import record_id
from exactlyonce.records.outbox import Answer, Output
from exactlyonce.values.frozen_json import Json
from tests.spark.transforms.dumping import Stored
from tests.spark.transforms.planting import (
    DAY,
    PATHS,
    Cases,
    Planted,
    channel_of,
    colocated,
    damage,
    on_the_wire,
    placed,
    record,
    recorded,
    ref,
    sent,
    stream,
    stream_entry,
)

EXPECTED: Cases = {}


def beside(planted: Planted, companion: Any, id: str = "other") -> Planted:
    """With one more document, under an id that is not its own."""
    (stored,) = [
        item
        for item in replace(planted, companions=[(companion, 2 * DAY)], records=[], more=[]).stored()
        if "_kind" in item.document
    ]
    more = Stored(planted.entity.type, {**stored.document, "id": f"{id}:{len(planted.more)}"}, PATHS)
    return replace(planted, more=[*planted.more, more])


def _rival(planted: Planted, version: int = 3, **more: Any) -> Planted:
    """With another record of a version."""
    return beside(planted, record(planted.entity, recorded(planted.entity, version, 3 * DAY, **more)))


@damage(EXPECTED, lambda _: {("at_most_one_state_change", "web/m-2", (2, 4), None)})
def applied_twice_in_a_stream(case: str) -> list[Planted]:
    planted = stream(case)
    again = recorded(planted.entity, 4, 2 * DAY, message="web/m-2", tx="tx-new")
    return [beside(replace(planted, companions=planted.companions[:3]), stream_entry(planted.entity, again))]


@damage(EXPECTED, lambda _: {("two_owners", "web/m-0", (3,), None)})
def two_changes(case: str) -> list[Planted]:
    return [_rival(colocated(case), message="web/m-0", tx="tx-0")]


@damage(
    EXPECTED, lambda _: {("two_owners", "web/m-3", (3,), None), ("at_most_one_state_change", "web/m-3", (3,), None)}
)
def two_transactions(case: str) -> list[Planted]:
    return [_rival(colocated(case), tx="tx-0")]


@damage(EXPECTED, lambda _: {("ledger_hole", None, (3,), None)})
def hole_in_companions(case: str) -> list[Planted]:
    planted = colocated(case)
    del planted.companions[2]
    return [planted]


@damage(EXPECTED, lambda _: {("ledger_hole", None, (4,), None)})
def hole_at_the_top_of_a_stream(case: str) -> list[Planted]:
    planted = stream(case)
    del planted.companions[3]
    return [planted]


@damage(EXPECTED, lambda _: {("dedup_expired_early", None, tuple(range(18, 39)), None)})
def removed_since_the_last_audit(case: str) -> list[Planted]:
    planted = colocated(case, versions=40)
    return [replace(planted, companions=planted.companions[38:])]


@damage(EXPECTED, lambda case: {("dedup_expired_early", _wire(case, "web/m-2"), (), _counter(case))})
def removed_though_seen(case: str) -> list[Planted]:
    """A counter saw the output of the second commit half a day ago, and nothing is kept of that commit."""
    planted, counter = colocated(case), ref("counter", f"{case}:counter")
    planted.companions = planted.companions[2:]
    message = on_the_wire(planted.entity, sent(planted.entity, "web/m-2"))
    seen = recorded(counter, 1, DAY / 2, message=message, outputs=())
    return [planted, colocated(counter.id, seen, type="counter")]


@damage(
    EXPECTED,
    lambda case: {
        ("ledger_hole", None, (2,), None),
        ("dedup_expired_early", _wire(case, "web/m-2"), (), _counter(case)),
    },
)
def hole_and_seen(case: str) -> list[Planted]:
    """A counter saw the output of a commit of which nothing is kept, though an older one is."""
    planted, counter = colocated(case), ref("counter", f"{case}:counter")
    del planted.companions[1]
    message = on_the_wire(planted.entity, sent(planted.entity, "web/m-2"))
    seen = recorded(counter, 1, DAY / 2, message=message, outputs=())
    return [planted, colocated(counter.id, seen, type="counter")]


@damage(EXPECTED, lambda _: {("dedup_expired_early", None, (3, 4), None)})
def all_removed(case: str) -> list[Planted]:
    """Nothing at all is kept of it, and an audit saw it at its second version a few days ago."""
    return [replace(colocated(case), companions=[])]


@damage(EXPECTED, lambda case: {("unreadable", "web/m-21", (), f"shop/processed:~{_hashed(case, 'web/m-21')}")})
def perhaps_removed(case: str) -> list[Planted]:
    """What is missing may be what cannot be read."""
    planted = colocated(case, versions=40)
    unread, age = planted.companions[20]
    return [replace(planted, companions=[(replace(unread, schema=2), age), *planted.companions[38:]])]


@damage(EXPECTED, lambda _: {("document_lost", None, (), None)})
def records_without_document(case: str) -> list[Planted]:
    return [replace(colocated(case), gone=True)]


@damage(EXPECTED, lambda _: {("document_lost", None, (), None)})
def entries_without_document(case: str) -> list[Planted]:
    return [replace(stream(case), gone=True)]


@damage(EXPECTED, lambda _: {("document_lost", None, (), None)})
def fallen_behind_an_audit(case: str) -> list[Planted]:
    return [colocated(case, versions=2)]


@damage(
    EXPECTED,
    lambda _: {("consistent_state_and_output", f"web/m-{number}", (number,), f"tx-{number}") for number in (3, 4)},
)
def recorded_in_two_ways(case: str) -> list[Planted]:
    planted = colocated(case)
    other = (sent(planted.entity, "web/m-3", 1),)
    return [_rival(_rival(planted, 4, digest="another"), outputs=other)]


@damage(
    EXPECTED,
    lambda case: {
        ("consistent_state_and_output", "web/m-2", (2, 3), sent(ref("shop", case), "web/m-2").id),
        ("consistent_state_and_output", "web/m-4", (4,), None),
    },
)
def one_id_twice(case: str) -> list[Planted]:
    planted = colocated(case)
    output = sent(planted.entity, "web/m-2")
    other = recorded(planted.entity, 3, 3 * DAY, outputs=(output,))
    last = recorded(planted.entity, 4, 2 * DAY, outputs=(sent(planted.entity, "web/m-4"),) * 2)
    planted.companions[2:] = [(record(planted.entity, other), 3 * DAY), (record(planted.entity, last), 2 * DAY)]
    return [planted]


@damage(
    EXPECTED, lambda case: {("consistent_state_and_output", None, (1, 2), f"{channel_of(ref('shop', case).source)} 1")}
)
def one_number_twice(case: str) -> list[Planted]:
    shop = ref("shop", case)
    place = placed(shop.source, ref("reader", case), 1)
    made = [recorded(shop, number, DAY, outputs=(sent(shop, f"web/m-{number}", place=place),)) for number in (1, 2)]
    return [colocated(case, *made)]


@damage(EXPECTED, lambda _: {("owing_too_long", "web/m-4", (4,), "tx-4")})
def owing_in_companions(case: str) -> list[Planted]:
    planted = colocated(case)
    output = Output(sent(planted.entity, "web/m-4").id, "else", Json.of({"secret": 5}))
    owes = record(planted.entity, recorded(planted.entity, 4, 2 * DAY))
    planted.companions[3] = (replace(owes, owed=(output,), owing_since=owes.at), 2 * DAY)
    return [planted]


@damage(EXPECTED, lambda _: {("one_answer", f"web/m-{number}", (number,), None) for number in (3, 4)})
def answered_by_two_records(case: str) -> list[Planted]:
    """Two records of one commit have another status, and two a fingerprint of another request."""
    answer = Answer(201, (), '{"secret":7}', "sha256:1")
    planted = colocated(case)
    for number, other in ((3, replace(answer, status=409)), (4, replace(answer, asked="sha256:2"))):
        made = record(planted.entity, recorded(planted.entity, number, 3 * DAY))
        planted.companions[number - 1] = (replace(made, answer=answer), 3 * DAY)
        planted = beside(planted, replace(made, answer=other))
    return [planted]


@damage(EXPECTED, lambda _: {("unreadable", "web/m-3", (), "shop/other:0")})
def unread_and_otherwise(case: str) -> list[Planted]:
    """What a newer version wrote may mean something else than it would have meant in this one."""
    planted = colocated(case)
    rival = record(planted.entity, recorded(planted.entity, 3, 3 * DAY, tx="tx-other"))
    return [beside(planted, replace(rival, schema=2))]


def _wire(case: str, message: str) -> str:
    shop = ref("shop", case)
    return on_the_wire(shop, sent(shop, message))


def _counter(case: str) -> str:
    return ref("counter", f"{case}:counter").key


def _hashed(case: str, message: str) -> str:
    return record_id(ref("shop", case), message).partition("~")[2]
