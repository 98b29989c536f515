"""Damage to what outboxes keep and send: ledgers with marks, pages, entries, kept messages."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.records.ledger import KeptAnswer, Page, written
from exactlyonce.records.library import KEPT_FOR
from exactlyonce.records.outbox import Answer, Kept, transaction
from exactlyonce.values.envelope import derived_id, message_hash
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.transforms.dumping import Stored
from tests.spark.transforms.planting import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    OPEN,
    STUCK,
    USED,
    Cases,
    Planted,
    Told,
    book,
    colocated,
    commits,
    damage,
    marks_of,
    on_the_wire,
    outbox,
    output_key,
    owing,
    recorded,
    ref,
    requested,
    sent,
    staged,
    unparked,
)

EXPECTED: Cases = {}


@damage(EXPECTED, lambda _: {("at_most_one_state_change", None, (), message_hash("web/m-2"))})
def applied_twice(case: str) -> list[Planted]:
    """Once more after its mark had left."""
    return [outbox(case, *commits(5), Told("web/m-2", DAY))]


@damage(EXPECTED, lambda _: {("page_missing", None, (), "page:3"), ("page_missing", None, (), "page:2")})
def page_gone(case: str) -> list[Planted]:
    """The newest one, and of another entity an older one; of a third one the page that is gone may have been deleted by age."""
    told = [Told(f"web/m-{number}", (32 - number) * DAY) for number in range(1, 31)]
    newest, older, old = (outbox(f"{case}{name}", *told, cuts=(1, 20, 25)) for name in ("", ":older", ":old"))
    return [
        replace(newest, records=newest.records[:2]),
        replace(older, records=[older.records[0], older.records[2]]),
        replace(old, records=old.records[1:]),
    ]


@damage(EXPECTED, lambda _: {("document_lost", None, (), None), ("history_taken_back", None, (6,), None)})
def put_back(case: str) -> list[Planted]:
    """The document is that of before the page was cut; another one has gone on since, beyond the version of the page."""
    planted = outbox(case, *commits(8), cuts=(2, 6))
    pages = [item for item, _ in planted.records if isinstance(item, Page)]
    back = outbox(f"{case}:back", *commits(4), cuts=(2,)).keeping(
        replace(pages[1], entity=ref("shop", f"{case}:back").key)
    )
    beyond = outbox(f"{case}:beyond", *commits(8), cuts=(2,))
    return [back, beyond.keeping(replace(pages[1], entity=beyond.entity.key), 2 * DAY)]


@damage(
    EXPECTED,
    lambda _: {
        *(("owing_too_long", None, (), transaction("b" * 20, number)) for number in (OPEN, STUCK, USED + 1)),
        *(("owing_too_long", None, (), transaction(book * 20, 1)) for book in "cd"),
    },
)
def owed_too_long(case: str) -> list[Planted]:
    """By an open number, a stuck one, and one beyond the book; and two of which the books are gone: for less time, and for
    nearly as long as the store keeps a book."""
    told = commits(4)
    entries = [owing(item, number) for item, number in zip(told, (OPEN, STUCK, USED + 1), strict=False)]
    lost = replace(owing(told[3], 1), tx=transaction("c" * 20, 1), at=NOW - 6 * MINUTE)
    old = replace(owing(told[0], 1), tx=transaction("d" * 20, 1), at=NOW - KEPT_FOR - DAY + MINUTE)
    return [outbox(case, *told).having(outbox=(*entries, lost, old))]


@damage(EXPECTED, lambda _: {("owing_too_long", None, (), "o-1"), ("staged_missing", None, (), "o-2")})
def kept_too_long(case: str) -> list[Planted]:
    """Three messages are kept: one is long overdue, one has lost its document, and one is in order."""
    due = {"o-1": NOW - DAY, "o-2": NOW + DAY, "o-3": NOW + DAY}
    planted = outbox(case).having(kept=tuple(Kept(id, at, f"tx-{id}-kept") for id, at in due.items()))
    for id in ("o-1", "o-3"):
        planted = planted.keeping(staged(planted.entity, f"tx-{id}-kept"), 40 * DAY)
    return [planted]


@damage(EXPECTED, lambda _: {("orphan_staged", "web/m-5", (), "tx-7-kept")})
def not_kept(case: str) -> list[Planted]:
    planted = outbox(case)
    return [planted.keeping(staged(planted.entity, "tx-7-kept"), 7 * DAY + MINUTE)]


@damage(
    EXPECTED,
    lambda case: {
        ("output_lost", None, (), _wire(case, "web/m-1")),
        *(("output_lost", None, (), _wire(case, "web/m-2", index)) for index in (1, 2, 3)),
    },
)
def lost(case: str) -> list[Planted]:
    """Of a ledger and of a page; to an outbox, a read model and an entity with records; not what is younger than an hour."""
    old = Told("web/m-1", 2 * DAY, ("mails",))
    told = Told("web/m-2", 2 * HOUR, ("else", "mails", "reports", "counts"))
    young = outbox(f"{case}:young", Told("web/m-3", 59 * MINUTE, ("mails",)))
    return [outbox(case, old, told, cuts=(1,)), young]


@damage(EXPECTED, lambda case: {("output_lost", None, (), _wire(case, "web/m-1"))})
def lost_though_another_type_knows_it(case: str) -> list[Planted]:
    planted = outbox(case, Told("web/m-1", 3 * DAY, ("mails",)))
    seen = Told(output_key(planted.entity, "web/m-1"), 3 * DAY, (), "i")
    return [planted, outbox(f"{case}:other", seen)]


@damage(EXPECTED, lambda case: {("output_lost", None, (), _wire(case, "web/m-1"))})
def lost_though_paid(case: str) -> list[Planted]:
    """The entry is still there, and the book says that all was sent."""
    told = Told("web/m-1", 3 * DAY, ("mails",))
    return [outbox(case, told).having(outbox=(owing(told, 2),))]


@damage(
    EXPECTED,
    lambda case: {
        ("output_lost", None, (), _wire(case, "web/m-1")),
        ("output_lost", "web/again", (), "web/again"),
    },
)
def lost_after_it_was_sent_again(case: str) -> list[Planted]:
    planted = outbox(case, Told("web/m-1", 3 * DAY, ("mails",)))
    key = output_key(planted.entity, "web/m-1")
    foreign = outbox(f"{case}:foreign", type="mailer")
    again = [
        unparked(foreign.entity, "web/again", "web/again", 3 * HOUR),
        unparked(foreign.entity, "web/m-6", "web/m-6", DAY),
    ]
    return [replace(planted, more=[unparked(ref("mailer", case), key, key, DAY)]), replace(foreign, more=again)]


@damage(
    EXPECTED,
    lambda case: {("output_lost", "web/m-2", (2,), on_the_wire(ref("shop", case), sent(ref("shop", case), "web/m-2")))},
)
def lost_by_records(case: str) -> list[Planted]:
    """An entity with records remembers by the time of writing, so what one sent to another is judged for longer."""
    planted = colocated(case)
    outputs = (sent(planted.entity, "web/m-2", 0, "counts"), sent(planted.entity, "web/m-2", 1, "mails"))
    made = recorded(planted.entity, 2, 4 * DAY, outputs=outputs)
    known = colocated(
        case, *(made if number == 2 else recorded(planted.entity, number, (6 - number) * DAY) for number in range(1, 5))
    )
    counter = ref("counter", f"{case}:counter")
    return [known, colocated(counter.id, recorded(counter, 1, DAY, outputs=()), type="counter")]


@damage(EXPECTED, lambda case: {("output_lost", None, (), _wire(case, "shop/x/release:1"))})
def released_and_lost(case: str) -> list[Planted]:
    """The release of a kept message sent it, and it did not arrive."""
    return [outbox(case, Told("shop/x/release:1", 3 * DAY, ("mails",), "l"))]


@damage(EXPECTED, lambda _: {("one_answer", "a" * 16, (), None)})
def answered_in_two_ways(case: str) -> list[Planted]:
    """The ledger and its page have other answers to one request."""
    planted = outbox(case)
    answer = Answer(201, (), '{"secret":7}', "sha256:1")
    cut, age = planted.records[0]
    assert isinstance(cut, Page)
    paged = replace(cut, answers=(KeptAnswer("a" * 16, answer), KeptAnswer("b" * 16, answer)))
    other = KeptAnswer("a" * 16, replace(answer, status=409))
    return [replace(planted, records=[(paged, age)]).having(answers=(other, KeptAnswer("c" * 16, answer)))]


@damage(
    EXPECTED,
    lambda case: {
        ("reply_awaited", None, (), derived_id(ref("shop", case), message_hash("web/m-1"), 0)),
        ("reply_awaited", None, (), "call-1"),
    },
)
def never_answered(case: str) -> list[Planted]:
    """A call whose mark is in an old page, and two of whose marks nothing tells; one of an entity that was written just now."""
    told = [Told("web/m-1", 3 * DAY, ("bank",)), Told("web/m-2", 2 * DAY, ("bank",))]
    shop = ref("shop", case)
    calls = tuple(derived_id(shop, message_hash(item.message), 0) for item in told)
    quiet = outbox(f"{case}:quiet").having(calls=("call-1",))
    return [
        replace(outbox(case, *told, cuts=(1,)), age=MINUTE).having(calls=calls),
        quiet,
        replace(outbox(f"{case}:busy"), age=MINUTE).having(calls=("call-2",)),
    ]


@damage(EXPECTED, lambda _: {("request_left", None, (), f"request:left-{what}") for what in ("open", "answered")})
def requests_left(case: str) -> list[Planted]:
    planted = outbox(case)
    late, old = 37 * DAY + 1 * MINUTE, 36 * DAY
    planted = planted.keeping(requested(planted.entity, "left-open", answered=False), late)
    planted = planted.keeping(requested(planted.entity, "left-answered", answered=True), late)
    return [planted.keeping(requested(planted.entity, "not-yet", answered=False), old)]


@damage(
    EXPECTED,
    lambda case: {
        *(("unreadable", None, (), f"shop/{case}{name}") for name in ("", ":fewer", ":copied")),
        ("unreadable", None, (), "library/page:1"),
    },
)
def unread(case: str) -> list[Planted]:
    """A ledger of a newer version; one whose marks are not as many as it says; a copy of another one; a page that is cut
    off."""
    newer, fewer, copied = (outbox(f"{case}{name}") for name in ("", ":fewer", ":copied"))
    assert newer.ledger is not None
    paged = outbox(f"{case}:page")
    cut, age = paged.records[0]
    assert isinstance(cut, Page)
    return [
        newer.having(schema=2),
        fewer.having(marks=written(marks_of(fewer)[:1])),
        copied.having(entity=newer.entity.key),
        replace(paged, records=[(replace(cut, marks=cut.marks[:-3]), age)]),
    ]


@damage(EXPECTED, lambda case: {("unreadable", "web/m-9", (), f"library/{case}:{number}") for number in (0, 1)})
def strange(case: str) -> list[Planted]:
    """Documents of no kind, or with next to nothing in them."""
    planted = outbox(case)
    document = {"pk": planted.entity.key, "schema": 1, "message": "web/m-9", **_system()}
    kinds = ("staged", "strange")
    planted.more = [
        Stored(LIBRARY, {"id": f"{case}:{number}", **document, "kind": kind}) for number, kind in enumerate(kinds)
    ]
    return [planted]


def _system() -> dict[str, object]:
    return {name: value for name, value in book().document.items() if name in ("_etag", "_ts")}


@damage(EXPECTED, lambda _: {("document_lost", None, (), None)})
def gone(case: str) -> list[Planted]:
    """Only its page is left."""
    return [replace(outbox(case), gone=True)]


@damage(EXPECTED, lambda _: {("document_lost", None, (), None)})
def gone_since_an_audit(case: str) -> list[Planted]:
    """All that was kept of it lay in its document."""
    return []


@damage(EXPECTED, lambda _: {("document_lost", None, (), None)})
def made_anew(case: str) -> list[Planted]:
    """The ledger counts from 1 again, below the version of the page that is left."""
    planted = outbox(case)
    return [replace(outbox(case, *commits(2)), age=HOUR, records=planted.records)]


@damage(EXPECTED, lambda _: {("document_lost", None, (), None)})
def without_its_ledger(case: str) -> list[Planted]:
    return [replace(outbox(case), ledger=None)]


def _wire(case: str, message: str, index: int = 0) -> str:
    return output_key(ref("shop", case), message, index)
