"""Entities in which everything is in order, though it may not look like it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from exactlyonce.records.ledger import Ledger
from exactlyonce.records.sequences import Order, Reception
from exactlyonce.values.frozen_json import Json
from tests.spark.transforms.planting import (
    DAY,
    MINUTE,
    NOW,
    Planted,
    age_of,
    colocated,
    kept,
    numbered,
    on_the_wire,
    outbox,
    parked,
    reader,
    record,
    ref,
    seconds,
    sent,
    staged,
    stream,
    told,
    with_entries,
)

Plant = Callable[[str], list[Planted]]


def after_clean_up(case: str) -> list[Planted]:
    """Clean-up was stopped half way: it left the oldest, took the next, and may not take the third."""
    entity = ref("shop", case)
    commits = [told(entity, number, age) for number, age in enumerate((50 * DAY, 49 * DAY, 20 * DAY, 2 * DAY), 1)]
    records = [(kept(entity, one), age_of(one.at)) for one in (commits[0], commits[2])]
    return [Planted(entity, Ledger(version=4, entries=(commits[3],), type="shop"), 2 * DAY, list(records))]


def written_anew(case: str) -> list[Planted]:
    """An attempt with an old view wrote the first two records once more; the third was too old half an hour sooner."""
    entity = ref("shop", case)
    first, second, third, last = (told(entity, number, 40 * DAY) for number in range(1, 5))
    age = 30 * DAY - 30 * MINUTE
    del third
    return [
        Planted(
            entity,
            Ledger(version=4, entries=(last,), type="shop"),
            2 * DAY,
            [(kept(entity, first), age), (kept(entity, second), age)],
        )
    ]


def settled_late(case: str) -> list[Planted]:
    """The first record beside the entity was written again when its outputs had been published at last."""
    planted = colocated(case, versions=3)
    first, third = (told(planted.entity, number, age) for number, age in ((1, 32 * DAY), (3, 29 * DAY)))
    planted.beside = [(record(planted.entity, first), 11 * DAY), (record(planted.entity, third), 29 * DAY)]
    return [planted]


def trimmed(case: str) -> list[Planted]:
    """`embedded()` has trimmed all but one that owed, and the young ones; what owed was published since."""
    planted = outbox(case, versions=9)
    planted.records = []
    owed, young = told(planted.entity, 3, 60 * DAY), told(planted.entity, 9, 2 * DAY)
    entries = (
        replace(owed, seen=seconds(55 * DAY)),
        replace(told(planted.entity, 8, 5 * DAY), seen=seconds(DAY)),
        young,
    )
    return [with_entries(planted, *entries)]


def read_at_two_moments(case: str) -> list[Planted]:
    """After the entity was read, its entries left and others came and left, too."""
    planted = outbox(case, versions=6, left=3)
    later = [told(planted.entity, number, MINUTE) for number in range(7, 10)]
    planted.records += [(kept(planted.entity, one), MINUTE) for one in later]
    return [planted]


def delivered(case: str) -> list[Planted]:
    """What was sent is known: by an entry, a record, a parked message, and by how far its sequence was received."""
    planted = outbox(case, versions=5, left=3)
    assert planted.ledger is not None
    shop, read = planted.entity, ref("reader", f"{case}:reader")
    orders = [Order(read.id, number) for number in (1, 2)]
    outputs = [
        *(sent(shop, f"web/m-{number}", destination="mails") for number in (1, 2, 3)),
        *(sent(shop, f"web/m-{order.number + 3}", destination="reports", order=order) for order in orders),
    ]
    commits = [told(shop, number, 3 * DAY, outputs=(output,)) for number, output in enumerate(outputs, 1)]
    mailer = ref("mailer", f"{case}:mailer")
    handled = [told(mailer, number, 2 * DAY, message=on_the_wire(shop, outputs[number - 1])) for number in (1, 2)]
    mails = Ledger(version=2, entries=(handled[1],), type="mailer")
    reception = Reception(shop.source, 3, gap_since=None)
    return [
        replace(
            with_entries(planted, *commits[3:]),
            records=[(kept(shop, one), 3 * DAY) for one in commits[:3]],
            age=3 * DAY,
        ),
        Planted(
            mailer,
            mails,
            records=[(kept(mailer, handled[0]), DAY), (parked(mailer, on_the_wire(shop, outputs[2])), DAY)],
        ),
        # Clean-up has taken the document of the first number.
        Planted(
            read,
            Ledger(version=2, type="reader", protocol="resequencer", receptions=(reception,)),
            beside=[(numbered(read, 2, 2 * DAY, source=shop.source, message=on_the_wire(shop, outputs[4])), DAY)],
        ),
    ]


def on_their_way(case: str) -> list[Planted]:
    """Within their graces nothing is accused: owed, staged, unknown to the consumer, waiting, and held."""
    planted = outbox(case, versions=6)
    shop = planted.entity
    newest = told(
        shop, 6, 5 * MINUTE, owed="staged", staged=True, outputs=(sent(shop, "web/m-6", destination="mails"),)
    )
    before = told(shop, 5, 50 * MINUTE, outputs=(sent(shop, "web/m-5", destination="mails"),))
    with_entries(planted, before, newest)
    planted.records += [(staged(shop, newest), 5 * MINUTE), (staged(shop, told(shop, 7, MINUTE)), 55 * MINUTE)]
    planted.records.append((staged(shop, told(shop, 8, 6 * DAY)), 6 * DAY))  # Garbage that clean-up is to take.
    board = reader(f"{case}:board")
    assert board.ledger is not None
    source = board.ledger.receptions[0].source
    held = numbered(board.entity, 7, MINUTE, source=source, held=Json.of({"secret": 4}))
    board.beside.append((held, MINUTE))
    waiting = Reception(source, 5, held=((7, 7),), gap_since=NOW - 9 * MINUTE)
    board.ledger = replace(board.ledger, receptions=(waiting,))
    return [planted, board]


def published_not_marked(case: str) -> list[Planted]:
    """A crash between the records and the commit that drops their entries: what is recorded was published."""
    planted = outbox(case, left=4)
    entries = [told(planted.entity, number, 3 * DAY, owed="staged", staged=True) for number in (5, 6)]
    with_entries(planted, *entries)
    planted.records += [(kept(planted.entity, one), 2 * DAY) for one in entries]
    return [planted]


def not_adopted(case: str) -> list[Planted]:
    """A document of before the library came; and a tombstone that a fence made."""
    fenced = ref("shop", f"{case}:fenced")
    return [Planted(ref("shop", case), None), Planted(fenced, Ledger(deleted=True, type="shop"))]


def seen_late(case: str) -> list[Planted]:
    """What the mailer saw two weeks ago may have been owed before, for as long as something is owed now (see "owing"), then
    waited, was parked and requeued: clean-up may have taken its commit."""
    planted = outbox(case)
    del planted.records[:2]
    mailer = ref("mailer", f"{case}:mailer")
    message = on_the_wire(planted.entity, sent(planted.entity, "web/m-2"))
    return [
        planted,
        Planted(mailer, Ledger(version=1, entries=(told(mailer, 1, 15 * DAY, message=message),), type="mailer")),
    ]


def all_taken(case: str) -> list[Planted]:
    """Clean-up has taken all that lay beside it: only of an outbox the newest version is always there."""
    quiet = [replace(one, beside=[], age=40 * DAY) for one in (colocated(case), stream(f"{case}:stream"))]
    return list(quiet)


def held_since(case: str) -> list[Planted]:
    """The next message came after its read model was read, having waited in its queue."""
    board = reader(case)
    assert board.ledger is not None
    source = board.ledger.receptions[0].source
    held = numbered(board.entity, 5, 11 * MINUTE, source=source, held=Json.of({"secret": 7}))
    board.beside.append((held, MINUTE))
    return [board]


def deleted(case: str) -> list[Planted]:
    """A handler deleted them: what remains is a tombstone, whose ledger goes on."""
    planted = [outbox(case), colocated(f"{case}:beside"), stream(f"{case}:stream"), reader(f"{case}:reader")]
    return [replace(one, ledger=replace(one.ledger, deleted=True)) for one in planted if one.ledger is not None]


def begun_since(case: str) -> list[Planted]:
    """The entity began after its container was read; its attempts were long under way."""
    planted = outbox(case)
    return [replace(planted, gone=True, records=[(record, MINUTE) for record, _ in planted.records])]


def never_begun(case: str) -> list[Planted]:
    """An attempt crashed before its commit, and what it staged remains; a message was put aside without a fence."""
    shop = ref("shop", case)
    left = staged(shop, told(shop, 1, 3 * DAY))
    return [Planted(shop, None, records=[(left, 3 * DAY), (parked(shop, "web/m-2"), DAY)], gone=True)]


CASES: Mapping[str, Plant] = {
    "an outbox": lambda case: [outbox(case)],
    "records beside": lambda case: [colocated(case)],
    "a stream": lambda case: [stream(case)],
    "a read model": lambda case: [reader(case)],
    "clean-up was stopped": after_clean_up,
    "written anew": written_anew,
    "settled late": settled_late,
    "trimmed": trimmed,
    "read at two moments": read_at_two_moments,
    "delivered": delivered,
    "on their way": on_their_way,
    "published and not marked": published_not_marked,
    "not adopted": not_adopted,
    "seen late": seen_late,
    "all taken": all_taken,
    "held since it was read": held_since,
    "deleted by a handler": deleted,
    "begun since it was read": begun_since,
    "never begun": never_begun,
    "nothing proves that it is young": lambda case: [replace(outbox(case, versions=40, left=38), records=[])],
}
