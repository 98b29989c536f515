"""Which properties fell in reality: by the documents that were accepted, the queues, and what was acknowledged.

The judgement knows nothing of the model's. It reads the local Cosmos DB's log of accepted writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count, groupby

from exactlyonce.drivers.overdue import TOO_OLD
from exactlyonce.effects.attempt import Before
from exactlyonce.errors import DatabaseRestored, ExactlyOnceError, InvalidMessage
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import EntityView, Ledger, hash_in, read_entity, split
from exactlyonce.records.library import ParkedMessage, read_parked
from exactlyonce.records.outbox import Output, digest, holds
from exactlyonce.stores.cosmos.partition import from_library
from exactlyonce.testing.guarantee import Commit, Facts, Position, at_most_one_state_change, violations
from exactlyonce.testing.guarantee import nothing_lost as lost
from exactlyonce.values.envelope import message_hash
from verification.reproduction.reality import ENTITIES, Deeds, Reality, companion_of, taken_from
from verification.world.companions import (
    ENTITY,
    HAS_WAITED,
    asked_for,
    by_key,
    channel_of,
    envelope_of,
    handle,
    keys_of,
)
from verification.world.outbox import content_of, hash_of_release, keepers, keys_in
from verification.world.scenario import NUDGE, UNLIMITED, Message, Scenario
from verification.world.store import entity_ref, history_of, ledger_of


def parked_in(reality: Reality) -> Iterator[ParkedMessage]:
    for write in reality.writes:
        if write.document is not None and write.document.get("kind") == "parked":
            yield read_parked(from_library(write.document))


def fallen(reality: Reality, scenario: Scenario, deeds: Sequence[Deeds]) -> frozenset[str]:
    """The names of the properties that do not hold."""
    return frozenset(_Judge(reality, scenario, deeds).fallen())


@dataclass(frozen=True, slots=True)
class _Version:
    """One accepted version of an entity.

    Attributes:
        restored: whether somebody put an earlier document back with it.
    """

    history: str
    ledger: Ledger
    restored: bool

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(map(hash_in, split(self.ledger.marks)))


class _Judge:
    """Judges one run."""

    def __init__(self, reality: Reality, scenario: Scenario, deeds: Sequence[Deeds]) -> None:
        keys = keys_in(scenario)
        self._reality = reality
        self._scenario = scenario
        self._single = {key for key, copies in zip(keys, scenario.copies, strict=True) if copies == 1}
        self._names = {message_hash(key): key.partition("/")[2] for key in keys}
        self._releases = frozenset(map(hash_of_release, keepers(scenario)))
        self._kept = keepers(scenario)
        parked = tuple(parked_in(reality))
        self._parked = {item.message for item in parked}
        self._overdue = {
            item.envelope.value["data"]["message"] for item in parked if item.entity.startswith(f'["{TOO_OLD}')
        }
        self._failed = [item for deed in deeds for item in deed.failed]
        refused = {key for key, _ in self._failed}
        self._done = frozenset(
            (entity_ref(entity).key, keys[number])
            for deed in deeds
            for entity, number in deed.acknowledged
            if keys[number] not in self._parked | refused
        )
        self._versions = tuple(tuple(self._of(entity)) for entity in range(scenario.entities))

    def fallen(self) -> Iterator[str]:
        """The names of the properties, some of them more than once."""
        commits = tuple(item for entity in range(self._scenario.entities) for item in self._commits(entity))
        # Their places are in what the model's outputs say. Those that are sent again have no other.
        published = tuple(replace(output, place=None) for output in self._reality.published)
        facts = Facts(commits, published, self._done)
        if self._scenario.budget.put_back:  # What was undone is done anew, and says another thing then.
            found = (*at_most_one_state_change(commits), *lost(facts))
        else:
            found = (*violations(facts, drained=False), *lost(facts))
        excused = {message_hash(key) for key in self._overdue | self._kept}
        yield from (
            item.property
            for item in found
            if item.property != "nothing_lost" or self._is_lost(item.message, excused, commits)
        )
        if not all(map(self._is_serial, self._versions)):
            yield "serial_execution"
        # Of several copies one may be parked, and another one processed.
        if {message_hash(key) for key in self._parked & self._single} & {commit.message for commit in commits}:
            yield "parked_is_unprocessed"
        if not self._scenario.budget.put_back and any(map(self._drops, range(self._scenario.entities))):
            yield "nothing_lost"
        yield from self._wrongly_refused()

    def _drops(self, number: int) -> bool:
        """Whether an outbox has dropped outputs that were neither published nor put aside."""
        entity, versions = entity_ref(number), self._versions[number]
        last = {entry.tx for version in versions[-1:] for entry in version.ledger.outbox}
        outputs = (
            output
            for ledger in (version.ledger for version in versions)
            for entry in ledger.outbox
            if entry.tx not in last
            for output in entry.owed_outputs(entity, ledger.to, ledger.sequences)
        )
        published = {content_of(output)[0] for output in self._reality.published}
        return not {content_of(item)[0] for item in outputs} <= self._overdue | published

    def _is_lost(self, message: str, excused: set[str], commits: tuple[Commit, ...]) -> bool:
        """Whether a message was acknowledged and never committed, or owes outputs that nobody put aside or keeps."""
        return message not in excused or all(commit.message != message for commit in commits)

    def _wrongly_refused(self) -> Iterator[str]:
        ages = self._scenario.ages
        for _, error in self._failed:
            restored = isinstance(error, DatabaseRestored)
            if ages is None and not (restored and self._scenario.budget.emptied):
                yield "no_failure"
            elif ages is not None and restored and not ages.behind:
                yield f"raised {type(error).__name__}"

    def _commits(self, number: int) -> Iterator[Commit]:
        """Every commit that any accepted document records, also if it was overwritten later; but none that was undone since."""
        entity, versions = entity_ref(number), self._versions[number]
        undone = not self._scenario.budget.removed  # What was committed on an entity that was deleted stays so.
        last = max((place for place, item in enumerate(versions) if item.restored and undone), default=-1)
        known: frozenset[str] = frozenset()
        for place, one in enumerate(versions):
            new = [hash for hash in one.marks if hash not in known]
            known = known.union(new) if not one.restored else frozenset(one.marks)
            stays = place > last or self._lasts(versions[last], new)
            numbers = count(one.ledger.version - len(new) + 1)
            if one.restored or not stays:
                continue
            yield from (Commit(entity.key, hash, None, version) for hash, version in zip(new, numbers, strict=False))
            entries = (Commit.of_entry(entity, entry, one.ledger) for entry in one.ledger.outbox)
            yield from (commit for commit in entries if place > last or commit.message in new)

    def _lasts(self, restored: _Version, hashes: list[str]) -> bool:
        history = restored.history.split(">")
        return all(self._names.get(hash) in history for hash in hashes)

    def _is_serial(self, versions: tuple[_Version, ...]) -> bool:
        """Whether each state follows from the one before by the messages that its marks say were committed on it."""
        before = _Version("", Ledger(), restored=False)
        for version in versions:
            if not version.restored:
                new = sorted(set(version.marks) - {*before.marks, *self._releases})
                released = set(version.marks) & self._releases - {*before.marks}
                grew = version.ledger.version - before.ledger.version
                # A tombstone keeps its history, and the next message starts anew.
                base = "" if before.ledger.deleted and grew else before.history
                handled = version.history.removeprefix(base).split(">")[1:]
                made = sorted(message_hash(f"web/{id}") for id in handled)
                if not version.history.startswith(base) or made != new or grew != len(new) + len(released):
                    return False
            before = version
        return True

    def _of(self, number: int) -> Iterator[_Version]:
        """Every accepted version of an entity's document, and its deletion by somebody else."""
        id = entity_ref(number).id
        for write in self._reality.writes:
            restored = write.sequence in self._reality.restored
            if write.container == ENTITIES.container and write.id == id and (write.document is not None or restored):
                document = None if write.document is None else taken_from(write.document)
                yield _Version(history_of(document), ledger_of(document), restored)


