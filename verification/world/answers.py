"""What the world may answer to an effect: every reply the fault model allows, with what each does to the store.

Rules of reading (Session consistency): a read with a token returns that version or a later one; a read of companions or of the
library without one returns any version, each read its own. Of the views that show a read the same, it is given the token of the
oldest: whatever a later token allows, that one allows too. Writes are judged at the end of the log. A write has four outcomes,
applied or not and answered or not; and an unanswered one may take effect at any later time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Final

from exactlyonce.drivers.overdue import divided
from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    FoundCompanions,
    FoundNumbered,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect
from exactlyonce.effects.entity import PUBLISHED, Conflict, Loaded, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import (
    DeletePages,
    DeleteStaged,
    FindPages,
    FindPagesAbove,
    FoundAbove,
    FoundPages,
    FoundParked,
    FoundRequests,
    FoundStaged,
    HasPages,
    KeepAnswers,
    LoadParked,
    LoadRequests,
    LoadStaged,
    Park,
    Stage,
    Unpark,
    WritePage,
)
from exactlyonce.records.companions import ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import by_hash, split, written
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import Envelope
from verification.world.companions import CompanionsJudge, asked_for, is_request, keys_of, versions_with
from verification.world.outbox import OutboxJudge, brought, content_of, keys_in, sent_again
from verification.world.scenario import AT, PLACES, TICK, Scenario
from verification.world.store import (
    NOW,
    Entity,
    Library,
    Store,
    StoredPage,
    Stores,
    Version,
    entity_number,
    is_removed,
    position_of,
    token_at,
    views_in,
)
from verification.world.writes import Answer, BestEffort, Judge, Write, Writes, described, parts_of

Look = Callable[[Entity, int], FoundCompanions]
"""Finds companions of an entity, in its view at a position."""


def by_id(ids: tuple[str, ...]) -> Look:
    def find(entity: Entity, position: int) -> FoundCompanions:
        view = entity.companions(position)
        return FoundCompanions(tuple(view[id] for id in dict.fromkeys(ids) if id in view))

    return find


def entries(ranges: tuple[tuple[int, int], ...]) -> Look:
    def find(entity: Entity, position: int) -> FoundCompanions:
        found = {
            item.version: (item, etag)
            for item, etag in entity.companions(position).values()
            if isinstance(item, StreamEntry) and any(first <= item.version <= last for first, last in ranges)
        }
        return FoundCompanions(tuple(entry for _, entry in sorted(found.items())))

    return find


def owing(entity: Entity, position: int) -> FoundCompanions:
    records = entity.companions(position).values()
    return FoundCompanions(
        tuple(
            (item, etag)
            for item, etag in records
            if isinstance(item, ColocatedRecord | StreamEntry) and item.owing_since
        )
    )


def in_words(companion: ColocatedRecord | StreamEntry | NumberedMessage) -> str:
    owes = isinstance(companion, ColocatedRecord) and companion.owed is not None
    held = isinstance(companion, NumberedMessage) and companion.held is not None
    return f"{companion.message}{', which owes' if owes else ', held' if held else ''}"


ANSWERED: Final = "a request was found with its answer"


def seen_requests(effect: LoadRequests, store: Store, unanswered: Iterator[Answer]) -> Iterator[Answer]:
    """No answer; and the documents of requests, in every view at or after the token."""
    yield from unanswered
    library = store.libraries[entity_number(effect.entity)]
    for position in range(position_of(effect.token), library.end + 1):
        view = library.view(position)
        found = tuple(view[id] for id in map("request:{}".format, effect.requests) if id in view)
        answered = sum(document.answer is not None for document in found)
        said = f"finds {len(found)} of {len(effect.requests)} requests, {answered} of them answered"
        reply = FoundRequests(found, token_at(position))
        said, seen = f"{said}, in view {position} of {library.end}", ANSWERED if answered else None
        yield Answer(reply, store, said=said, witnessed=seen, aged=position < library.end)


_PRESENT: Final = datetime.fromtimestamp(NOW, timezone.utc)
STALE: Final = PLACES["stale"]
LOST: Final = PLACES["unknown"]
REPEATED: Final = PLACES["repeated"]
OVERDUE: Final = "an output was too old to be published"
FOUND: Final = "a page knew a message"
ANSWERED_THERE: Final = "a page that knew no message had an answer"
EXPIRED: Final = "a page was gone with age"
OLD: Final = "companions were seen in an older view"
ASKED: Final = "a source was asked to send again what was lost"
WAS_BEHIND: Final = "a replica was behind"


def judge_of(scenario: Scenario) -> Judge:
    if scenario.companions:
        return CompanionsJudge(scenario, keys_of(scenario.messages))
    return OutboxJudge(scenario, keys_in(scenario))


class World:
    """Answers effects for one scenario.

    Args:
        judge: of what happens; the scenario's own unless given.
    """

    def __init__(self, scenario: Scenario, judge: Judge | None = None) -> None:
        self.scenario = scenario
        self.stores = Stores()
        self.judge = judge or judge_of(scenario)
        self.writes = Writes(self.stores, scenario, self.judge)
        self._stale = bool(scenario.budget.stale)
        self._ages = scenario.ages
        self._delayed = scenario.delayed > 0

    def answers(self, effect: Effect[Any], store: Store) -> Iterator[Answer]:  # noqa: C901, PLR0912
        match effect:
            case LoadEntity():
                yield from self._load(effect, store)
            case LoadCompanions():
                yield from self._read(effect.token, store, by_id(effect.ids))
            case FindEntries():
                yield from self._read(effect.token, store, entries(effect.ranges))
            case FindOwing():
                yield from self._read(None, store, owing)
            case FindNumbered():
                yield from self._look_up(effect, store)
            case HasCompanions():
                yield from self._any_companion(store)
            case FindPages():
                yield from self._find_pages(effect, store)
            case FindPagesAbove():
                yield from self._find_pages_above(effect, store)
            case LoadStaged():
                yield from self._load_staged(effect, store)
            case LoadRequests():
                yield from seen_requests(effect, store, self._unanswered(store, may_be_behind=effect.token is not None))
            case HasPages():
                yield from self._has_pages(effect, store)
            case LoadParked():
                yield from self._load_parked(effect, store)
            case Publish():
                yield from self._publish(effect, store)
            case DeleteStaged() | DeletePages() | Unpark() | ReplaceCompanions() | DeleteCompanions():
                yield from self._best_effort(effect, store)
            case SaveEntity() | SaveBatch() | WritePage() | Stage() | Park() | KeepAnswers():
                yield from self._write(effect, store)
            case _:
                raise TypeError(effect)

    def land(self, write: Write, store: Store) -> Answer:
        """A write takes effect, if its condition holds."""
        return self.writes.applied(write, store)

    def _load(self, effect: LoadEntity, store: Store) -> Iterator[Answer]:
        entity = store.entities[entity_number(effect.entity)]
        oldest: dict[str | None, int] = {}
        for position in views_in(entity, effect.token):
            oldest.setdefault(entity.versions[position - entity.first].etag, position)
        for etag, position in reversed(oldest.items()):
            version = entity.versions[position - entity.first]
            loaded = Loaded(version.document, etag, _written(version) if version.document else 0, token_at(position))
            if etag == entity.truth.etag:
                yield Answer(loaded, store, said=f"loads version {position}")
            else:
                said = f"loads version {position}, though {entity.newest} is the newest"
                yield Answer(loaded, store, STALE, said=said, witnessed="stale load")
        # Processes of the outbox remember tokens of which the model knows nothing.
        yield from self._unanswered(store, may_be_behind=effect.token is not None or not self.scenario.companions)

    def _any_companion(self, store: Store) -> Iterator[Answer]:
        entity = store.partition
        yield Answer(bool(entity.now), store, said="looks for any companion")
        if entity.now and any(not entity.companions(position) for position in views_in(entity, None)):
            yield Answer(False, store, STALE, said="looks for any companion in an older view, and finds none")
        yield self._unread(store)

    def _read(self, token: str | None, store: Store, find: Look) -> Iterator[Answer]:
        if store.libraries:
            raise TypeError("The outbox has no companions to read.")
        entity = store.partition
        found = dict.fromkeys(find(entity, position) for position in reversed(views_in(entity, token)))
        for number, reply in enumerate(found):
            listed = ", ".join(in_words(companion) for companion, _ in reply.companions) or "nothing"
            hit = any(isinstance(item, ColocatedRecord | StreamEntry) for item, _ in reply.companions)
            seen = "duplicate found its record" if hit else OLD if number else None
            said = f"reads the companions {listed}"
            if number == 0:
                yield Answer(reply, store, said=said, witnessed=seen)
            else:
                yield Answer(reply, store, STALE, said=f"{said}, in an older view", witnessed=seen)
        yield from self._unanswered(store, may_be_behind=token is not None)

    def _look_up(self, effect: FindNumbered, store: Store) -> Iterator[Answer]:
        entity = store.partition
        views = reversed(views_in(entity, effect.token))
        found = dict.fromkeys(versions_with(effect, entity, position) for position in views)
        for number, versions in enumerate(found):
            said = f"looks up which versions have sent numbers {effect.numbers[0]} to {effect.numbers[1]}"
            if number == 0:
                yield Answer(FoundNumbered(versions), store, said=said)
            else:
                yield Answer(FoundNumbered(versions), store, STALE, said=f"{said}, in an older view", witnessed=OLD)
        yield from self._unanswered(store, may_be_behind=effect.token is not None)

    def _find_pages(self, effect: FindPages, store: Store) -> Iterator[Answer]:
        yield from self._unanswered(store, may_be_behind=effect.token is not None)
        found: dict[FoundPages, tuple[bool, bool]] = {}
        for pages, aged, expired in self._pages(effect, store):
            reply = effect.found(page.page for page in pages)
            found.setdefault(reply, (aged, expired))
        for reply, (aged, expired) in found.items():
            names = ", ".join(f"page {page.version}" for page in reply.pages) or "no page"
            marks = by_hash(written(mark for page in reply.pages for mark in split(page.marks)))
            answered = any(page.answers for page in reply.pages)
            seen = EXPIRED if expired else FOUND if marks else ANSWERED_THERE if answered else None
            yield Answer(
                reply, store, said=f"finds {names}{' of an older view' if aged else ''}", witnessed=seen, aged=aged
            )

    def _find_pages_above(self, effect: FindPagesAbove, store: Store) -> Iterator[Answer]:
        yield from self._unanswered(store, may_be_behind=effect.token is not None)
        found: dict[FoundAbove, bool] = {}
        for pages, aged, _ in self._pages(effect, store):
            above = FoundAbove(tuple((page.page, page.etag) for page in pages if page.page.number > effect.number))
            found.setdefault(above, aged)
        for reply, aged in found.items():
            said = f"finds {', '.join(f'page {item.number}' for item, _ in reply.pages) or 'no page'} above {effect.number}"
            yield Answer(reply, store, STALE if aged else None, said=said)  # Each fence in vain makes another version.

    def _pages(
        self, effect: FindPages | FindPagesAbove, store: Store
    ) -> Iterator[tuple[tuple[StoredPage, ...], bool, bool]]:
        """What a read of pages may see, the newest view first, each with whether it is old, and whether pages have expired.

        Pages whose time is over may be there, or be gone.
        """
        library = store.libraries[entity_number(effect.entity)]
        for position in reversed(self._views_of(library, effect.token)):
            view = library.view(position)
            pages = tuple(view[id] for id in sorted(view) if id.startswith("page:"))
            aged = position < library.end
            yield pages, aged, False
            living = tuple(page for page in pages if not _is_over(page, store.now))
            if len(living) < len(pages):
                yield living, aged, True

    def _has_pages(self, effect: HasPages, store: Store) -> Iterator[Answer]:
        number = entity_number(effect.entity)
        library = store.libraries[number]
        shown = is_removed(store.entities[number], library) and not self.scenario.tokens  # See `Budget.removed`.
        first = library.end if shown else position_of(effect.token)
        views = map(library.view, range(first, library.end + 1))
        there = [any(id.startswith("page:") for id in view) for view in views]
        for reply in dict.fromkeys(reversed(there)):
            yield Answer(
                reply,
                store,
                said=f"looks for any page, and finds {'one' if reply else 'none'}",
                aged=reply is not there[-1],
            )
        yield from self._unanswered(store, may_be_behind=effect.token is not None)

    def _load_staged(self, effect: LoadStaged, store: Store) -> Iterator[Answer]:
        library = store.libraries[entity_number(effect.entity)]
        yield from self._unanswered(store, may_be_behind=effect.token is not None)
        for position in self._views_of(library, effect.token):
            view = library.view(position)
            found = tuple(view[f"staged:{tx}"] for tx in effect.transactions if f"staged:{tx}" in view)
            gone = len(found) < len(effect.transactions)
            said = f"reads staged outputs: {len(found)} of {len(effect.transactions)} are there"
            seen = "staged outputs were gone" if gone else None
            yield Answer(FoundStaged(found), store, said=said, witnessed=seen, aged=position < library.end)

    def _load_parked(self, effect: LoadParked, store: Store) -> Iterator[Answer]:
        library = store.libraries[entity_number(effect.entity)]
        yield from self._unanswered(store, may_be_behind=effect.token is not None)
        views = [
            library.view(position).get(f"parked:{effect.message}") for position in self._views_of(library, effect.token)
        ]
        for parked in dict.fromkeys(reversed(views)):
            aged = parked != views[-1]
            said = f"reads {'no' if parked is None else 'the'} parked {effect.message}{', in an older view' if aged else ''}"
            etag, message = (None, None) if parked is None else parked
            read_at = None if parked is None else _PRESENT
            yield Answer(FoundParked(message, etag, read_at), store, said=said, aged=aged)

    def _unanswered(self, store: Store, *, may_be_behind: bool) -> Iterator[Answer]:
        if self._stale and may_be_behind:
            yield Answer(BEHIND, store, STALE, said="asks a replica that is behind", witnessed=WAS_BEHIND)
        yield self._unread(store)

    @staticmethod
    def _unread(store: Store) -> Answer:
        return Answer(UNKNOWN, store, LOST, said="gets no answer to a read")

    def _views_of(self, library: Library, token: str | None) -> range:
        return range(position_of(token), library.end + 1)

    def _publish(self, effect: Publish, store: Store) -> Iterator[Answer]:
        if effect.outputs and all(map(is_request, effect.outputs)):
            yield from self._ask(effect, store)
            return
        again = tuple(key for key in map(sent_again, effect.outputs) if key is not None)
        if again:
            after = self.stores.changed(store, requeued=store.requeued | frozenset(again))
            sent = Answer(PUBLISHED, after, said=f"sends {', '.join(again)} again", again=again)
            yield from self._sent(replace(sent, witnessed="a parked message was sent again"), store)
            return
        outputs, overdue = self._divided(effect, store)
        keys = tuple(content_of(output)[0] for output in outputs)
        after = self.stores.changed(
            store,
            committed=store.committed | self._traceless(outputs, store),
            published=store.published | frozenset(keys),
            overdue=store.overdue | frozenset(overdue),
        )
        said = f"publishes {', '.join(output.id for output in outputs) or 'nothing'}"
        said += f" and parks what {', '.join(overdue)} owes, since it is too old" if overdue else ""
        violation = self.judge.outputs(effect.outputs if self.scenario.companions else outputs, store)
        violation = violation or self._late(effect, outputs, store)
        sent = Answer(
            PUBLISHED, after, violation=violation, said=said, arrivals=() if violation else self._arrivals(outputs)
        )
        yield from self._sent(replace(sent, witnessed=OVERDUE if overdue else None), store)

    def _arrivals(self, outputs: tuple[Output, ...]) -> tuple[int, ...]:
        sent = ((self.judge.keys.index(content_of(output)[0]), output) for output in outputs)
        arriving = (item for number, output in sent for item in brought(self.scenario, number, output))
        return tuple(arriving) if self.scenario.feeds or self.scenario.replies else ()

    def _ask(self, effect: Publish, store: Store) -> Iterator[Answer]:
        """Sources are asked; what they send again arrives at once, and is taken at any later time."""
        keys = tuple(key for output in effect.outputs for key in asked_for(self.scenario, output))
        asked = Answer(PUBLISHED, store, said=f"asks for {', '.join(keys) or 'nothing that there is'}", asked=keys)
        yield from self._sent(replace(asked, witnessed=ASKED), store)

    def _sent(self, sent: Answer, store: Store) -> Iterator[Answer]:
        """What is sent arrives, with a reply or without one, or it does not."""
        yield sent
        yield replace(sent, reply=UNKNOWN, cost=LOST, said=f"{sent.said}; the reply is lost", witnessed=None)
        yield Answer(UNKNOWN, store, LOST, said=f"{sent.said}, which fails")

    def _traceless(self, outputs: tuple[Output, ...], store: Store) -> frozenset[tuple[str, str]]:
        """What outputs say of messages that may be processed without a trace."""
        if not self.scenario.traceless:
            return frozenset()
        known = {key for key, _ in store.committed}
        contents = ((content_of(output)[0], output.envelope.text) for output in outputs)
        return frozenset(content for content in contents if content[0] not in known)

    def _divided(self, effect: Publish, store: Store) -> tuple[tuple[Output, ...], tuple[str, ...]]:
        if self._ages is None or not self._ages.limits:
            return effect.outputs, ()
        kept, _ = divided(effect, self._ages.lifetimes, AT + store.now * TICK)
        return kept, tuple(content_of(output)[0] for output in effect.outputs if output not in kept)

    def _late(self, effect: Publish, outputs: tuple[Output, ...], store: Store) -> str | None:
        """What is wrong with the age of what was owed and is published: its receiver must be able to judge it."""
        if self._ages is None or effect.owed is None:
            return None
        now = AT + store.now * TICK
        for output in outputs:
            time = Envelope.read(output.envelope.text).time
            if output.place is None and time is not None and now - time > self._ages.lifetimes.oldest_judged(now):
                return f"nothing_lost: {output.id} is published when nobody can judge it any more"
        return None

    def _best_effort(self, effect: BestEffort, store: Store) -> Iterator[Answer]:
        """A write that is done as well as may be: all of it, one of several companions, nothing, or later."""
        yield self.land(effect, store)
        yield Answer(None, store, LOST, said=f"{described(effect)}, which is lost")
        for item in parts_of(effect):
            part = self.land(item, store)
            yield Answer(None, part.store, LOST, said=f"{part.said}; the rest is lost")
        if self._delayed:
            yield Answer(None, store, LOST, effect, said=f"{described(effect)}, which will arrive later")

    def _write(self, effect: Write, store: Store) -> Iterator[Answer]:
        applied = self.land(effect, store)
        yield applied
        if not isinstance(applied.reply, Conflict):
            said, after, violation = applied.said, applied.store, applied.violation
            yield Answer(UNKNOWN, after, LOST, None, violation, f"{said}; the reply is lost")
            if isinstance(effect, SaveEntity | SaveBatch | Stage):
                reply = self.land(effect, after).reply
                twice = f"{said}; sent twice, so the reply says conflict"
                yield Answer(reply, after, REPEATED, None, violation, twice, "own success seen as a conflict")
        yield Answer(UNKNOWN, store, LOST, said=f"{described(effect)}, which is lost")
        if self._delayed:
            yield Answer(UNKNOWN, store, LOST, effect, said=f"{described(effect)}, which will arrive later")


def _is_over(page: StoredPage, now: int) -> bool:
    """Whether the time of a page is over, at a tick."""
    return page.expires is not None and now * int(TICK.total_seconds()) >= page.expires


def _written(version: Version) -> int:
    """The server's time of writing a version, in seconds."""
    return NOW + int(version.tick * TICK.total_seconds())
