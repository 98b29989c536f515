"""Entities in which everything is in order, though it may not look like it."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.protocols.outbox.due import RELEASE
from exactlyonce.records.ledger import KEPT, KeptAnswer, Ledger, written
from exactlyonce.records.library import KEPT_FOR
from exactlyonce.records.outbox import Answer, Kept, transaction
from exactlyonce.values.envelope import derived_id, message_hash, message_key, renewed_id
from exactlyonce.values.frozen_json import Json
from tests.spark.transforms.planting import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    OPEN,
    Plant,
    Planted,
    Told,
    colocated,
    commits,
    mark,
    marks_of,
    numbered,
    on_the_wire,
    outbox,
    output_key,
    owing,
    page,
    parked,
    reader,
    reception,
    record,
    recorded,
    ref,
    sent,
    staged,
    stream,
    unparked,
)

NOBODY = "shop/of%20nobody"

CASES: dict[str, Plant] = {
    "an outbox": lambda case: [outbox(case)],
    "co-located records": lambda case: [colocated(case)],
    "a stream": lambda case: [stream(case)],
    "a read model": lambda case: [reader(case)],
}


def healthy(plant: Plant) -> Plant:
    """Adds a case, which has the name of its function."""
    CASES[plant.__name__.replace("_", " ")] = plant
    return plant


@healthy
def clean_up_took_pages(case: str) -> list[Planted]:
    """Clean-up took two pages, and the marks that were too old went with a commit."""
    told = [Told(f"web/m-{number}", (44 - number) * DAY) for number in range(1, 43)]
    planted = outbox(case, *told, cuts=(6, 10, 20, 30), lost=3)
    return [replace(planted, records=planted.records[2:])]


@healthy
def page_written_first(case: str) -> list[Planted]:
    """A page was written, and the commit that names it has not come; another page was cut and named since the ledger was
    read."""
    planted = outbox(case)
    assert planted.ledger is not None
    coming = page(planted.entity, list(marks_of(planted)[:1]), planted.ledger.version, None)
    coming = replace(coming, number=planted.ledger.cut + 1, before=planted.ledger.complete)
    later = replace(coming, number=coming.number + 1, version=coming.version + 7)
    return [planted.keeping(coming, MINUTE).keeping(later, MINUTE)]


@healthy
def settled_late(case: str) -> list[Planted]:
    """The first companion was written again when its outputs had been published at last."""
    planted = colocated(case, versions=3)
    first, third = (recorded(planted.entity, number, age) for number, age in ((1, 32 * DAY), (3, 29 * DAY)))
    planted.companions = [(record(planted.entity, first), 11 * DAY), (record(planted.entity, third), 29 * DAY)]
    return [planted]


@healthy
def delivered(case: str) -> list[Planted]:
    """What was sent is known: by marks in a ledger and in a page, by records, by numbers, as parked, discarded or renewed."""
    told = [Told(f"web/m-{number}", 3 * DAY, ("mails", "else")) for number in range(1, 6)]
    told += [Told("web/m-6", 3 * DAY, ("reports", "reports")), Told("web/m-7", 3 * DAY, ("counts",))]
    planted = outbox(case, *told, cuts=(3,))
    shop, mailer = planted.entity, ref("mailer", f"{case}:mailer")
    keys = [output_key(shop, item.message) for item in told]
    seen = [Told(key, 3 * DAY, (), "i") for key in keys[:2]]
    read, counter = ref("reader", f"{case}:reader"), ref("counter", f"{case}:counter")
    numbers = [
        numbered(read, number, 2 * DAY, source=shop.source, message=output_key(shop, "web/m-6", number - 1))
        for number in (1, 2)
    ]
    numbers[1] = replace(numbers[1], held=Json.of({"secret": 5}), at=NOW - 5 * MINUTE)
    model = Ledger(
        version=1, type="reader", protocol="resequencer", receptions=(reception(shop.source, 2, held=((2, 2),)),)
    )
    parking = Planted(mailer, None, gone=True).keeping(parked(mailer, keys[2]))
    renewed = parked(mailer, keys[3], renewed=NOW - DAY)
    new = message_key(shop.source, renewed_id(mailer.key, keys[3], NOW - DAY))
    unplaced = [unparked(mailer, keys[4], None, 2 * DAY)]
    return [
        planted,
        outbox(f"{case}:mailer", *seen, Told(new, DAY, (), "i"), type="mailer", cuts=(1,)),
        replace(parking.keeping(renewed), more=unplaced),
        Planted(read, model, 5 * MINUTE, companions=[(item, 5 * MINUTE) for item in numbers]),
        colocated(counter.id, recorded(counter, 1, 2 * DAY, message=keys[6], outputs=()), type="counter"),
    ]


@healthy
def sent_again(case: str) -> list[Planted]:
    """One parked message was sent again a moment ago, another one was made a new one, which has arrived."""
    told = [Told(f"web/m-{number}", 3 * DAY, ("mails",)) for number in (1, 2)]
    planted, mailer = outbox(case, *told), ref("mailer", f"{case}:mailer")
    again, old = (output_key(planted.entity, item.message) for item in told)
    new = message_key(planted.entity.source, "new-1")
    return [
        replace(planted, more=[unparked(mailer, again, again, 5 * MINUTE), unparked(mailer, old, new, 2 * DAY)]),
        outbox(f"{case}:mailer", Told(new, 2 * DAY, (), "i"), type="mailer"),
    ]


@healthy
def many_destinations(case: str) -> list[Planted]:
    """An entity sends to a hundred destinations, the last of which is one of this application; its name is not plain."""
    name = f"{case}:ä %/"
    told = Told("web/m-1", DAY, (*(f"other-{number}" for number in range(99)), "mails"))
    planted = outbox(name.replace("/", "|"), told)
    seen = Told(output_key(planted.entity, "web/m-1", 99), DAY, (), "i")
    return [planted, outbox(f"{case}:mailer", seen, type="mailer")]


@healthy
def on_their_way(case: str) -> list[Planted]:
    """Within their graces nothing is accused: owed, staged, unknown to the consumer, waiting, and held."""
    told = (Told("web/m-1", DAY, ("mails",)), Told("web/m-2", 50 * MINUTE, ("mails",)))
    shop = outbox(case, *told).having(outbox=(owing(told[0], 2), owing(told[1], OPEN)))
    shop = shop.having(outbox=(replace(owing(told[1], OPEN), at=NOW - 9 * MINUTE),))
    shop = replace(shop, more=[unparked(ref("mailer", case), output_key(shop.entity, "web/m-1"), None, DAY)])
    shop = shop.keeping(staged(shop.entity, "tx-1-kept"), 55 * MINUTE).keeping(
        staged(shop.entity, "tx-2-kept"), 6 * DAY
    )
    board = reader(f"{case}:board")
    held = numbered(board.entity, 7, MINUTE, source=NOBODY, held=Json.of({"secret": 4}))
    board.companions.append((held, MINUTE))
    return [shop, board.having(receptions=(reception(NOBODY, 5, held=((7, 7),), gap_since=NOW - 9 * MINUTE),))]


@healthy
def sent_by_a_busy_one(case: str) -> list[Planted]:
    """A ledger that is written all the time does not tell how old a commit in it is: what the message tells may be much
    older."""
    return [outbox(case, Told("web/m-1", 2 * DAY, ("mails",)), age=5 * MINUTE)]


@healthy
def owed_still(case: str) -> list[Planted]:
    """A record owes: what is owed is not lost. (That it is owed for too long is another finding.)"""
    told = Told("web/m-1", 2 * HOUR, ("mails",))
    planted = outbox(case, told)
    return [planted.having(outbox=(replace(owing(told, OPEN), at=NOW - 9 * MINUTE),))]


@healthy
def forgotten(case: str) -> list[Planted]:
    """A receiver forgets by the time of the message: what came to an outbox without a stable time is judged for a day only."""
    told = (Told("web/m-1", 29 * DAY + 23 * HOUR, ("mails",)), Told("web/M-2", 2 * DAY, ("mails",), "f", False))
    return [outbox(case, *told), outbox(f"{case}:mailer", Told("web/m", 2 * DAY, ()), type="mailer")]


@healthy
def keeping(case: str) -> list[Planted]:
    """Messages are kept: one waits, one was released and has arrived, one was cancelled, which leaves no trace."""
    told = Told("web/m-1", 3 * DAY, (KEPT, KEPT, KEPT, "mails"))
    shop = ref("shop", case)
    ids = [derived_id(shop, message_hash(told.message), index) for index in range(4)]
    release = message_key(shop.source, f"{RELEASE}{ids[1]}")
    planted = outbox(case, told, Told(release, 2 * DAY, ("mails",), "l"))
    arrived = [
        Told(output_key(shop, told.message, 3), 3 * DAY, (), "i"),
        Told(output_key(shop, release), 2 * DAY, (), "i"),
    ]
    waiting = (Kept(ids[0], NOW + DAY, "tx-kept"),)
    return [
        planted.having(kept=waiting).keeping(staged(shop, "tx-kept")),
        outbox(f"{case}:mailer", *arrived, type="mailer"),
    ]


@healthy
def called(case: str) -> list[Planted]:
    """A call was answered, and another one is under way; the answer to a request left with a page, of which the other has
    one."""
    told = [Told("web/m-1", 3 * DAY, ("bank",)), Told("web/m-2", 2 * DAY, ("bank",))]
    shop = ref("shop", case)
    call, other = (derived_id(shop, message_hash(item.message), 0) for item in told)
    reply = Told(message_key("exactlyonce/api/bank", call), 2 * DAY, (), "r")
    planted = outbox(case, told[0], reply, told[1], age=MINUTE).having(calls=(other,))
    answer = KeptAnswer(message_hash("web/m-2"), Answer(201, (), '{"secret": 7}', "sha256:1"))
    return [planted.having(answers=(answer,))]


@healthy
def told_by_a_read_model(case: str) -> list[Planted]:
    """A read model sends mails, and notes nothing of them."""
    board = reader(case, taken=1)
    seen = Told(output_key(board.entity, message_key(NOBODY, "n-1"), 3), 2 * DAY, (), "i")
    return [board, outbox(f"{case}:mailer", seen, type="mailer")]


@healthy
def sent_by_records(case: str) -> list[Planted]:
    """What an entity with records sent has arrived at an outbox, and at another one with records."""
    planted = colocated(case)
    shop, mailer, counter = planted.entity, ref("mailer", f"{case}:mailer"), ref("counter", f"{case}:counter")
    outputs = (sent(shop, "web/m-4", 0, "mails"), sent(shop, "web/m-4", 1, "counts"))
    planted.companions[3] = (record(shop, recorded(shop, 4, 20 * HOUR, outputs=outputs)), 20 * HOUR)
    mails = Told(on_the_wire(shop, outputs[0]), 20 * HOUR, (), "i")
    count = recorded(counter, 1, 20 * HOUR, message=on_the_wire(shop, outputs[1]), outputs=())
    return [planted, outbox(mailer.id, mails, type="mailer"), colocated(counter.id, count, type="counter")]


@healthy
def not_adopted(case: str) -> list[Planted]:
    """A document of before the library came; and a tombstone that a fence made."""
    fenced = ref("shop", f"{case}:fenced")
    return [Planted(ref("shop", case), None), Planted(fenced, Ledger(deleted=True, type="shop"))]


@healthy
def seen_late(case: str) -> list[Planted]:
    """What a counter saw two weeks ago may have waited, been parked and requeued: clean-up may have taken its commit."""
    planted, counter = colocated(case), ref("counter", f"{case}:counter")
    del planted.companions[:2]
    message = on_the_wire(planted.entity, sent(planted.entity, "web/m-2"))
    return [planted, colocated(counter.id, recorded(counter, 1, 15 * DAY, message=message, outputs=()), type="counter")]


@healthy
def all_taken(case: str) -> list[Planted]:
    """Clean-up has taken all companions."""
    return [replace(item, companions=[], age=40 * DAY) for item in (colocated(case), stream(f"{case}:stream"))]


@healthy
def held_since_it_was_read(case: str) -> list[Planted]:
    """The next message came after its read model was read, having waited in its queue."""
    board = reader(case)
    held = numbered(board.entity, 5, 11 * MINUTE, source=NOBODY, held=Json.of({"secret": 7}))
    board.companions.append((held, MINUTE))
    return [board]


@healthy
def deleted_by_a_handler(case: str) -> list[Planted]:
    """A handler deleted them: what remains is a tombstone, whose ledger goes on."""
    planted = [outbox(case), colocated(f"{case}:colocated"), stream(f"{case}:stream"), reader(f"{case}:reader")]
    return [item.having(deleted=True) for item in planted]


@healthy
def begun_since_it_was_read(case: str) -> list[Planted]:
    """The entity began after its container was read; its attempts were long under way."""
    planted, keeper = outbox(case), colocated(f"{case}:colocated")
    records = [(item, MINUTE) for item, _ in planted.records]
    companions = [(item, MINUTE) for item, _ in keeper.companions]
    return [replace(planted, gone=True, records=records), replace(keeper, gone=True, companions=companions)]


@healthy
def never_begun(case: str) -> list[Planted]:
    """An attempt crashed before its commit, and what it staged remains; a message was put aside without a fence."""
    shop = ref("shop", case)
    return [Planted(shop, None, gone=True).keeping(staged(shop, "tx-kept"), 3 * DAY).keeping(parked(shop, "web/m-2"))]


@healthy
def read_at_two_moments(case: str) -> list[Planted]:
    """After the entity was read, it went on, and a page was cut from a version that was still to come."""
    planted = outbox(case)
    assert planted.ledger is not None
    later = replace(page(planted.entity, list(marks_of(planted)), 40, None), number=planted.ledger.cut + 1)
    return [planted.keeping(later, MINUTE)]


@healthy
def written_by_many(case: str) -> list[Planted]:
    """Marks of one time stand in the order of their hashes."""
    to: list[str] = []
    marks = [mark(Told(f"web/m-{number}", 2 * DAY), to) for number in range(20)]
    planted = outbox(case, Told("web/m", 2 * DAY))
    return [planted.having(version=20, marks=written(marks), to=tuple(to))]


@healthy
def paid_late(case: str) -> list[Planted]:
    """An entry is paid by its book, though it is old."""
    told = commits(2)
    entries = (owing(told[1], 2),)
    return [outbox(case, *told).having(outbox=entries)]


@healthy
def older_than_its_book(case: str) -> list[Planted]:
    """An entry stays until the next message comes. Its book has had its time, and so have the searches of the sweeper."""
    told = Told("web/m-1", KEPT_FOR + DAY)
    return [outbox(case, told).having(outbox=(replace(owing(told, 1), tx=transaction("c" * 20, 1)),))]