@dataclass(frozen=True, slots=True)
class Made:
    """What a batch says of one message that it commits.

    Attributes:
        outputs: that it owes; None where a record has their digest only.
    """

    message: str
    tx: str
    version: int
    at: datetime
    commit: Commit
    outputs: tuple[Output, ...] | None = None

    def owes(self, outputs: tuple[Output, ...]) -> bool:
        if self.outputs is None:
            return self.commit.digest == digest(outputs)
        return [*map(_in_short, self.outputs)] == [*map(_in_short, outputs)]


def _in_short(output: Output) -> tuple[str, str]:
    """What an outbox keeps of an output: the place of the model's is in what they say."""
    return output.id, output.envelope.text


@dataclass(frozen=True, slots=True)
class Moment:
    """One accepted batch, or a write on its own."""

    before: EntityView
    after: EntityView
    known: Mapping[str, Companion]
    held: Mapping[str, Companion]
    written: tuple[Companion, ...]
    saved: bool

    def made(self, keys: Mapping[str, str]) -> tuple[Made, ...]:
        """What it says of the messages that it commits, in their order."""
        if not self.saved:
            return ()
        records = (item for item in self.written if isinstance(item, ColocatedRecord | StreamEntry))
        found = [
            Made(record.message, record.tx, record.version, record.at, Commit.of(ENTITY.key, record))
            for record in records
        ]
        old, new = ledger_in(self.before), ledger_in(self.after)
        known = {entry.tx for entry in old.outbox}
        fresh = (entry for entry in new.outbox if entry.tx not in known)
        for version, entry in enumerate(fresh, old.version + 1):
            outputs = tuple(entry.owed_outputs(ENTITY, new.to, new.sequences))
            commit = Commit(ENTITY.key, entry.cause, entry.tx, version, tuple(output.id for output in outputs))
            found.append(Made(keys[entry.cause], entry.tx, version, entry.at, commit, outputs))
        return tuple(sorted(found, key=lambda item: item.version))


