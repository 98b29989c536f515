"""Damage to entities that keep records, or entries of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from exactlyonce.records.companions import record_id
from exactlyonce.records.outbox import Answer, Output
from exactlyonce.values.frozen_json import Json
from tests.spark.transforms.dumping import Stored
from tests.spark.transforms.planting import (
    DAY,
    PATHS,
    Planted,
    channel_of,
    colocated,
    on_the_wire,
    placed,
    record,
    recorded,
    ref,
    sent,
    stream,
    stream_entry,
)

Plant = Callable[[str], list[Planted]]
Named = tuple[str, str | None, tuple[int, ...], str | None]


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


def applied_twice_in_a_stream(case: str) -> list[Planted]:
    planted = stream(case)
    again = recorded(planted.entity, 4, 2 * DAY, message="web/m-2", tx="tx-new")
    return [beside(replace(planted, companions=planted.companions[:3]), stream_entry(planted.entity, again))]


def two_changes(case: str) -> list[Planted]:
    return [_rival(colocated(case), message="web/m-0", tx="tx-0")]


def two_transactions(case: str) -> list[Planted]:
    return [_rival(colocated(case), tx="tx-0")]


def hole_in_companions(case: str) -> list[Planted]:
    planted = colocated(case)
    del planted.companions[2]
    return [planted]


def hole_at_the_top_of_a_stream(case: str) -> list[Planted]:
    planted = stream(case)
    del planted.companions[3]
    return [planted]


def removed_since_the_last_audit(case: str) -> list[Planted]:
    planted = colocated(case, versions=40)
    return [replace(planted, companions=planted.companions[38:])]


def removed_though_seen(case: str) -> list[Planted]:
    """A counter saw the output of the second commit half a day ago, and nothing is kept of that commit."""
    planted, counter = colocated(case), ref("counter", f"{case}:counter")
    planted.companions = planted.companions[2:]
    message = on_the_wire(planted.entity, sent(planted.entity, "web/m-2"))
    seen = recorded(counter, 1, DAY / 2, message=message, outputs=())
    return [planted, colocated(counter.id, seen, type="counter")]


def hole_and_seen(case: str) -> list[Planted]:
    """A counter saw the output of a commit of which nothing is kept, though an older one is."""
    planted, counter = colocated(case), ref("counter", f"{case}:counter")
    del planted.companions[1]
    message = on_the_wire(planted.entity, sent(planted.entity, "web/m-2"))
    seen = recorded(counter, 1, DAY / 2, message=message, outputs=())
    return [planted, colocated(counter.id, seen, type="counter")]


def all_removed(case: str) -> list[Planted]:
    """Nothing at all is kept of it, and an audit saw it at its second version a few days ago."""
    return [replace(colocated(case), companions=[])]


def perhaps_removed(case: str) -> list[Planted]:
    """What is missing may be what cannot be read."""
    planted = colocated(case, versions=40)
    unread, age = planted.companions[20]
    return [replace(planted, companions=[(replace(unread, schema=2), age), *planted.companions[38:]])]


def gone(make: Callable[[str], Planted]) -> Plant:
    """Only what lies elsewhere is left."""
    return lambda case: [replace(make(case), gone=True)]


def fallen_behind_an_audit(case: str) -> list[Planted]:
    return [colocated(case, versions=2)]


def recorded_in_two_ways(case: str) -> list[Planted]:
    planted = colocated(case)
    other = (sent(planted.entity, "web/m-3", 1),)
    return [_rival(_rival(planted, 4, digest="another"), outputs=other)]


def one_id_twice(case: str) -> list[Planted]:
    planted = colocated(case)
    output = sent(planted.entity, "web/m-2")
    other = recorded(planted.entity, 3, 3 * DAY, outputs=(output,))
    last = recorded(planted.entity, 4, 2 * DAY, outputs=(sent(planted.entity, "web/m-4"),) * 2)
    planted.companions[2:] = [(record(planted.entity, other), 3 * DAY), (record(planted.entity, last), 2 * DAY)]
    return [planted]


def one_number_twice(case: str) -> list[Planted]:
    shop = ref("shop", case)
    place = placed(shop.source, ref("reader", case), 1)
    made = [recorded(shop, number, DAY, outputs=(sent(shop, f"web/m-{number}", place=place),)) for number in (1, 2)]
    return [colocated(case, *made)]


def owing_in_companions(case: str) -> list[Planted]:
    planted = colocated(case)
    output = Output(sent(planted.entity, "web/m-4").id, "else", Json.of({"secret": 5}))
    owes = record(planted.entity, recorded(planted.entity, 4, 2 * DAY))
    planted.companions[3] = (replace(owes, owed=(output,), owing_since=owes.at), 2 * DAY)
    return [planted]


def answered_by_two_records(case: str) -> list[Planted]:
    """Two records of one commit have another status, and two a fingerprint of another request."""
    answer = Answer(201, (), '{"secret":7}', "sha256:1")
    planted = colocated(case)
    for number, other in ((3, replace(answer, status=409)), (4, replace(answer, asked="sha256:2"))):
        made = record(planted.entity, recorded(planted.entity, number, 3 * DAY))
        planted.companions[number - 1] = (replace(made, answer=answer), 3 * DAY)
        planted = beside(planted, replace(made, answer=other))
    return [planted]


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


EXPECTED: Mapping[str, tuple[Plant, Callable[[str], set[Named]]]] = {
    "applied twice in a stream": (
        applied_twice_in_a_stream,
        lambda _: {("at_most_one_state_change", "web/m-2", (2, 4), None)},
    ),
    "two changes": (two_changes, lambda _: {("two_owners", "web/m-0", (3,), None)}),
    "two transactions": (
        two_transactions,
        lambda _: {("two_owners", "web/m-3", (3,), None), ("at_most_one_state_change", "web/m-3", (3,), None)},
    ),
    "hole in companions": (hole_in_companions, lambda _: {("ledger_hole", None, (3,), None)}),
    "hole at the top of a stream": (hole_at_the_top_of_a_stream, lambda _: {("ledger_hole", None, (4,), None)}),
    "removed since the last audit": (
        removed_since_the_last_audit,
        lambda _: {("dedup_expired_early", None, tuple(range(18, 39)), None)},
    ),
    "removed though seen": (
        removed_though_seen,
        lambda case: {("dedup_expired_early", _wire(case, "web/m-2"), (), _counter(case))},
    ),
    "hole and seen": (
        hole_and_seen,
        lambda case: {
            ("ledger_hole", None, (2,), None),
            ("dedup_expired_early", _wire(case, "web/m-2"), (), _counter(case)),
        },
    ),
    "all removed": (all_removed, lambda _: {("dedup_expired_early", None, (3, 4), None)}),
    "perhaps removed": (
        perhaps_removed,
        lambda case: {("unreadable", "web/m-21", (), f"shop/processed:~{_hashed(case, 'web/m-21')}")},
    ),
    **{
        f"records without document, {make.__name__}": (gone(make), lambda _: {("document_lost", None, (), None)})
        for make in (colocated, stream)
    },
    "fallen behind an audit": (fallen_behind_an_audit, lambda _: {("document_lost", None, (), None)}),
    "recorded in two ways": (
        recorded_in_two_ways,
        lambda _: {("consistent_state_and_output", f"web/m-{number}", (number,), f"tx-{number}") for number in (3, 4)},
    ),
    "one id twice": (
        one_id_twice,
        lambda case: {
            ("consistent_state_and_output", "web/m-2", (2, 3), sent(ref("shop", case), "web/m-2").id),
            ("consistent_state_and_output", "web/m-4", (4,), None),
        },
    ),
    "one number twice": (
        one_number_twice,
        lambda case: {("consistent_state_and_output", None, (1, 2), f"{channel_of(ref('shop', case).source)} 1")},
    ),
    "owing in companions": (owing_in_companions, lambda _: {("owing_too_long", "web/m-4", (4,), "tx-4")}),
    "answered by two records": (
        answered_by_two_records,
        lambda _: {("one_answer", f"web/m-{number}", (number,), None) for number in (3, 4)},
    ),
    "unread and otherwise": (unread_and_otherwise, lambda _: {("unreadable", "web/m-3", (), "shop/other:0")}),
}


def _hashed(case: str, message: str) -> str:
    return record_id(ref("shop", case), message).partition("~")[2]
