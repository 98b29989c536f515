"""What an outside observer sees of an episode: deliveries, acknowledgements, accepted writes, published messages.

It never looks at the library's own bookkeeping: the reserved property is taken off before anything is looked at, and the
library's container is out of sight. A read model reports the numbers that it skipped, and the messages that came late, to its
operator, and so they are seen here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from zlib import crc32

# What the handlers of a simulation compute, as a pure function over plain values; the judge computes it anew.
#
# A tally counts its messages, remembers the last ones, and chains a hash over all of them: whatever is lost, done twice or
# done on another state than the committed one shows in the next state and in what is sent. A board is a read model: a tally
# that is shown what other tallies do, and has to hear each of them in its order.


LAST: Final = 16
"""How many names a tally remembers: no fewer than one commit can hold, so that each write names the messages it holds."""
LAST_OF_A_BOARD: Final = 99
"""The same for a board, which handles at once what it has held."""


@dataclass(frozen=True, slots=True)
class Tally:
    """A state; one that was deleted, or never was, equals an empty one."""

    count: int = 0
    chain: str = ""
    recent: tuple[str, ...] = ()


NOTHING: Final = Tally()


class Place(NamedTuple):
    """Where a message stands in what one source shows to one board, as its envelope says.

    Attributes:
        source: who sent it.
        number: from 1.
        time: when it was sent.
    """

    source: str
    number: int
    time: datetime


@dataclass(frozen=True, slots=True)
class Order:
    """A message to a tally.

    Attributes:
        name: unique; that of a relayed or shown one is its cause's, a dot and a number.
        tally: which one it is for.
        reports: how many outputs leave the system.
        relays: tallies that are sent an order of their own.
        shows: boards that are shown what happened.
        filler: length of the padding of each output, in characters.
        closes: delete the tally, if it is not empty; and so the boards that are shown it.
        looks: report the tally, and leave it as it is.
        refused: the handler raises.
        kept: its tally keeps what it relays for a while, and sends it then.
        asked: its sender waits for the answer, and does not go on asking without one.
        place: if it is for a board; else None.
    """

    name: str
    tally: str
    reports: int = 1
    relays: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    filler: int = 0
    closes: bool = False
    looks: bool = False
    refused: bool = False
    kept: bool = False
    asked: bool = False
    place: Place | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of everything it makes its tally send."""
        return tuple(f"{self.name}.{index}" for index in range(self.reports + len(self.relays) + len(self.shows)))

    @property
    def prompt(self) -> tuple[str, ...]:
        """Names of what is sent before it is acknowledged."""
        later = range(self.reports, self.reports + len(self.relays)) if self.kept else ()
        return tuple(name for index, name in enumerate(self.outputs) if index not in later)

    @property
    def remembered(self) -> int:
        """How many names its handler remembers."""
        return LAST if self.place is None else LAST_OF_A_BOARD


def execute(tally: Tally, order: Order, remembered: int = LAST) -> tuple[Tally, list[dict[str, Any]]]:
    """The state after an order, and the data of what is sent: reports, then relayed orders, then what boards are shown."""
    chain = f"{crc32(order.name.encode(), crc32(tally.chain.encode())):08x}{tally.count:x}"
    closed = order.closes and tally.count > 0
    after = NOTHING if closed else Tally(tally.count + 1, chain, (*tally.recent, order.name)[-remembered:])
    if order.looks:
        after = tally
    names = iter(order.outputs)
    filler = "x" * order.filler
    reports: list[dict[str, Any]] = [
        {
            "name": next(names),
            "count": tally.count,
            "before": tally.chain,
            "after": chain,
            "closed": list(tally.recent) if closed else [],
            "filler": filler,
        }
        for _ in range(order.reports)
    ]
    relayed: list[dict[str, Any]] = [
        {"name": next(names), "tally": target, "because": chain, "filler": filler} for target in order.relays
    ]
    shown: list[dict[str, Any]] = [
        {
            "name": next(names),
            "tally": board,
            "reports": 1 if order.closes else tally.count % 3,
            "closes": order.closes,
            "because": chain,
            "filler": filler,
        }
        for board in order.shows
    ]
    return after, reports + relayed + shown


def order_in(data: dict[str, Any], place: Place | None) -> Order:
    """The order that a relayed or shown output is: it relays and shows nothing."""
    return Order(data["name"], data["tally"], data.get("reports", 1), closes=data.get("closes", False), place=place)


class Copies:
    """Counted by the queues. A parked message is no copy until it is requeued."""

    def __init__(self) -> None:
        self._there: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()

    def appear(self, name: str) -> None:
        self._there[name] += 1
        self._seen[name] += 1

    def end(self, name: str) -> None:
        """A copy left its queue for good."""
        self._there[name] -= 1

    def exist(self, name: str) -> bool:
        return self._there[name] > 0

    def only(self, name: str) -> int | None:
        """A number that distinguishes the only copy from all later ones; None if there are others, too."""
        return self._seen[name] if self._there[name] == 1 else None

    def is_only(self, name: str, copy: int) -> bool:
        """Whether that copy is still the only one, or was the last."""
        return self._seen[name] == copy