def moments(reality: Reality) -> Iterator[Moment]:
    entity = read_entity(ENTITY, None)
    companions: dict[str, Companion] = {}
    accepted = (write for write in reality.writes if write.container == ENTITIES.container)
    for _, batch in groupby(accepted, key=lambda write: write.batch or -write.sequence):
        before, known, written, saved = entity, dict(companions), [], False
        for write in batch:
            if write.document is None:
                del companions[write.id]
            elif write.id == ENTITY.id:
                entity, saved = read_entity(ENTITY, taken_from(write.document)), True
            else:
                companions[write.id] = companion_of(write.document)
                written.append(companions[write.id])
        yield Moment(before, entity, known, dict(companions), tuple(written), saved)


def ledger_in(entity: EntityView) -> Ledger:
    """The ledger of an entity; an empty one if it has none."""
    return entity.ledger or Ledger()


def numbered(companions: Mapping[str, Companion]) -> tuple[NumberedMessage, ...]:
    return tuple(companion for companion in companions.values() if isinstance(companion, NumberedMessage))


Rank = tuple[int, str]
"""Time and source of a message."""


def wrongly_held(moment: Moment) -> Iterator[str]:
    """The properties that do not hold because ledger and documents say different things of what is held."""
    receptions = {reception.channel: reception for reception in ledger_in(moment.after).receptions}
    held = {(item.channel, item.number) for item in numbered(moment.held) if item.held is not None}
    reported = {
        (reception.channel, number)
        for reception in receptions.values()
        for first, last in reception.held
        for number in range(first, last + 1)
    }
    if held - reported or any(number < receptions[channel].next for channel, number in reported):
        yield "no_garbage"
    if reported - held:
        yield "nothing_lost"


def out_of_order(moment: Moment, scenario: Scenario) -> bool:
    """Whether a batch handles a message before an earlier one that is there or may come, or records wrongly that it is late."""
    messages = by_key(scenario.messages)
    documents = {item.message: item for item in numbered(moment.held)}
    handled = [item.message for item in numbered(moment.known) if item.held is None and item.message is not None]
    for record in moment.made({message_hash(key): key for key in messages}):
        rank = _rank(messages[record.message])
        late = any(_rank(messages[item]) > rank for item in handled)
        if documents[record.message].late is not late:
            return True
        if record.at < HAS_WAITED and _overtakes(record, moment, handled, messages):
            return True
        handled.append(record.message)
    return False


