"""Scenarios as data: what there is, and what may go wrong how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final, Literal

from exactlyonce.drivers.book import ProcessBook, Shelf
from exactlyonce.effects.attempt import Memory
from exactlyonce.effects.effect import Step
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.resequencer.gaps import Rebuild
from exactlyonce.protocols.steps import park as parking
from exactlyonce.protocols.stream import replay as replaying
from exactlyonce.records.ledger import Page
from exactlyonce.records.library import Book
from exactlyonce.records.outbox import Answer
from exactlyonce.values.lifetimes import SETTLING_IN, Lifetimes, Retention
from verification.twins.modules import outbox
from verification.world.books import Books, Clerk, fresh_id

UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True)
class Budget:
    """How often each thing may happen, over all processes; `UNLIMITED` where it may happen any number of times.

    Attributes:
        crashes: of a process, between any two effects, or before or after any.
        unknown: requests without an answer: reads; and writes and sends, applied, not applied, or, for writes, applied at any
            later time.
        repeated: writes that were applied and are reported as a conflict, because the client library sent them twice.
        stale: reads of the entity, and of its companions, that return an older version. Reads of the library's partition may be
            as old as their token allows, without a budget.
        sweeps: runs of the sweeper, at any moment.
        poisoned: deliveries that the host gives up on, so that the poison settler gets them.
        cleanings: runs of the clean-up of staged outputs, at any moment. When all is quiet it may run once more for nothing.
        forgotten: companions, or pages, deleted by retention, once no copy of their messages can still arrive.
        returned: deliveries that go back to their queue while the attempt for them goes on: their time is over, or their
            waiting was cancelled; the attempt may be shared with others.
        requeues: requests to send a message again that is parked, or was.
        spoiled: deliveries that come again though all was done with them, since others of their batch failed.
        raising: deliveries whose handler raises in every attempt that is made for them before they are given back.
        nudges: looks at a read model in which something can be released, or a gap skipped, as a timer takes them.
        replays: sendings again of what a stream has sent: of all, or of what the scenario says is missing.
        emptied: losses of all pages that an entity has.
        put_back: entities whose documents are put back to an earlier version, while their pages stay. Nobody is at work then,
            and all processes start anew.
        removed: entities whose documents are deleted while they have pages, as by other programs. Nobody is at work then.
            Where processes remember no tokens, all replicas show the pages: a process that knows none is not protected from one
            that lags behind the oldest.
    """

    crashes: int = 0
    unknown: int = 0
    repeated: int = 0
    stale: int = 0
    sweeps: int = 0
    poisoned: int = 0
    cleanings: int = 0
    forgotten: int = 0
    returned: int = 0
    requeues: int = 0
    spoiled: int = 0
    raising: int = 0
    nudges: int = 0
    replays: int = 0
    emptied: int = 0
    put_back: int = 0
    removed: int = 0

    @property
    def amounts(self) -> tuple[int, ...]:
        """The amounts in the order of `PLACES`."""
        return tuple(getattr(self, name) for name in PLACES)


PLACES: Final = {item.name: number for number, item in enumerate(fields(Budget))}
"""Place of each amount in the tuple of what is left of a budget."""


def _page_name(page: Page) -> str:
    return f"page:{page.number}"


def _in_the_way(there: Page, page: Page) -> bool:
    return there != page


def _kept(there: Any, written: Any) -> Any:
    return written if there is not None else None


@dataclass(frozen=True, slots=True)
class Chores:
    """What is done apart from processing and is no method of a strategy; as it ships, or a broken twin of it."""

    requeue: Callable[..., Step[Any]] = parking.requeue
    clean_staged: Callable[..., Step[Any]] = retention.clean_staged
    renew: Callable[..., Step[Any]] = parking.renew
    versions_of: Callable[..., Step[Any]] = replaying.versions_of
    replay: Callable[..., Step[Any]] = replaying.replay
    missing: Callable[..., replaying.Missing] = replaying.Missing
    is_to: Callable[[Answer, str], bool] = Answer.is_to
    shelf: type[Shelf] = Shelf
    process_book: type[ProcessBook] = ProcessBook
    book: type[Book] = Book
    clerk: type[Clerk] = Clerk
    fresh_id: Callable[[Books], str] = fresh_id
    page_name: Callable[[Page], str] = _page_name
    in_the_way: Callable[[Page, Page], bool] = _in_the_way
    """Whether a page is another one than is to be written, and stays."""
    books_first: bool = True
    """Whether the store gets a book before its first number is used."""
    kept: Callable[[Any, Any], Any] = _kept
    """What is there of a request once its answer is kept: of what was there, None for nothing, and what is written."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a scenario whose records are companions.

    Attributes:
        copies: how often it is delivered; 0 for one that is lost, and comes only if a read model asks for it again.
        does: what its handler does with the state. One that keeps it gives its output no number either.
        source: who sends it.
        number: its place in a channel of its source; None where the protocol asks for none.
        channel: which of its source's channels that is.
        raises: whether its handler may raise, if the budget has it.
        time: when it was sent, in days; None where nobody asks.
    """

    copies: int = 1
    does: Literal["changes", "keeps", "deletes"] = "changes"
    source: str = "web"
    number: int | None = None
    channel: int = 1
    raises: bool = False
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """The request that a message came by.

    Attributes:
        key: number of the first message that has its key.
        body: of the request; as good as its fingerprint.
        opened: whether its caller opened it: its document is there from the beginning, until the caller closes it.
    """

    key: int
    body: str = "b"
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a call, which a message is.

    Attributes:
        call: number of the message whose handler makes the call.
        version: of the entity, which the commit of that message produces. With another one, another reply comes, or none.
        copies: how many come for each copy of the call.
    """

    call: int
    version: int = 1
    copies: int = 1


