"""Entities in which everything is in order, though it may not look like it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from exactlyonce.records.answers import Answer
from exactlyonce.records.ledger import Apart, Ledger
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import message_key
from tests.spark.transforms.planting import (
    DAY,
    MINUTE,
    NOW,
    Planted,
    age_of,
    apart,
    channel,
    colocated,
    kept,
    numbered,
    on_the_wire,
    outbox,
    parked,
    placed,
    reader,
    received,
    receiver,
    record,
    ref,
    sealed,
    seconds,
    sender,
    sent,
    staged,
    stream,
    told,
    with_calls,
    with_entries,
)

Plant = Callable[[str], list[Planted]]
NOBODY = "shop/of%20nobody"


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
    """The first companion was written again when its outputs had been published at last."""
    planted = colocated(case, versions=3)
    first, third = (told(planted.entity, number, age) for number, age in ((1, 32 * DAY), (3, 29 * DAY)))
    planted.companions = [(record(planted.entity, first), 11 * DAY), (record(planted.entity, third), 29 * DAY)]
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
    """What was sent is known: by an entry, a record, a parked message, and by how far its channel was received."""
    planted = outbox(case, versions=5, left=3)
    assert planted.ledger is not None
    shop, read = planted.entity, ref("reader", f"{case}:reader")
    places = [placed(shop.source, read, number) for number in (1, 2)]
    outputs = [
        *(sent(shop, f"web/m-{number}", destination="mails") for number in (1, 2, 3)),
        *(sent(shop, f"web/m-{place.number + 3}", destination="reports", place=place) for place in places),
    ]
    commits = [told(shop, number, 3 * DAY, outputs=(output,)) for number, output in enumerate(outputs, 1)]
    mailer = ref("mailer", f"{case}:mailer")
    handled = [told(mailer, number, 2 * DAY, message=on_the_wire(shop, outputs[number - 1])) for number in (1, 2)]
    mails = Ledger(version=2, entries=(handled[1],), type="mailer")
    reception = received(shop.source, 3, gap_since=None)
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
            companions=[(numbered(read, 2, 2 * DAY, source=shop.source, message=on_the_wire(shop, outputs[4])), DAY)],
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
    board.companions.append((held, MINUTE))
    waiting = received(source, 5, held=((7, 7),), gap_since=NOW - 9 * MINUTE)
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
    """Clean-up has taken all its companions: only of an outbox the newest version is always there."""
    quiet = [replace(one, companions=[], age=40 * DAY) for one in (colocated(case), stream(f"{case}:stream"))]
    return list(quiet)


def held_since(case: str) -> list[Planted]:
    """The next message came after its read model was read, having waited in its queue."""
    board = reader(case)
    assert board.ledger is not None
    source = board.ledger.receptions[0].source
    held = numbered(board.entity, 5, 11 * MINUTE, source=source, held=Json.of({"secret": 7}))
    board.companions.append((held, MINUTE))
    return [board]


def deleted(case: str) -> list[Planted]:
    """A handler deleted them: what remains is a tombstone, whose ledger goes on."""
    planted = [outbox(case), colocated(f"{case}:colocated"), stream(f"{case}:stream"), reader(f"{case}:reader")]
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


def known_by_numbers(case: str) -> list[Planted]:
    """Nine numbers of a shop, three of a source elsewhere whose channel has left twice, and two foreign messages."""
    shop = sender(case, 9)
    board = receiver(case, channel(shop.entity.source, (1, 9)), version=14, apart=Apart(True, True, True))
    foreign = [told(board.entity, version, 4 * DAY) for version in (2, 13)]
    owing = told(board.entity, 14, MINUTE, message=message_key(NOBODY, "m"), owed="staged", staged=True, recorded=False)
    board.records += [
        (kept(board.entity, foreign[0]), 3 * DAY),
        (apart(board.entity, 3, channel(NOBODY, (1, 2))), 3 * DAY),
        (apart(board.entity, 7, channel(NOBODY, (1, 3))), 3 * DAY),
        (sealed(board.entity), 3 * DAY),
        (staged(board.entity, owing), MINUTE),
    ]
    return [shop, with_entries(replace(board, age=MINUTE), foreign[1], owing)]


def young_numbers(case: str) -> list[Planted]:
    """A number has been passed by another one, and the last one has not come: both may be on their way."""
    shop = sender(case, 12, age=MINUTE)
    return [shop, receiver(case, channel(shop.entity.source, (1, 9), (11, 11)), version=10, age=MINUTE)]


def parked_numbers(case: str) -> list[Planted]:
    """One waits for an operator at its receiver; another is too old to be sent."""
    shop, other = sender(case, 9), sender(f"{case}:other", 9)
    board = receiver(case, channel(shop.entity.source, (1, 3), (5, 9)), version=8)
    board.records.append((parked(board.entity, on_the_wire(shop.entity, sent(shop.entity, "web/m-4"))), DAY))
    mate = receiver(f"{case}:other", channel(other.entity.source, (1, 8)), version=8)
    other.records.append((parked(other.entity, on_the_wire(other.entity, sent(other.entity, "web/m-9"))), DAY))
    return [shop, board, other, mate]


def come_back(case: str) -> list[Planted]:
    """A channel came back into the ledger after that was read, and its document was deleted before the library was."""
    return [sender(case, 9), receiver(case, version=9, apart=Apart(channels=True, sealed=True))]


def numbered_with_blobs(case: str) -> list[Planted]:
    """Messages that wrote blobs are known twice: by their numbers, and by an entry, or its record."""
    shop = sender(case, 4)
    board = receiver(case, channel(shop.entity.source, (1, 4)), version=4)
    told_of = [
        told(board.entity, version, 2 * DAY, message=on_the_wire(shop.entity, sent(shop.entity, f"web/m-{version}")))
        for version in (3, 4)
    ]
    board.records.append((kept(board.entity, told_of[0]), 2 * DAY))
    return [shop, with_entries(board, told_of[1])]


def sent_long_ago(case: str) -> list[Planted]:
    """What a consumer got by its number is of any age, and the commit that sent it had a number itself."""
    shop = sender(case, 3)
    assert shop.ledger is not None
    shop = replace(shop, records=[], ledger=replace(shop.ledger, entries=(), channels=(channel(NOBODY, (1, 6)),)))
    board = receiver(case, channel(shop.entity.source, (1, 3)), version=3)
    wrote = told(board.entity, 3, 2 * DAY, message=on_the_wire(shop.entity, sent(shop.entity, "web/m-2")))
    return [shop, with_entries(board, wrote)]


def answered(case: str) -> list[Planted]:
    """An attempt wrote the record of a request, and died before the commit that drops its entry. A call is under way."""
    planted = outbox(case)
    entry = told(planted.entity, 6, 3 * DAY, answer=Answer(201, (), "{}", "sha256:1"))
    planted.records.append((kept(planted.entity, entry), DAY))
    planted = with_entries(planted, told(planted.entity, 5, 4 * DAY), entry)
    return [with_calls(replace(planted, age=DAY), NOBODY)]


CASES: Mapping[str, Plant] = {
    "answered": answered,
    "an outbox": lambda case: [outbox(case)],
    "co-located records": lambda case: [colocated(case)],
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
    "known by numbers": known_by_numbers,
    "young numbers": young_numbers,
    "parked numbers": parked_numbers,
    "come back": come_back,
    "numbered with blobs": numbered_with_blobs,
    "sent long ago": sent_long_ago,
    "nothing proves that it is young": lambda case: [replace(outbox(case, versions=40, left=38), records=[])],
}
