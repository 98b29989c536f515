"""Small worlds in which a mutant may show, from the cheapest to the most expensive."""

from __future__ import annotations

from typing import Any, Final

from exactlyonce.values.lifetimes import Retention
from verification.scenarios.outbox_ages import changing
from verification.scenarios.requests import LARGE_ANSWER
from verification.world.scenario import UNLIMITED, Ages, Budget, Reply, Request, Scenario

SWEPT: Final = {"sweeps": UNLIMITED}
ASKED: Final = (Request(0), Request(1))
OPENED: Final = (Request(0, opened=True), Request(1, opened=True))
ANSWERED: Final = (None, Reply(0, copies=2))
SECOND: Final = (None, None, Reply(0), Reply(0, version=2))


def _world(name: str, copies: tuple[int, ...], **more: Any) -> Scenario:
    """A world of one worker, unless there are others."""
    budget = {key: more.pop(key) for key in tuple(more) if key in Budget.__dataclass_fields__}
    return Scenario(name, copies, budget=Budget(**budget), **{"workers": 1, **more})


PLAIN: Final = (
    _world("a lonely message", (1,), crashes=1, unknown=1, repeated=1),
    _world("two in turn", (2, 1), crashes=1),
    _world("two in turn, room for none", (2, 1), room=0, crashes=1),
    _world("two at once", (1, 1), workers=2, crashes=1),
    _world("copies at once", (2,), workers=2, crashes=1, unknown=1),
    _world("a group", (1, 1, 1), group=2, crashes=1),
    _world("copies in a group", (2, 1), group=2, crashes=1),
    _world("a deletion", (1, 2), crashes=1, deletes=True),
    _world("outputs have numbers", (2, 1), numbers=True, crashes=1),
    _world("two entities", (1, 0), targets=(0, 1), feeds=(1, None), crashes=1, unknown=1),
    _world("swept", (1,), crashes=1, unknown=1, sweeps=1),
    _world("given up", (1,), crashes=1, unknown=1, poisoned=1),
    _world("given back", (1,), workers=2, poisoned=1, returned=1),
    _world("given up, two messages", (1, 1), crashes=1, poisoned=1),
    _world("given up, stale reads", (1, 1), crashes=1, stale=1, poisoned=1),
    _world("given up, room for none", (1, 1), room=0, crashes=1, sweeps=1, poisoned=1),
    _world("given up, copies, room for none", (2, 1), room=0, crashes=1, poisoned=1),
    _world("remembered tokens", (2, 1), crashes=1, tokens=True),
    _world("stale reads", (2, 1), crashes=1, stale=1),
    _world("remembered tokens, stale reads", (2, 1), crashes=1, stale=1, tokens=True),
    _world("two at once, lost writes", (1, 1), workers=2, unknown=1, repeated=1),
    _world("swept, stale reads", (1, 1), crashes=1, stale=1, sweeps=1),
    _world("given up at once", (1, 1), workers=2, crashes=1, poisoned=1),
    _world("swept at once", (1, 1), workers=2, crashes=1, sweeps=1),
    _world("stale reads at once", (2, 1), workers=2, stale=1),
    _world("from memory", (2, 1), room=0, remembering=True, crashes=1, unknown=1),
    _world("from memory, a group", (2, 1, 1), group=2, remembering=True, crashes=1),
    _world("from memory, at once", (1, 1, 1), workers=2, remembering=True),
)