TWO_DAYS: Final = Lifetimes(Retention(timedelta(days=2)), timedelta(hours=1))


@dataclass(frozen=True, slots=True)
class Ages:
    """A clock that moves, and what goes by it. Time is counted in ticks of twelve hours, and begins at 0.

    Attributes:
        last: tick at which the clock stops.
        times: for each message the tick of the time that its copies carry; they arrive at most a day before it.
        lifetimes: of the application; a retention of two days, so that a message is judged up to an age of one tick.
        before: what they were before the retention was changed; None if it never was. Every process goes by them until the
            change, and for a day after it any process may.
        behind: how many ticks the present of attempts may be behind the store's.
        judges: whether messages are judged by their age, as what ships does.
        cleaned: age from which clean-up deletes, in ticks; None for the retention.
        trimmed: age from which marks go, in ticks; None for the retention.
        limits: whether what is too old to be published is parked instead, as what ships does.
        prompt: whether an attempt that has begun ends, and what it wrote takes effect, before another tick.
        untimed: numbers of the messages whose copies need not share that time.
        arriving: whether copies carry the time at which they arrive, against the rule.
    """

    last: int
    times: tuple[int, ...]
    lifetimes: Lifetimes = TWO_DAYS
    before: Lifetimes | None = None
    behind: int = 0
    judges: bool = True
    cleaned: int | None = None
    trimmed: int | None = None
    limits: bool = True
    prompt: bool = False
    untimed: frozenset[int] = frozenset()
    arriving: bool = False

    def heard(self, now: int) -> tuple[bool, ...]:
        """Whether a process has heard of the change of the retention: all that may be, at a tick."""
        changed = self.lifetimes.retention.changed
        if self.before is None or changed is None or AT + now * TICK >= changed + SETTLING_IN:
            return (True,)
        return (False,) if AT + now * TICK < changed else (False, True)

    def known(self, *, heard: bool) -> Lifetimes:
        """What a process goes by."""
        return self.lifetimes if heard or self.before is None else self.before

    def oldest_judged(self, now: int) -> timedelta:
        """Age above which some process refuses a message, at a tick."""
        return min(self.known(heard=heard).oldest_judged(AT + now * TICK) for heard in self.heard(now))

    @property
    def kept(self) -> timedelta:
        """Age from which the records of a message may be deleted."""
        return self.lifetimes.retention.current


