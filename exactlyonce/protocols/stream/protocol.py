"""The version stream: a state-based protocol ("State-based consistent messaging", Masternak and Pobiega).

Every message leaves an entry in its entity's stream, in one batch with the new state, even if the state did not change. No
outputs are stored. A duplicate is handled again on the state, and with the times, of the first processing, and so sends the
same outputs under the same ids and numbers. That needs deterministic handlers; a digest detects others.

A request is delivered again only by its client, who may not come back. So the entry of a request keeps the answer, and the
outputs until published.

Publishing comes after the batch; messages are acknowledged after publishing. Nothing is ever undone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Final

from jsonpatch import JsonPatch, JsonPatchException, make_patch
from jsonpointer import JsonPointerException

from exactlyonce.effects.attempt import Again, Before, Finished, Handle, Memory, Refusal, Settled, Unfinished, Work
from exactlyonce.effects.companions import FindEntries, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import PUBLISHED, Publish, Saved
from exactlyonce.errors import (
    ConfigurationError,
    DamagedDocument,
    EntityTooLarge,
    ExactlyOnceError,
    HandlerError,
    HandlerFailed,
    NonDeterministicHandler,
    TooOldToJudge,
)
from exactlyonce.protocols.steps.batch import (
    BATCH_BYTES,
    BATCH_MESSAGES,
    Batch,
    HandledMessage,
    draft_batch,
    publish_records,
    settled,
    sweep_records,
)
from exactlyonce.protocols.steps.clean import clean_by_ledger, committed_by_companions
from exactlyonce.protocols.steps.load import View, answers_beside, load_with_companions, start_over, write_blobs
from exactlyonce.protocols.steps.park import companions_know, settle
from exactlyonce.records.blobs import Author
from exactlyonce.records.companions import StreamEntry, entry_id
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES, Ledger
from exactlyonce.records.outbox import Output, digest
from exactlyonce.values.declarations import require
from exactlyonce.values.envelope import EntityRef, Envelope, key_of
from exactlyonce.values.frozen_json import Json

# Going back: an entry holds its handler's starting state, now and then whole, else as an RFC 6902 patch from the result. An
# earlier version is reached from the next whole state, or the newest, in at most `snapshot_every` patches.


@dataclass(frozen=True, slots=True)
class Point:
    """A state between two handlers.

    Attributes:
        body: the user's properties; None if absent or deleted.
    """

    body: Json | None

    @property
    def json(self) -> Json:
        """The state as JSON."""
        return Json.of({"body": None if self.body is None else self.body.value})

    @classmethod
    def of(cls, json: Json) -> Point:
        """Read the result of `json`. Raises `DamagedDocument`."""
        properties = json.value
        if not isinstance(properties, dict) or properties.keys() != {"body"}:
            raise DamagedDocument("An earlier state has to have the property body, and no further.")
        body = properties["body"]
        if not isinstance(body, dict | None):
            raise DamagedDocument("The body of an earlier state is neither an object nor null.")
        return cls(None if body is None else Json.of(body))


def way_back(before: Point, after: Point, *, whole: bool) -> tuple[Json, bool]:
    """The `before` and `whole` of an entry.

    Args:
        whole: whether the whole state is required. The whole state is also stored if the patch would be no shorter, or would
            not lead back exactly: a patch loses the order of properties.
    """
    start = before.json
    if not whole:
        patch = make_patch(after.json.value, start.value)
        way = Json.of(patch.patch)
        if way.size < start.size and Json.of(patch.apply(after.json.value)) == start:
            return way, False
    return start, True


def versions_for(version: int, ledger: Ledger) -> tuple[int, int]:
    """First and last version of the entries that lead to the state before a version."""
    every = ledger.snapshot_every or 1
    if ledger.event_sourced:
        return (version - 1) // every * every + 1, version
    return version, min(-(-version // every) * every, ledger.version)


def part_from(version: int, ledger: Ledger) -> tuple[int, int]:
    """First and last version of the entries that lead to a version and its successors, up to before the next whole state."""
    every = ledger.snapshot_every or 1
    first, _ = versions_for(version, ledger)
    return first, min(-(-version // every) * every, ledger.version)


def is_whole(version: int, before: Point, ledger: Ledger) -> bool:
    """Whether the entry of a version has to hold the whole state."""
    every = ledger.snapshot_every or 1
    if ledger.event_sourced:
        return (version - 1) % every == 0 or before.body is None
    return version % every == 0


def leads_back(version: int, loaded: tuple[StreamEntry, ...], ledger: Ledger) -> bool:
    """Whether all entries are present that lead to the state before a version."""
    first, last = versions_for(version, ledger)
    return {*range(first, last + 1)} <= {entry.version for entry in loaded}


def point_before(work: Work, version: int, loaded: tuple[StreamEntry, ...], ledger: Ledger, now: Point) -> Point:
    """The state before a version.

    Args:
        work: the entity, with the effect of events.
        version: version produced by the handler.
        loaded: entries, ordered by version; including those named by `versions_for`.
        now: state of the entity as loaded.

    Raises:
        DamagedDocument: an entry is missing, or does not lead on.
        HandlerFailed: an event cannot be applied.
    """
    entity = work.entity
    first, last = versions_for(version, ledger)
    entries = tuple(entry for entry in loaded if first <= entry.version <= last)
    if tuple(entry.version for entry in entries) != tuple(range(first, last + 1)):
        raise DamagedDocument(
            f"The stream of entity {entity} has not every version from {first} to {last}, so version {version} cannot be "
            "handled again. Nothing was changed. Restore the entries from a backup. If clean-up has taken them, the message is "
            "older than the retention, and may be dropped."
        )
    if ledger.event_sourced:
        return _stepped_forward(work, entries)
    point = now
    if last < ledger.version and not entries[-1].whole:
        raise _damaged(entity, last, "should hold a whole state, and does not")
    for entry in reversed(entries):
        point = _stepped_back(entity, entry, point)
    return point


def _stepped_forward(work: Work, entries: tuple[StreamEntry, ...]) -> Point:
    """The state before the last of these entries, by the events since the last whole state."""
    entity, last = work.entity, entries[-1]
    start = next((index for index in reversed(range(len(entries))) if entries[index].whole), None)
    if start is None or entries[start].before is None:
        raise _damaged(entity, entries[start or 0].version, "should hold a whole state, and does not")
    point = _whole(entity, entries[start])
    for entry in entries[start:-1]:
        if entry.events is None or work.evolve is None:
            raise _damaged(entity, entry.version, "has no events")
        try:
            point = Point(work.evolve(point.body, entry.events))
        except ExactlyOnceError as error:
            raise HandlerFailed(
                f"Message {last.message} on entity {entity} cannot be handled again on version {last.version - 1}, since the "
                f"events of version {entry.version} cannot be applied: {error} Nothing was sent."
            ) from error if error.__cause__ is None else error.__cause__
    return point


def _whole(entity: EntityRef, entry: StreamEntry) -> Point:
    try:
        return Point.of(entry.before or Json("null"))
    except DamagedDocument:
        raise _damaged(entity, entry.version, "holds a whole state that cannot be read") from None


def _stepped_back(entity: EntityRef, entry: StreamEntry, after: Point) -> Point:
    try:
        if entry.before is None:
            raise _damaged(entity, entry.version, "holds no way back")
        if entry.whole:
            return Point.of(entry.before)
        return Point.of(Json.of(JsonPatch(entry.before.value).apply(after.json.value)))
    except (JsonPatchException, JsonPointerException, TypeError, DamagedDocument) as error:
        raise _damaged(
            entity, entry.version, f"holds a patch that cannot be applied ({type(error).__name__})"
        ) from None


def _damaged(entity: EntityRef, version: int, what: str) -> DamagedDocument:
    return DamagedDocument(
        f"Version {version} in the stream of entity {entity} {what}. Nothing was changed. Restore the entry from a backup."
    )


MOST_BETWEEN_SNAPSHOTS: Final = 100
_MESSAGE_ROOM: Final = 100_000
"""Bytes left for a message in a batch that holds the whole state twice: in the document, and in an entry."""


@dataclass(frozen=True, slots=True)
class VersionStream:
    """Settings of the version stream.

    Attributes:
        snapshot_every: distance between whole states. Applies to new streams; existing streams keep their distance.

    Raises:
        ConfigurationError: `snapshot_every` is not from 1 to 100.
    """

    snapshot_every: int = 20

    def __post_init__(self) -> None:
        require("snapshot_every= of a version stream", self.snapshot_every, int, "a whole number")
        if not 1 <= self.snapshot_every <= MOST_BETWEEN_SNAPSHOTS:
            raise ConfigurationError(f"snapshot_every of a version stream is from 1 to {MOST_BETWEEN_SNAPSHOTS}.")

    name: ClassVar[str] = "stream"
    companions: ClassVar[bool] = True
    """The stream lies in the entity's partition."""
    answers: ClassVar[bool] = True
    """Entries hold the answers."""
    unfinished: ClassVar[tuple[Unfinished, ...]] = ("companions",)
    """Entries of requests owe outputs. A message of a queue is redelivered, and handled again."""
    group_limit: ClassVar[int] = BATCH_MESSAGES

    def forgets(self, envelope: Envelope) -> bool:  # noqa: ARG002
        """True: entries of the stream go with age."""
        return True

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Process messages for one entity; copies of one message count once. At most 14 effects."""
        messages = {key_of(envelope): envelope for envelope in work.messages}
        view = yield from self.load_state(work, memory)
        if isinstance(view, Again):
            return view
        # Finish requests. Their entries hold their owed outputs and their answers.
        owed = yield from publish_records(work.entity, view.companions, view.memory)
        if owed is not None:
            return owed
        entries = entries_in(view)
        answers = answers_beside(entries)
        failed: tuple[tuple[str, ExactlyOnceError], ...] = ()
        queued = tuple(entry for entry in entries if entry.answer is None)
        contents = tuple((entry.message, _message(entry).content) for entry in queued)
        if queued:
            again = yield from handled_again(work, messages, queued, view)
            if isinstance(again, Again):
                return again
            failed = again
        processed = {entry.message for entry in entries}
        fresh = {key: envelope for key, envelope in messages.items() if key not in processed}
        if not fresh:
            return Finished(view.memory, failed=failed, answers=answers, contents=contents)
        # Begin, and handle the messages. Their entries keep this time, so that duplicates are handled at the same time. A
        # message whose handler raises, or whose result does not fit, drops out alone.
        begun = yield from Begin(tuple(fresh))
        batch = draft_batch(work, view, fresh, begun, lambda result: _entry(work, view, result))
        batch = replace(batch, failed=(*failed, *batch.failed))
        if not batch.processed:
            return Finished(view.memory, failed=batch.failed, answers=answers, contents=contents)
        outcome = yield from _commit(work.entity, view, batch)
        answers = (*answers, *outcome.answers)
        return replace(outcome, answers=answers, contents=contents) if isinstance(outcome, Finished) else outcome

    def load_state(self, work: Work, memory: Memory) -> Step[View | Again]:
        """Load the newest state, and the entries of already processed messages. At most 4 effects."""
        ids = tuple(dict.fromkeys(entry_id(work.entity, key_of(envelope)) for envelope in work.messages))
        view = yield from load_with_companions(work.entity, ids, self, memory)
        if isinstance(view, Again):
            return view
        if any(entry.version > view.ledger.version for entry in entries_in(view)):
            return Again(view.memory, "the entity was seen in an older view than its stream")
        return replace(view, ledger=self._begun(work, view.ledger))

    def _begun(self, work: Work, ledger: Ledger) -> Ledger:
        """The ledger of a stream; a new stream takes its kind from the settings and the entity type."""
        if ledger.snapshot_every is None:
            return replace(ledger, snapshot_every=self.snapshot_every, event_sourced=work.evolve is not None)
        require_same_kind(work, ledger)
        return ledger

    def sweep(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        """Publish the outputs owed by entries of requests, and drop them. At most 3 effects, for at most 100 entries."""
        return sweep_records(work.entity, memory)

    def settle(self, work: Work, delivered: Envelope, reason: str, memory: Memory) -> Step[Settled | Again]:
        """Decide about a message given up by the host: handle it again as before, or park it. At most 9 effects."""
        (envelope,) = work.messages
        ids = (entry_id(work.entity, key_of(envelope)),)
        return settle(self, work, delivered, reason, memory, finish=lambda view: _finished(work, view), ids=ids)

    def knows(self, entity: EntityRef, envelope: Envelope, memory: Memory) -> Step[bool | Again]:
        """Whether an entry of the stream proves a message processed. At most 4 effects."""
        return companions_know(self, entity, envelope, (entry_id(entity, key_of(envelope)),), memory)

    def committed(
        self, entity: EntityRef, authors: tuple[Author, ...], ledger: Ledger, memory: Memory
    ) -> Step[frozenset[Author] | Again]:
        """The attempts whose transaction is named by a stream entry. At most one effect."""
        del ledger
        ids = {author: entry_id(entity, author.message) for author in authors}
        return committed_by_companions(entity, ids, memory)

    def clean(
        self, entity: EntityRef, candidates: tuple[tuple[str, str], ...], memory: Memory
    ) -> Step[Finished | Again]:
        """Delete old entries that the stream no longer needs, by its ledger. At most 5 effects."""
        return clean_by_ledger(self, entity, candidates, memory)


def require_same_kind(work: Work, ledger: Ledger) -> None:
    """Raise `ConfigurationError` if a stream holds events and its type applies none, or the other way round."""
    if ledger.snapshot_every is not None and ledger.event_sourced is not (work.evolve is not None):
        held, applied = ("events", "none") if ledger.event_sourced else ("no events", "some")
        raise ConfigurationError(
            f"The stream of entity {work.entity} holds {held}, but its type applies {applied}. Nothing was changed. Go back to "
            "the handlers it had, or declare another entity type."
        )


def entries_in(view: View) -> tuple[StreamEntry, ...]:
    """The stream entries in a view."""
    return tuple(entry for entry, _ in view.companions if isinstance(entry, StreamEntry))


def outputs_again(
    entity: EntityRef, envelope: Envelope, entry: StreamEntry, before: Point, handle: Handle
) -> tuple[Output, ...]:
    """The outputs of handling a message again.

    Raises:
        NonDeterministicHandler: the outputs differ from the first time.
        ExactlyOnceError: raised by `handle`.
    """
    start = Before(before.body, entry.at, entry.tx, sent=entry.outputs, since=entry.since)
    outputs = handle(start, envelope).outputs
    if (actual := digest(outputs)) != entry.digest:
        raise NonDeterministicHandler(
            f"Message {entry.message} on entity {entity}: handled again on the state of version {entry.version - 1}, it sent "
            f"other outputs than the first time (digest {actual[:12]}, at first {entry.digest[:12]}). Nothing was sent. Has "
            "the handler changed, or does it use anything besides state, message and context? Let it handle old states as "
            "before; exactlyonce.testing.assert_deterministic finds the leak."
        )
    return outputs


def handled_again(
    work: Work, messages: dict[str, Envelope], entries: tuple[StreamEntry, ...], view: View
) -> Step[tuple[tuple[str, ExactlyOnceError], ...] | Again]:
    """Handle duplicates on their first states, and publish; return the failures. At most 3 effects; the third only where
    entries are gone.
    """
    ranges = tuple(versions_for(entry.version, view.ledger) for entry in entries)
    # Read the states that duplicates were first handled on. One request reads at most `snapshot_every` entries for each.
    loaded = yield from FindEntries(work.entity, ranges, view.memory.entity_token)
    if isinstance(loaded, NoAnswer):
        return Again(view.memory, "the stream could not be read")
    stream = tuple(entry for entry, _ in loaded.companions if isinstance(entry, StreamEntry))
    now = Point(view.body)
    outputs: list[Output] = []
    failed: list[tuple[str, ExactlyOnceError]] = []
    gone = tuple(entry for entry in entries if not leads_back(entry.version, stream, view.ledger))
    if gone:
        # Ask for the time. If a message is older than the retention, clean-up may have taken entries it needs, and it alone
        # is refused. If a younger message lacks entries, nothing is done at all.
        begun = yield from Begin()
        failed += _too_old(work.entity, messages, gone, work.refusal, begun.at)
    refused = {message for message, _ in failed}
    for entry in entries:
        if entry.message in refused:
            continue
        try:
            before = point_before(work, entry.version, stream, view.ledger, now)
        except HandlerError as error:  # An event that cannot be applied; what is damaged stops everything.
            failed.append((entry.message, error))
            continue
        try:
            # Not the copy: a copy may have another trace, inherited by outputs, or even another content.
            outputs += outputs_again(work.entity, _message(entry), entry, before, work.handle)
        except ExactlyOnceError as error:
            failed.append((entry.message, error))
    if outputs:
        # Handle duplicates again, and publish. On the same state, at the same time and with the same ids, a deterministic
        # handler sends copies. If the digest differs, no output of the message is sent.
        published = yield from Publish(tuple(outputs), work.entity)
        if published is not PUBLISHED:
            return Again(view.memory, "the outputs of a duplicate could not be published")
    return tuple(failed)


def _message(entry: StreamEntry) -> Envelope:
    """The message of an entry, as first handled."""
    return Envelope.read(entry.envelope.text, limit=BATCH_BYTES)


def _too_old(
    entity: EntityRef,
    messages: dict[str, Envelope],
    gone: tuple[StreamEntry, ...],
    refusal: Refusal,
    now: datetime,
) -> tuple[tuple[str, ExactlyOnceError], ...]:
    """The messages so old that clean-up may have taken entries they need.

    Clean-up deletes in any order, and may be stopped: an entry may exist while an entry it needs is gone. Both are older than
    the retention, since needed entries are younger, or went with their whole interval. So the message is too old to be
    judged.
    """
    return tuple(
        (
            entry.message,
            TooOldToJudge(
                f"Message {entry.message} on entity {entity} was processed as version {entry.version}, so long ago that "
                "clean-up has taken the entries for handling it again. Nothing was sent. Drop the message, unless its "
                "outputs were never published."
            ),
        )
        for entry in gone
        if isinstance(refusal(messages[entry.message].judged_by, now), TooOldToJudge)
    )


def _entry(work: Work, view: View, message: HandledMessage) -> StreamEntry:
    handled = message.handled
    start = Point(message.before.body)
    after = Point(None if handled.deleted else handled.body)
    _require_room(work.entity, message.key, start, after)
    whole = is_whole(message.version, start, view.ledger)
    way: Json | None
    if view.ledger.event_sourced:
        way = start.json if whole else None
    else:
        way, whole = way_back(start, after, whole=whole)
    owed = (handled.outputs or None) if handled.answer is not None else None
    return StreamEntry(
        entity=work.entity.key,
        message=message.key,
        tx=message.before.tx,
        version=message.version,
        at=message.before.at,
        envelope=message.envelope.to_json(),
        before=way,
        whole=whole,
        outputs=tuple(output.ref for output in handled.outputs),
        digest=digest(handled.outputs),
        events=handled.events,
        owed=owed,
        owing_since=None if owed is None else message.before.at,
        answer=handled.answer,
        since=message.before.since,
    )


def _require_room(entity: EntityRef, message: str, before: Point, after: Point) -> None:
    """Refuse a state so large that no entry could hold all of it in one batch with the document.

    Otherwise messages of some versions would be committed, and from the next whole state on none, whatever the handler does.
    """
    state = after.json
    # In an entry the state is a string, and escaping makes it twice as long at most.
    if 3 * state.size + _MESSAGE_ROOM <= BATCH_BYTES:
        return
    needed = state.size + Json.of(state.text).size + _MESSAGE_ROOM
    # Too large for any document is another error, and a state already too large may shrink.
    if needed > BATCH_BYTES and before.json.size < state.size <= MAX_DOCUMENT_BYTES:
        sizes = (
            f"the state would have {state.size} bytes. Now and then, a stream holds the state twice in one batch: {needed} "
            f"bytes with a message, but a batch takes {BATCH_BYTES}"
        )
        raise EntityTooLarge(f"Message {message} on entity {entity}: {sizes}. Keep less in one entity.", kept=sizes)


def _commit(entity: EntityRef, view: View, batch: Batch) -> Step[Finished | Again]:
    """Commit, then publish, and never back. At most 4 effects."""
    kept = yield from write_blobs(batch.blobs, view.memory)
    if kept is not None:
        return kept
    # Commit: save the entity and create the entries, in one batch. An unchanged state has an entry, too: otherwise a
    # duplicate would be handled on another state.
    saved = yield from SaveBatch(entity, batch.document(view.ledger), view.etag, batch.companions)
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    memory = replace(view.memory, entity_token=saved.token)
    if batch.outputs:
        # Publish the outputs. After the commit, so that only committed outputs are sent; before the messages are
        # acknowledged, since only a redelivery makes these outputs again.
        published = yield from Publish(batch.outputs)
        if published is not PUBLISHED:
            return Again(memory, "the outputs could not be published")
    if owing := settled(tuple((entry, None) for entry in batch.companions)):
        # Drop the outputs of requests from their entries. Unconditionally: published outputs stay published.
        yield from ReplaceCompanions(entity, owing)
    return Finished(memory, batch.processed, batch.failed, answers=answers_beside(batch.companions))


def _finished(work: Work, view: View) -> Step[Settled | Again | None]:
    """Publish the message's outputs, by handling it again; None without an entry."""
    entries = entries_in(view)
    if not entries:
        return None
    if any(entry.version > view.ledger.version for entry in entries):
        return Again(view.memory, "the entity was seen in an older view than its stream")
    require_same_kind(work, view.ledger)
    (envelope,) = work.messages
    failed = yield from handled_again(work, {key_of(envelope): envelope}, entries, view)
    if isinstance(failed, Again):
        return failed
    for _, error in failed:
        raise error
    return Settled("processed", view.memory)