PAGES: Final = (
    _world("pages: lost writes", (2, 1), room=0, unknown=1, repeated=1),
    _world("pages: stale reads", (2, 1), room=0, crashes=1, stale=1),
    _world("pages: three in turn", (2, 1, 1), room=0),
    _world("pages: three in turn, room for one", (2, 1, 1), crashes=1),
    _world("pages: one has no time", (2, 1, 1), room=0, since=(None, 0, 0), crashes=1),
    _world("pages: a younger one comes first", (2, 1, 1), room=0, since=(1, 0, 2), crashes=1),
    _world("pages: older ones come later", (2, 2, 1), since=(1, 0, 2)),
    _world("pages: a group", (2, 1, 1), room=2, group=2, crashes=1),
    _world("pages: lost writes, stale reads", (2, 1), room=0, unknown=1, stale=1),
    _world("pages: swept", (2, 1), room=0, crashes=1, unknown=1, sweeps=1),
    _world("pages: two at once", (2, 1), room=0, workers=2, crashes=1),
    _world("pages: put back", (2, 2, 1), room=0, since=(0, 1, 1), put_back=1),
    _world("pages: put back, lost writes", (2, 1, 1), room=0, put_back=1, unknown=1),
    _world("pages: put back, one has no time", (2, 2, 1), room=0, since=(None, 0, 0), put_back=1),
    _world("pages: lost", (2, 2), room=0, since=(0, 1), emptied=1, crashes=1),
    _world("pages: lost, one has no time", (2, 2), room=0, since=(None, 0), emptied=1),
    _world("pages: marks go with age", (2, 1, 1), room=3, ages=Ages(5, (0, 5, 5))),
    _world("pages: they go with age", (2, 1), room=0, ages=Ages(6, (0, 1)), forgotten=UNLIMITED),
    _world("pages: one of two goes with age", (1, 2, 1), room=1, ages=Ages(5, (0, 4, 4))),
    _world("pages: a retention is lengthened", (2, 1), room=0, ages=changing(Retention, 4, 2), forgotten=UNLIMITED),
    _world("pages: what is owed grows too old", (1,), ages=Ages(4, (0,)), crashes=1, sweeps=1),
)

BOOKS: Final = (
    _world("books: one process, then another", (2,), books=True, crashes=1, unknown=1),
    _world("books: two messages", (1, 1), books=True, crashes=1),
    _world("books: swept", (1, 1), books=True, crashes=1, sweeps=1),
    _world("books: given up", (1, 1), books=True, crashes=1, poisoned=1),
    _world("books: clients leave", (1,), books=True, requests=ASKED[:1], crashes=1, **SWEPT),
    _world("books: two processes", (1, 1), books=True, workers=2, unknown=1),
)

ASKING: Final = (
    _world("requests: in turn", (2, 1), requests=ASKED, room=0, crashes=1, **SWEPT),
    _world("requests: keys have no time", (2, 1), requests=ASKED, room=0, since=(None, None), crashes=1, **SWEPT),
    _world("requests: lost replies", (2, 1), requests=ASKED, unknown=1, **SWEPT),
    _world("requests: stale reads", (2, 1), requests=ASKED, room=0, stale=1, **SWEPT),
    _world("requests: in a group", (2, 1), requests=ASKED, group=2, **SWEPT),
    _world("requests: two bodies", (1, 1), requests=(Request(0), Request(0, "c")), crashes=1, unknown=1, **SWEPT),
    _world("requests: a large answer", (2, 1), requests=(LARGE_ANSWER, ASKED[1]), room=3, crashes=1, **SWEPT),
    _world("opened: in turn", (2,), requests=OPENED[:1], crashes=1, **SWEPT),
    _world("opened: lost replies", (2,), requests=OPENED[:1], unknown=1, stale=1, **SWEPT),
    _world("opened: two requests", (1, 1), requests=OPENED, room=0, stale=1, **SWEPT),
    _world("opened: in a group", (1, 1), requests=OPENED, group=2, **SWEPT),
)