_RESERVED: Final = "_ledger"
_BOARD: Final = "board"
"""How the names of boards begin, among the receivers of messages with numbers."""


Spot = tuple[str, str, int]
"""A number at a board: board, source, number."""


class Event(NamedTuple):
    """One thing that happened; `names` are those of messages."""

    at: float
    tally: str
    what: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that does not add up."""

    property: str
    tally: str
    detail: str


@dataclass(frozen=True, slots=True)
class Promises:
    """What the boards of an episode promise besides the order of each source.

    Attributes:
        one_order: the messages of all sources are brought into one order, by their time and source.
    """

    complete: bool = True
    one_order: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as it was published: data and all attributes, to the letter."""

    text: str
    data: dict[str, Any]


class History:
    """Everything seen in one episode, and what was wrong the moment it was seen.

    Args:
        now: virtual seconds since the start.

    Attributes:
        skipped: numbers that boards reported as given up.
        noted: those of them whose messages came after all, as boards reported.
        late: numbers whose messages came too late for the one order, as boards reported.
        kept: outputs that were parked since they are too old to be published.
        sent: each published message, in the forms that it had: one, but for what was sent once more after a restore.
        undone: messages that took place, and then their entity was put back to a moment before.
        restored: whether any entity was: what was kept may be released once more, at another time.
    """

    def __init__(self, now: Callable[[], float], promises: Promises | None = None) -> None:
        self._now = now
        self.promises = promises or Promises()
        self.skipped: set[Spot] = set()
        self.noted: set[Spot] = set()
        self.late: set[Spot] = set()
        self.events: list[Event] = []
        self.violations: list[Violation] = []
        self.orders: dict[str, Order] = {}
        self.writes: dict[str, list[Tally]] = {}
        self.sent: dict[str, list[Sent]] = {}
        self.acknowledged: set[str] = set()
        self.parked: set[str] = set()
        self.copies = Copies()
        self.took_place: set[str] = set()
        self.kept: set[str] = set()
        self.undone: set[str] = set()
        self.restored = False
        self._unprocessed: dict[str, int] = {}
        self._numbered: dict[tuple[str, str], str] = {}

    def accepted(self, order: Order) -> None:
        """A message reached the system for the first time."""
        self.orders[order.name] = order
        self.note(order.tally, "accepted", order.name)

    def delivered(self, name: str, outcome: str) -> None:
        """A delivery began, or ended in some way."""
        self.note(self.orders[name].tally, outcome, name)

    def acknowledge(self, name: str, how: str = "acknowledged") -> None:
        """A message needs no further delivery: by now everything it makes its tally send has to be published.

        A board may only have kept it for now, and what it owes then is owed to nobody who waits.
        """
        order = self.orders[name]
        self.acknowledged.add(name)
        self.note(order.tally, how, name)
        there = self.sent.keys() | self.kept
        if order.place is None and (missing := [output for output in order.prompt if output not in there]):
            self.convict("nothing_lost", order.tally, f"{name} was {how} before {missing[0]} was published")

    def park(self, name: str, copy: int | None = None) -> None:
        """A message was kept for an operator.

        Args:
            copy: which it was that somebody found unprocessed, if there was no other; None if nobody can say so much.
        """
        tally = self.orders[name].tally
        self.parked.add(name)
        self.note(tally, "parked", name)
        if copy is not None and self.copies.is_only(name, copy):
            self._unprocessed[name] = copy
            if name in self.took_place:
                self.convict("parked_is_unprocessed", tally, f"{name} was parked as unprocessed after it took place")

    def is_done(self, name: str) -> bool:
        """Whether anything shows that a message took place."""
        if name in self.took_place or name in self.acknowledged:
            return True
        outputs = () if name in self.undone else self.orders[name].outputs
        return any(output in self.sent or output in self.kept for output in outputs)

    def keep(self, name: str) -> None:
        """A message was not published, since it is too old, but kept for an operator."""
        self.kept.add(name)
        cause = self.orders.get(name.rpartition(".")[0])
        self.note(cause.tally if cause else "", "kept as too old", name)

    def discard(self, name: str) -> None:
        """An operator saw that a message took place, and deleted what was parked of it."""
        self.parked.discard(name)
        self.acknowledged.add(name)
        self.note(self.orders[name].tally, "discarded", name)

    def requeue(self, name: str) -> None:
        """An operator sent a parked message again."""
        self.parked.discard(name)
        self.note(self.orders[name].tally, "requeued", name)

    def written(self, tally: str, text: str) -> tuple[str, ...]:
        """A write of an entity document was accepted; returned is what it shows."""
        document = json.loads(text)
        document.pop(_RESERVED, None)
        state = Tally(document.get("count", 0), document.get("chain", ""), tuple(document.get("recent", ())))
        writes = self.writes.setdefault(tally, [NOTHING])
        before = writes[-1]
        if state == before:
            self.note(tally, "saved unchanged")
            return ("entity saved unchanged",)
        added = state.count - before.count
        writes.append(state)
        names = state.recent[-added:] if added > 0 else ()
        self.note(tally, f"saved with count {state.count}", *names)
        self._take_place(tally, names)
        if state == NOTHING:
            return ("entity deleted",)
        return ("several messages in one commit",) if added > 1 else ()

    def _take_place(self, tally: str, names: Iterable[str]) -> None:
        self.took_place.update(names)
        for name in names:
            if name in self._unprocessed and self.copies.is_only(name, self._unprocessed[name]):
                self.convict(
                    "parked_is_unprocessed", tally, f"{name} took place after it was parked, of which there is no copy"
                )

    @property
    def written_so_far(self) -> dict[str, int]:
        """How many states of each tally were seen: a moment to which it may be put back."""
        return {tally: len(states) for tally, states in self.writes.items()}

    def put_back(self, tally: str, states: int) -> list[str]:
        """A tally was put back to a moment when so many states of it had been seen; returned is what took place since."""
        writes = self.writes.get(tally, [NOTHING])
        undone = [
            name
            for before, after in zip(writes[states - 1 :], writes[states:], strict=False)
            for name in after.recent[len(after.recent) - (after.count - before.count) :]
        ]
        del writes[states:]
        self.restored = True
        self.took_place.difference_update(undone)
        self.acknowledged.difference_update(undone)
        self.undone.update(undone)
        self.note(tally, "put back", *undone)
        return undone

    def gave_up(self, spot: Spot) -> None:
        """A board gives up a number: it does not wait for it any more."""
        self.skipped.add(spot)
        self.note(spot[0], f"gave up number {spot[2]} of {spot[1]}")

    def came_late(self, spot: Spot) -> str:
        """A board reports that a message came too late; returns for what."""
        if spot in self.skipped:
            self.noted.add(spot)
            return "came after it was given up"
        self.late.add(spot)
        return "came too late for the one order"

    def published(self, text: str) -> Order | None:
        """A copy of a message arrived in its queue; returned is the order it is, if it is relayed or shown, and new."""
        envelope = json.loads(text)
        data = envelope["data"]
        name = data["name"]
        cause = self.orders.get(name.rpartition(".")[0])
        tally = cause.tally if cause else ""
        self.note(tally, "published", name)
        if name in self.sent:
            if cause is not None and (cause.name in self.undone or (cause.kept and self.restored)):
                self.sent[name].append(Sent(text, data))
            elif all(item.text != text for item in self.sent[name]):
                self.convict("at_most_one_output", tally, f"{name} was published with different contents")
            return None
        self.sent[name] = [Sent(text, data)]
        self.took_place.update(data.get("closed", ()))
        self._number(tally, name, envelope)
        if cause is None:
            self.convict("no_ghost_output", tally, f"{name} belongs to no message")
        return order_in(data, _place(envelope)) if "tally" in data else None

    def _number(self, tally: str, name: str, envelope: dict[str, Any]) -> None:
        if "channel" not in envelope:
            return
        other = self._numbered.setdefault((envelope["channel"], envelope["sequence"]), name)
        if other != name:
            self.convict("in_sequence", tally, f"{name} has the number of {other}")

    def note(self, tally: str, what: str, *names: str) -> None:
        self.events.append(Event(self._now(), tally, what, names))

    def convict(self, property: str, tally: str, detail: str) -> None:
        self.violations.append(Violation(property, tally, detail))

    def digest(self) -> str:
        hashed = blake2b(digest_size=16)
        for event in self.events:
            hashed.update(f"{event.at!r} {event.tally} {event.what} {' '.join(event.names)}\n".encode())
        return hashed.hexdigest()

    def story(self, violation: Violation, longest: int = 60) -> list[str]:
        """What happened to the entity that a violation is about, or to all if it names none; the latest events of many."""
        about = [event for event in self.events if violation.tally in ("", event.tally)]
        lines = [f"{event.at:14.3f} s  {event.what} {' '.join(event.names)}".rstrip() for event in about]
        left = len(lines) - longest
        return [f"… {left} events before", *lines[-longest:]] if left > 0 else lines


def _place(envelope: dict[str, Any]) -> Place | None:
    """Where a message stands among what its source shows to a board; None if it is for no board."""
    if not envelope.get("partitionkey", "").startswith(_BOARD):
        return None
    return Place(envelope["source"], int(envelope["sequence"]), datetime.fromisoformat(envelope["time"]))