TICK: Final = timedelta(hours=12)
AT: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)
"""When the clock of the model begins."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One world to explore completely.

    Attributes:
        name: for reports.
        copies: for each message how often it is delivered.
        strategy: as it ships, or a broken twin of it; the outbox unless given.
        workers: processes that take deliveries.
        group: most messages that one attempt takes.
        budget: of faults and of chores.
        delayed: most unanswered writes that may be under way at a time, to take effect later.
        room: how many marks a ledger keeps. With more, a commit leaves half as many of the oldest.
        answered: how many bytes of answers a ledger keeps.
        since: for each message of the outbox the time that all its copies have, in minutes after the clock's beginning; that
            beginning if empty. None for an untimed message.
        books: whether processes write their books: before they use the first number, and at any moment afterwards.
        tokens: whether processes remember session tokens between attempts. Without, every view that a token would allow is
            allowed, and others: so all that can go wrong with tokens can go wrong without.
        remembering: whether attempts start from the document that their process knows, however often it was the newest.
        deletes: whether the last message deletes the entity.
        targets: for each message the number of its entity; all entity 0 if empty.
        feeds: for each message the number of the message that its output is for another entity; None for an output that
            leaves the world. Empty if all do.
        numbers: whether outputs have numbers, as receivers ask for that take messages in order.
        endless: whether new messages keep coming into the places of finished ones. Then `copies` says how many copies of
            each message there may be at a time.
        oblivious: whether a driver has forgotten which deliveries were given back, so that `Begin` names all: a twin of it.
        ages: the clock, and what goes by it; None where time stands still.
        lenient: whether a batch processes again what a batch has given up: a twin of the host.
        chores: what is done apart from processing.
        witnesses: what has to be seen somewhere, or the scenario shows less than it says.
        messages: what is delivered, where records are companions of their entity; see `scenario_of`. Empty for the outbox.
        apart: whether every attempt gets transaction ids of its own, as it does with the outbox. Without, attempts on one
            version at the same messages get the same, so that drafts that are alike are one: at most one is ever committed.
        traceless: whether a message that keeps the state may be processed without a trace in the store: then its output may
            show any state that there was. Only broken twins do that.
        sourced: whether the entity is event-sourced.
        adopted: whether the entity has a document without a ledger in the beginning, as before the library came.
        missing: numbers, first and last, of the outputs that a stream is asked to send again; None for everything.
        requests: for each message the request that it came by; None for one from a queue. Empty if all came by queues. Nobody
            delivers a request again but its client, which may leave at any time without an answer.
        reopened: whether requests are opened under ids of their callers, so that a late copy of that opens them once more.
        replies: for each message of the outbox the call that it is the reply to; None if it is no reply. Replies come when
            their call is published. Empty if nobody makes calls.
        keeps: numbers of the messages of the outbox whose output is kept. It is due at once, so the sweeper releases it at any
            moment.
        cancels: for each message the number of the one whose kept output its handler cancels; None if it cancels none. Empty if
            none does.
        states: how many the search of it has; 0 where nobody counts. A world that suddenly has fewer shows less than it did.
    """

    name: str
    copies: tuple[int, ...]
    strategy: Any = None
    workers: int = 2
    group: int = 1
    budget: Budget = field(default_factory=Budget)
    delayed: int = 9
    room: int = 1
    answered: int = 2048
    since: tuple[int | None, ...] = ()
    books: bool = False
    tokens: bool = False
    remembering: bool = False
    deletes: bool = False
    targets: tuple[int, ...] = ()
    feeds: tuple[int | None, ...] = ()
    numbers: bool = False
    endless: bool = False
    oblivious: bool = False
    lenient: bool = False
    ages: Ages | None = None
    chores: Chores = Chores()
    witnesses: frozenset[str] = frozenset()
    messages: tuple[Message, ...] = ()
    apart: bool = False
    traceless: bool = False
    sourced: bool = False
    adopted: bool = False
    missing: tuple[int, int] | None = None
    requests: tuple[Request | None, ...] = ()
    reopened: bool = False
    replies: tuple[Reply | None, ...] = ()
    keeps: frozenset[int] = frozenset()
    cancels: tuple[int | None, ...] = ()
    states: int = 0

    def __post_init__(self) -> None:
        if self.strategy is None:
            object.__setattr__(self, "strategy", outbox(self.room, self.answered))

    def request(self, message: int) -> Request | None:
        """The request that a message came by; None if it came by a queue."""
        return self.requests[message] if self.requests else None

    def target(self, message: int) -> int:
        """The entity a message is for."""
        return self.targets[message] if self.targets else 0

    def fed(self, message: int) -> int | None:
        """The message that the output of a message is for another entity; None if it is none."""
        return self.feeds[message] if self.feeds else None

    def replying(self, call: int, version: int) -> tuple[int, ...]:
        """The replies that come when a message's call is published, copy by copy, if this version was committed with it."""
        replies = ((number, item) for number, item in enumerate(self.replies) if item is not None)
        return tuple(
            number
            for number, item in replies
            if (item.call, item.version) == (call, version)
            for _ in range(item.copies)
        )

    @property
    def logs_parked(self) -> bool:
        """Whether anybody reads parked messages."""
        return bool(self.budget.requeues)

    @property
    def entities(self) -> int:
        """How many entities there are."""
        return max(self.targets, default=0) + 1

    @property
    def companions(self) -> bool:
        """Whether records are companions, in the partition of their entity, and there is no library."""
        return bool(self.messages)

    @property
    def skips(self) -> bool:
        """Whether a read model gives up on messages that do not come."""
        return getattr(self.strategy, "on_gap", "wait") == "skip"

    @property
    def fills_gaps(self) -> bool:
        """Whether a read model does something about messages that do not come."""
        return self.skips or isinstance(getattr(self.strategy, "on_gap", "wait"), Rebuild)

    @property
    def ordered(self) -> bool:
        """Whether a read model brings all its sources into one order."""
        return getattr(self.strategy, "order", "source") == "time"

    @property
    def protocol(self) -> str:
        """Which protocol it is about."""
        name: str = self.strategy.name
        return name