KEEPING: Final = tuple(
    _world(f"kept: {name}", (1,) * len(cancels), keeps=frozenset({0}), cancels=cancels, **more, **SWEPT)
    for name, cancels, more in (
        ("released", (None,), {"crashes": 1, "unknown": 1}),
        ("released, repeated saves", (None,), {"workers": 2, "repeated": 1}),
        ("stale reads", (None,), {"stale": 1, "crashes": 1}),
        ("cleaned", (None,), {"crashes": 1, "cleanings": 1}),
        ("cleaned, lost replies", (None,), {"unknown": 1, "cleanings": 1}),
        ("cancelled", (None, 0), {"crashes": 1}),
        ("cancelled in a group", (None, 0), {"room": 3, "group": 2, "crashes": 1}),
        ("cancelled, stale reads", (None, 0), {"stale": 1}),
        ("deleted before it is due", (None, None, None), {"deletes": True}),
    )
)

CALLING: Final = (
    _world("calls: lost replies", (1, 0), replies=ANSWERED, crashes=1, unknown=1),
    _world("calls: stale reads", (1, 0), replies=ANSWERED, stale=1, crashes=1),
    _world("calls: in groups", (1, 1, 0, 0), replies=SECOND, group=2, crashes=1),
    _world("calls: room for none", (1, 1, 0, 0), replies=SECOND, room=0, stale=1),
)

WORLDS: Final = (*PLAIN, *PAGES, *BOOKS, *ASKING, *KEEPING, *CALLING)

STATES: Final = {
    "a lonely message": 125,
    "two in turn": 120,
    "two in turn, room for none": 152,
    "two at once": 444,
    "copies at once": 728,
    "a group": 507,
    "copies in a group": 272,
    "a deletion": 120,
    "outputs have numbers": 120,
    "two entities": 340,
    "swept": 214,
    "given up": 202,
    "given back": 71,
    "given up, two messages": 282,
    "given up, stale reads": 876,
    "given up, room for none": 898,
    "given up, copies, room for none": 691,
    "remembered tokens": 126,
    "stale reads": 438,
    "remembered tokens, stale reads": 429,
    "two at once, lost writes": 3_014,
    "swept, stale reads": 453,
    "given up at once": 1_326,
    "swept at once": 2_510,
    "stale reads at once": 616,
    "from memory": 1_377,
    "from memory, a group": 2_255,
    "from memory, at once": 418,
    "pages: lost writes": 592,
    "pages: stale reads": 567,
    "pages: three in turn": 56,
    "pages: three in turn, room for one": 460,
    "pages: one has no time": 557,
    "pages: a younger one comes first": 1_032,
    "pages: older ones come later": 139,
    "pages: a group": 1_836,
    "pages: lost writes, stale reads": 637,
    "pages: swept": 4_162,
    "pages: two at once": 2_317,
    "pages: put back": 723,
    "pages: put back, lost writes": 2_184,
    "pages: put back, one has no time": 739,
    "pages: lost": 440,
    "pages: lost, one has no time": 55,
    "pages: marks go with age": 1_337,
    "pages: they go with age": 3_664,
    "pages: one of two goes with age": 2_216,
    "pages: a retention is lengthened": 2_228,
    "pages: what is owed grows too old": 898,
    "books: one process, then another": 418,
    "books: two messages": 220,
    "books: swept": 452,
    "books: given up": 1_076,
    "books: clients leave": 77,
    "books: two processes": 8_691,
    "requests: in turn": 487,
    "requests: keys have no time": 487,
    "requests: lost replies": 610,
    "requests: stale reads": 291,
    "requests: in a group": 85,
    "requests: two bodies": 751,
    "requests: a large answer": 452,
    "opened: in turn": 231,
    "opened: lost replies": 1_264,
    "opened: two requests": 3_023,
    "opened: in a group": 729,
    "kept: released": 680,
    "kept: released, repeated saves": 296,
    "kept: stale reads": 199,
    "kept: cleaned": 174,
    "kept: cleaned, lost replies": 464,
    "kept: cancelled": 426,
    "kept: cancelled in a group": 564,
    "kept: cancelled, stale reads": 229,
    "kept: deleted before it is due": 395,
    "calls: lost replies": 336,
    "calls: stale reads": 157,
    "calls: in groups": 762,
    "calls: room for none": 92,
}
"""Of the shipped strategy. Pinned by a test."""
