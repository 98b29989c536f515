"""Damage that is told from what is in order, or from other damage, by one condition of a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from exactlyonce.records.companions import NumberedMessage
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.places import Place
from exactlyonce.records.receptions import Reception
from exactlyonce.stores.cosmos.layout import processed_id
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import message_key
from tests.spark.transforms.planting import (
    DAY,
    MINUTE,
    NOW,
    Planted,
    age_of,
    channel_of,
    colocated,
    kept,
    numbered,
    on_the_wire,
    outbox,
    received,
    ref,
    seconds,
    sent,
    staged,
    told,
    with_entries,
)

Named = tuple[str, str | None, tuple[int, ...], str | None]
Plant = Callable[[str], list[Planted]]
ONE, OTHER = "shop/of%20nobody", "shop/of%20somebody"


def all_removed(case: str) -> list[Planted]:
    """Nothing at all is kept of it, and an audit saw it at its second version a few days ago."""
    return [replace(colocated(case), companions=[])]


def perhaps_removed(case: str) -> list[Planted]:
    """What is missing may be what cannot be read."""
    planted = outbox(case, versions=40, left=38)
    unread = next(record for record, _ in planted.records[20:])
    return [replace(planted, records=[(replace(unread, schema=2), DAY)])]


def perhaps_lost(case: str) -> list[Planted]:
    """The document is there, and cannot be read."""
    planted = outbox(case)
    assert planted.ledger is not None
    return [replace(planted, ledger=replace(planted.ledger, schema=2))]


def unread_and_otherwise(case: str) -> list[Planted]:
    """What a newer version wrote may mean something else than it would have meant in this one."""
    planted = outbox(case)
    rival = kept(planted.entity, told(planted.entity, 5, 3 * DAY, tx="tx-other"))
    planted.records.append((replace(rival, schema=2), DAY))
    return [planted]


def hole_and_seen(case: str) -> list[Planted]:
    """The mailer saw the output of a commit of which nothing is kept, though older ones are."""
    planted = outbox(case)
    del planted.records[1]
    return [planted, _mailer(case, (on_the_wire(planted.entity, sent(planted.entity, "web/m-2")), 5 * MINUTE))]


def recorded_with_other_outputs(case: str) -> list[Planted]:
    planted = outbox(case)
    entry = told(planted.entity, 5, 3 * DAY)
    other = replace(kept(planted.entity, entry), outputs=(sent(planted.entity, "web/m-5", 1),))
    planted.records.append((other, DAY))
    return [planted]


def paid_by_another_transaction(case: str) -> list[Planted]:
    """There is a record of the message, but not of the transaction that owes."""
    planted = outbox(case)
    entry = told(planted.entity, 5, 3 * DAY, owed="staged", staged=True)
    planted.records += [
        (kept(planted.entity, replace(entry, tx="tx-other")), 3 * DAY),
        (staged(planted.entity, entry), 3 * DAY),
    ]
    return [with_entries(planted, entry, told(planted.entity, 6, 2 * DAY))]


def owed_to_a_consumer(case: str) -> list[Planted]:
    """It is late, and not lost: it still lies where it was staged."""
    planted = outbox(case)
    outputs = (sent(planted.entity, "web/m-5", destination="mails"),)
    entry = told(planted.entity, 5, 3 * DAY, owed="staged", staged=True, outputs=outputs)
    planted.records.append((staged(planted.entity, entry), 3 * DAY))
    return [with_entries(planted, entry, told(planted.entity, 6, 2 * DAY))]


def lost_though_recorded(case: str) -> list[Planted]:
    """The entry says that it owes, the record that all was published, and the mailer knows nothing."""
    planted = outbox(case)
    outputs = (sent(planted.entity, "web/m-5", destination="mails"),)
    entry = told(planted.entity, 5, 3 * DAY, owed="staged", staged=True, outputs=outputs)
    planted.records.append((kept(planted.entity, entry), 2 * DAY))
    return [with_entries(planted, entry, told(planted.entity, 6, 2 * DAY))]


def lost_though_another_type_knows_it(case: str) -> list[Planted]:
    planted = outbox(case)
    output = sent(planted.entity, "web/m-5", destination="mails")
    other = ref("shop", f"{case}:other")
    handled = told(other, 1, 2 * DAY, message=on_the_wire(planted.entity, output))
    return [
        with_entries(planted, told(planted.entity, 5, 3 * DAY, outputs=(output,)), told(planted.entity, 6, 2 * DAY)),
        Planted(other, Ledger(version=1, entries=(handled,), type="shop")),
    ]


def lost_though_others_passed_the_number(case: str) -> list[Planted]:
    """Another read model passed the number; this one did, in another channel; a third waits for just that number."""
    planted = outbox(case)
    shop = planted.entity
    receptions = {
        "a": ("elsewhere", Reception("a", shop.source, 9)),
        "b": ("b", received(ONE, 9)),
        "c": ("c", Reception("c", shop.source, 3)),
    }
    outputs = tuple(
        sent(shop, "web/m-5", index, "reports", Place(key, ref("reader", f"{case}:{key}").source, 3))
        for index, key in enumerate(receptions)
    )
    readers = [
        Planted(
            ref("reader", f"{case}:{name}"),
            Ledger(version=2, type="reader", protocol="resequencer", receptions=(reception,)),
        )
        for name, reception in receptions.values()
    ]
    commits = (told(shop, 5, 3 * DAY, outputs=outputs), told(shop, 6, 2 * DAY))
    return [with_entries(planted, *commits), *readers]


def skipped_in_two_runs(case: str) -> list[Planted]:
    """The same numbers of two sources, each with one in between that was not skipped."""
    board = ref("reader", case)
    taken = [
        numbered(board, number, DAY, source=source, **({"message": None} if number in (2, 3, 5) else {}))
        for source in (ONE, OTHER)
        for number in range(1, 7)
    ]
    return [_board(case, (received(ONE, 7), received(OTHER, 7)), *taken)]


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
        received(ONE, 5, held=((6, 8),), gap_since=gap),
        received(OTHER, 5, held=((7, 7), (9, 10)), gap_since=gap),
    )
    return [_board(case, receptions, *documents)]


def ghost_seen_twice(case: str) -> list[Planted]:
    """The mailer applied it twice, the second time a moment ago."""
    planted = outbox(case)
    message = on_the_wire(planted.entity, sent(planted.entity, "web/ghost"))
    return [planted, _mailer(case, (message, DAY), (message, 1 * MINUTE))]


def ghost_listed_by_another(case: str) -> list[Planted]:
    """In the name of one entity, under an id that another one gave."""
    return [outbox(case), outbox(f"{case}:other"), _mailer(case, (_of_another(case), DAY))]


def _of_another(case: str) -> str:
    return message_key(ref("shop", case).source, sent(ref("shop", f"{case}:other"), "web/m-5").id)


def orphan_with_a_record(case: str) -> list[Planted]:
    """Its entry left after it was published, and the document was not deleted with it."""
    planted = outbox(case, versions=9)
    planted.records.append((staged(planted.entity, told(planted.entity, 1, 10 * DAY)), 10 * DAY))
    return [planted]


def one_number_of_two_sources(case: str) -> list[Planted]:
    """One message, at the same number of two channels."""
    board = ref("reader", case)
    taken = [numbered(board, number, 2 * DAY, source=source) for source in (ONE, OTHER) for number in (1, 2)]
    taken[3] = replace(taken[3], message=taken[1].message)
    return [_board(case, (received(ONE, 3), received(OTHER, 3)), *taken)]


def _mailer(case: str, *seen: tuple[str, timedelta]) -> Planted:
    mailer = ref("mailer", f"{case}:mailer")
    entries = tuple(told(mailer, number, age, message=message) for number, (message, age) in enumerate(seen, 1))
    return Planted(mailer, Ledger(version=len(entries), entries=entries, type="mailer"), MINUTE)


def _board(case: str, receptions: tuple[Reception, ...], *documents: NumberedMessage) -> Planted:
    ledger = Ledger(version=4, type="reader", protocol="resequencer", receptions=receptions)
    return Planted(ref("reader", case), ledger, 2 * DAY, companions=[(one, age_of(one.at)) for one in documents])


def _wire(case: str, message: str, destination: str = "else", index: int = 0) -> str:
    shop = ref("shop", case)
    return on_the_wire(shop, sent(shop, message, index, destination))


def _mailer_of(case: str) -> str:
    return ref("mailer", f"{case}:mailer").key


EXPECTED: Mapping[str, tuple[Plant, Callable[[str], set[Named]]]] = {
    "all removed": (all_removed, lambda _: {("dedup_expired_early", None, (3, 4), None)}),
    "perhaps removed": (
        perhaps_removed,
        lambda _: {("unreadable", "web/m-21", (), f"library/{processed_id('web/m-21')}")},
    ),
    "perhaps lost": (perhaps_lost, lambda case: {("unreadable", None, (), f"shop/{case}")}),
    "unread and otherwise": (
        unread_and_otherwise,
        lambda _: {("unreadable", "web/m-5", (), f"library/{processed_id('web/m-5')}")},
    ),
    "hole and seen": (
        hole_and_seen,
        lambda case: {
            ("ledger_hole", None, (2,), None),
            ("dedup_expired_early", _wire(case, "web/m-2"), (), _mailer_of(case)),
        },
    ),
    "recorded with other outputs": (
        recorded_with_other_outputs,
        lambda _: {("consistent_state_and_output", "web/m-5", (5,), "tx-5")},
    ),
    "paid by another transaction": (
        paid_by_another_transaction,
        lambda _: {
            ("at_most_one_state_change", "web/m-5", (5,), None),
            ("two_owners", "web/m-5", (5,), None),
            ("output_owed", "web/m-5", (5,), "tx-5"),
        },
    ),
    "owed to a consumer": (owed_to_a_consumer, lambda _: {("output_owed", "web/m-5", (5,), "tx-5")}),
    "lost though recorded": (
        lost_though_recorded,
        lambda case: {("output_lost", "web/m-5", (5,), _wire(case, "web/m-5"))},
    ),
    "lost though another type knows it": (
        lost_though_another_type_knows_it,
        lambda case: {("output_lost", "web/m-5", (5,), _wire(case, "web/m-5"))},
    ),
    "lost though others passed the number": (
        lost_though_others_passed_the_number,
        lambda case: {("output_lost", "web/m-5", (5,), _wire(case, "web/m-5", index=index)) for index in (0, 1, 2)},
    ),
    "skipped in two runs": (
        skipped_in_two_runs,
        lambda _: {
            ("sequence_gap", None, (), f"{channel_of(source)} {run}")
            for source in (ONE, OTHER)
            for run in ("2-3", "5-5")
        },
    ),
    "held of another source": (
        held_of_another_source,
        lambda _: {
            ("stuck_reader", None, (), f"{channel_of(ONE)} 7"),
            ("stuck_reader", None, (), f"{channel_of(OTHER)} 10"),
        },
    ),
    "ghost seen twice": (
        ghost_seen_twice,
        lambda case: {
            ("at_most_one_state_change", _wire(case, "web/ghost"), (1, 2), None),
            ("consistent_state_and_output", _wire(case, "web/ghost"), (), _mailer_of(case)),
        },
    ),
    "ghost listed by another": (
        ghost_listed_by_another,
        lambda case: {("consistent_state_and_output", _of_another(case), (), _mailer_of(case))},
    ),
    "orphan with a record": (orphan_with_a_record, lambda _: {("orphan_staged", "web/m-1", (), "tx-1")}),
    "one number of two sources": (
        one_number_of_two_sources,
        lambda _: {("at_most_one_state_change", message_key(ONE, "n-2"), (), None)},
    ),
}
SEEN_BEFORE = [
    (ref("shop", "all removed").key, 2, seconds(3 * DAY)),
    (ref("shop", "perhaps removed").key, 17, seconds(20 * DAY)),
]
"""As `cases.SEEN_BEFORE`."""