def world_of(name: str, copies: tuple[int, ...], *seen: str, **more: Any) -> Scenario:
    """A scenario by its attributes, among which stand those of its budget, and by what has to be seen somewhere."""
    amounts = {key: more.pop(key) for key in PLACES if key in more}
    budget = replace(more.pop("budget", Budget()), **amounts)
    return Scenario(name, copies, budget=budget, witnesses=frozenset(seen), **more)


def scenario_of(name: str, messages: tuple[Message, ...], strategy: Any, *seen: str, **more: Any) -> Scenario:
    """The same of a protocol whose records are companions."""
    copies = tuple(message.copies for message in messages)
    return world_of(name, copies, *seen, messages=messages, strategy=strategy, **more)


def spent(left: tuple[int, ...], place: int) -> tuple[int, ...]:
    """The budget after one more fault."""
    amount = left[place]
    return left if amount == UNLIMITED else (*left[:place], amount - 1, *left[place + 1 :])


def with_copies(queue: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    """The queues with one more copy in each of these places."""
    more = list(queue)
    for place in places:
        more[place] += 1
    return tuple(more)


def without_copies(queue: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    """The queues with one copy fewer in each of these places."""
    rest = list(queue)
    for place in places:
        rest[place] -= 1
    return tuple(rest)


NOTHING: Final = Memory()
STUMBLE, NUDGE, ANSWER = "stumble", "nudge", "answer"
EVERYTHING: Final = ("1", str(2**31))
"""First and last version of all that a stream has ever sent, and more."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a run starts.

    Attributes:
        task: "attempt", or "stumble", an attempt in which handlers raise; "sweep" and "settle", as a strategy does it;
            "requeue" a parked message; "clean" up staged outputs or companions, "clean pages"; "nudge" a read model;
            "replay" what a stream has sent, or "answer" what is missing of it.
        entity: number of the entity.
        messages: numbers of the messages it is about.
        memory: what its process remembers of the entity.
        candidates: what the task is about besides messages: transactions whose staged outputs are to be cleaned up; ids of
            companions, or what pages follow, with ETags; keys of the messages whose handlers raise; first and last version to
            be sent again.
        behind: how many ticks its process's present is behind the store's.
        heard: whether its process has heard of the last change of the retention.
        tick: at which it begins, where its process trims ledgers by a retention that changes.
    """

    task: str
    entity: int
    messages: tuple[int, ...] = ()
    memory: Memory = NOTHING
    candidates: tuple[str, ...] = ()
    behind: int = 0
    heard: bool = True
    tick: int = 0