def _overtakes(record: Made, moment: Moment, handled: list[str], messages: Mapping[str, Message]) -> bool:
    """Whether some other channel has an earlier message there, or may still send one."""
    mine = messages[record.message]
    present = {item.message for item in (*numbered(moment.known), *numbered(moment.held))}
    for channel in {reception.channel for reception in ledger_in(moment.before).receptions} - {channel_of(mine)}:
        waiting = (key for key, item in messages.items() if channel_of(item) == channel and key not in handled)
        following = next(waiting, None)
        passed = max(
            (_rank(messages[key]) for key in handled if channel_of(messages[key]) == channel), default=(-1, "")
        )
        earliest = _rank(messages[following]) if following in present and following is not None else passed
        if earliest < _rank(mine):
            return True
    return False


def _rank(message: Message) -> Rank:
    return (message.time or 0, message.source)


# Which properties fell in reality, where records are companions: by the accepted batches, queues and acknowledgements.
#
# The judgement knows nothing of the model's. It handles the messages of each batch anew, on what was stored before it.


def fallen_companions(reality: Reality, scenario: Scenario, deeds: Sequence[Deeds]) -> frozenset[str]:
    """The names of the properties that do not hold."""
    judge = _JudgeOfCompanions(reality, scenario, deeds)
    return frozenset((*judge.of_batches(), *judge.of_outputs(), *judge.of_messages()))


