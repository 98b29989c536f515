"""Messages that came and that nobody has sent. They are judged apart: what is unreadable, or gone, could explain them."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.values.envelope import message_hash, message_key
from tests.spark.transforms.planting import (
    DAY,
    HOUR,
    MINUTE,
    Cases,
    Planted,
    Told,
    colocated,
    commits,
    damage,
    mark,
    numbered,
    on_the_wire,
    outbox,
    output_key,
    page,
    reader,
    recorded,
    ref,
    sent,
)

AGE = 20 * HOUR
"""Of messages that are judged although some entities have forgotten what they sent."""

EXPECTED: Cases = {}


@damage(EXPECTED, lambda _: {("output_unknown", None, (), message_hash(message_key("shop/x", "o-0")))})
def came_unsent(case: str) -> list[Planted]:
    """An old one may have been sent by what is forgotten; one came a moment ago; one is foreign."""
    keys = [message_key("shop/x", f"o-{number}") for number in range(4)]
    told = (Told(keys[0], AGE, (), "i"), Told(keys[1], 3 * DAY, (), "i"), Told(keys[2], AGE, (), "f"))
    busy = outbox(f"{case}:busy", Told(keys[3], AGE, (), "i"), type="mailer", age=MINUTE)
    return [outbox(case, told[1], told[0], told[2], type="mailer"), busy]


@damage(
    EXPECTED,
    lambda case: {
        ("output_unknown", None, (), message_hash(output_key(ref("shop", f"{case}:shop"), "web/undone"))),
        ("history_taken_back", None, (3,), None),
    },
)
def sender_put_back(case: str) -> list[Planted]:
    """A page of the history that was taken back tells who sent it."""
    shop, to = outbox(f"{case}:shop", *commits(4), cuts=(2,)), ["mails"]
    assert shop.ledger is not None
    undone = page(shop.entity, [mark(Told("web/undone", AGE, ("mails",)), to)], 3, None, to)
    shop = shop.keeping(replace(undone, number=shop.ledger.cut + 1), AGE)
    return [shop, outbox(case, Told(output_key(shop.entity, "web/undone"), AGE, (), "i"), type="mailer")]


@damage(EXPECTED, lambda _: {("output_unknown", None, (), message_hash(message_key("exactlyonce/api/bank", "call-1")))})
def reply_to_no_call(case: str) -> list[Planted]:
    """The entity has all its marks, so even an old reply is judged."""
    told = Told(message_key("exactlyonce/api/bank", "call-1"), 9 * DAY, (), "r")
    return [outbox(case, *commits(2), told, age=DAY)]


@damage(
    EXPECTED,
    lambda case: {
        ("output_unknown", _ghost(case, 1), (), ref("counter", f"{case}:counter").key),
        ("output_unknown", _ghost(case, 2), (), ref("reader", f"{case}:reader").key),
        ("output_unknown", _ghost(f"{case}:other", 3), (), ref("counter", f"{case}:counter").key),
    },
)
def named_by_a_record(case: str) -> list[Planted]:
    """A counter and a read model saw messages of a shop that has all its marks; the counter one of another kind of shop."""
    shop, other = outbox(case), colocated(f"{case}:other")
    keys = [
        on_the_wire(item.entity, sent(item.entity, f"web/ghost-{n}")) for item, n in ((shop, 1), (shop, 2), (other, 3))
    ]
    counter, read = ref("counter", f"{case}:counter"), reader(f"{case}:reader", taken=1, source=shop.entity.source)
    made = [recorded(counter, number, DAY, message=key, outputs=()) for number, key in enumerate((keys[0], keys[2]), 1)]
    read.companions = [(numbered(read.entity, 1, DAY, source=shop.entity.source, message=keys[1]), DAY)]
    return [shop, other, colocated(counter.id, *made, type="counter"), read]


def _ghost(case: str, number: int) -> str:
    shop = ref("shop", case)
    return on_the_wire(shop, sent(shop, f"web/ghost-{number}"))


CASES = {case: plant for case, (plant, _) in EXPECTED.items()}