class _JudgeOfCompanions:
    """Judges one run."""

    def __init__(self, reality: Reality, scenario: Scenario, deeds: Sequence[Deeds]) -> None:
        keys = keys_of(scenario.messages)
        self._scenario = scenario
        self._reality = reality
        self._messages = by_key(scenario.messages)
        self._by_hash = {message_hash(key): key for key in self._messages}
        self._moments = tuple(moments(reality))[scenario.adopted :]
        self._parked = {
            write.document["message"] for write in reality.writes if write.id.startswith("parked:") and write.document
        }
        self._acknowledged = Counter(keys[number] for deed in deeds for _, number in deed.acknowledged)
        self._failed = {key: error for deed in deeds for key, error in deed.failed}
        self._begun = Counter(task for deed in deeds for task in deed.begun)
        self._sent_again = [version for deed in deeds for version in deed.sent_again]
        self._skipped: set[Position] = set()
        self._late: set[str] = set()
        self._commits = [commit for moment in self._moments for commit in self._commits_of(moment)]
        self._committed = {self._by_hash[commit.message] for commit in self._commits}

    def of_batches(self) -> Iterator[str]:
        for moment in self._moments:
            if moment.saved and not self._is_serial(moment):
                yield "serial_execution"
            yield from wrongly_held(moment)
            if self._scenario.ordered and out_of_order(moment, self._scenario):
                yield "in_order"

    def of_outputs(self) -> Iterator[str]:
        """What fell with an output. That the same are published again and again is for `violations`."""
        made = {record.message: record for moment in self._moments for record in moment.made(self._by_hash)}
        for output in self._reality.published:
            said = output.envelope.value
            record = made.get(said["message"])
            number = None if output.place is None else output.place.number
            known = number == said["number"] or (number is None and self._scenario.protocol == "resequencer")
            if record is not None and (output.id not in record.commit.outputs or not known):
                yield "consistent_state_and_output"

    def of_messages(self) -> Iterator[str]:
        """What fell with the messages, as far as nobody else will do anything about it."""
        key, published = ENTITY.key, self._reality.published
        if (
            self._scenario.protocol == "resequencer"
        ):  # Places are in what the model's outputs say, and nowhere else once owed.
            published = tuple(replace(output, place=None) for output in published)
        done = frozenset((key, message) for message in self._messages if self._is_done(message))
        facts = Facts(
            tuple(self._commits),
            published,
            done | frozenset((key, message) for message in self._to_be_sent_again()),
            skipped=frozenset((key, place) for place in self._skipped),
            late=frozenset((key, message) for message in self._late),
        )
        yield from (violation.property for violation in (*violations(facts, drained=False), *lost(facts)))
        once = {message for message, item in self._messages.items() if item.copies == 1}
        if self._parked & once & self._committed:
            yield "parked_is_unprocessed"
        if not all(self._is_refused(message, error) for message, error in self._failed.items()):
            yield "no_failure"

    def _commits_of(self, moment: Moment) -> Iterator[Commit]:
        """The commits that the documents of a batch record; notes the messages that they record as given up."""
        places: dict[str, Position] = {}
        for item in moment.written:
            match item:
                case NumberedMessage(held=None, message=None):
                    self._skipped.add((item.channel, item.number))
                case NumberedMessage(held=None, message=str(message)):
                    if (item.channel, item.number) in self._skipped:
                        self._late.add(message)
                    else:
                        places[message] = (item.channel, item.number)
        for record in moment.made(self._by_hash):
            yield replace(record.commit, place=places.get(record.message))

    def _is_serial(self, moment: Moment) -> bool:
        old, new = ledger_in(moment.before), ledger_in(moment.after)
        body, sequences, version = moment.before.body, old.sequences, old.version
        messages = self._scenario.messages
        for record in moment.made(self._by_hash):
            number = keys_of(messages).index(record.message)
            given = Before(body, record.at, record.tx, sequences)
            handled = handle(
                given, envelope_of(number, messages[number]), messages=messages, sourced=self._scenario.sourced
            )
            version += 1
            if record.version != version or not record.owes(handled.outputs):
                return False
            body, sequences = None if handled.deleted else handled.body, handled.sequences
        return (moment.after.body, new.sequences, new.version) == (body, sequences, version)

    def _is_done(self, message: str) -> bool:
        if message in self._parked | self._failed.keys() | self._late:
            return False
        one = self._messages[message]
        if (channel_of(one), one.number) in self._skipped:
            return False
        if self._is_over:
            return not self._waits_for_parked(one)
        return self._acknowledged[message] > 0 and not self._is_taken(message)

    def _is_taken(self, message: str) -> bool:
        """Whether a read model holds a message, or owes what it sent: then the next attempt finishes it."""
        if self._scenario.protocol != "resequencer" or not self._moments:
            return False
        held = {item.message for item in numbered(self._moments[-1].held) if item.held is not None}
        return message in held | {self._by_hash[entry.cause] for entry in self._ledger.outbox}

    @property
    def _ledger(self) -> Ledger:
        return ledger_in(self._moments[-1].after) if self._moments else Ledger()

    @property
    def _is_over(self) -> bool:
        """Whether all deliveries are done with, and a timer would find nothing to do either."""
        asked = Counter(key for request in self._reality.requested for key in asked_for(self._scenario, request))
        arrived = all(
            self._acknowledged[key] >= (item.copies or min(asked[key], 1)) for key, item in self._messages.items()
        )
        ledger, scenario = self._ledger, self._scenario
        ready = any(holds(reception.held, reception.next) for reception in ledger.receptions)
        gap = scenario.fills_gaps and any(reception.gap_since is not None for reception in ledger.receptions)
        return arrived and not (self._may_be_nudged and (ready or gap or ledger.outbox))

    @property
    def _may_be_nudged(self) -> bool:
        nudges = self._scenario.budget.nudges
        return nudges == UNLIMITED or self._begun[NUDGE] < nudges

    def _waits_for_parked(self, waiting: Message) -> bool:
        parked = (self._messages[key] for key in self._parked)
        return any(
            channel_of(item) == channel_of(waiting) and (item.number or 0) < (waiting.number or 0) for item in parked
        )

    def _rivals(self, message: str) -> set[str]:
        mine = self._messages[message]
        if mine.number is None:
            return set()
        place = (channel_of(mine), mine.number)
        others = (key for key, item in self._messages.items() if (channel_of(item), item.number) == place)
        return set(others) - {message}

    def _is_refused(self, message: str, error: ExactlyOnceError) -> bool:
        """Whether a message failed because another one with its number was processed."""
        return isinstance(error, InvalidMessage) and bool(self._rivals(message) & self._committed)

    def _to_be_sent_again(self) -> Iterator[str]:
        """Keys of the messages whose outputs a stream was asked to send again, by who has done so to the end."""
        entries = [item for moment in self._moments for item in moment.written if isinstance(item, StreamEntry)]
        for version in self._sent_again:
            for entry in entries:
                if self._scenario.missing is None:
                    wanted = entry.version <= version
                else:
                    first, last = self._scenario.missing
                    places = (output.place for output in entry.outputs)
                    wanted = any(place is not None and first <= place.number <= last for place in places)
                if wanted:
                    yield entry.message
