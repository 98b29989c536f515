"""Which properties fell in reality, where records are companions: by the accepted batches, queues and acknowledgements.

The judgement knows nothing of the model's. It handles the messages of each batch anew, on what was stored before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from exactlyonce.attempt import Before
from exactlyonce.errors import ExactlyOnceError, InvalidMessage
from exactlyonce.records.companions import NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outbox import holds
from exactlyonce.testing.guarantee import Commit, Facts, Position, violations
from exactlyonce.testing.guarantee import nothing_lost as lost
from exactlyonce.values.envelope import message_hash
from verification.reproduction.families import Deeds
from verification.reproduction.moments import Moment, ledger_in, moments, numbered
from verification.reproduction.reality import Reality
from verification.reproduction.sequences import out_of_order, wrongly_held
from verification.world.companions_handler import ENTITY, by_key, channel_of, envelope_of, handle, keys_of
from verification.world.replays import asked_for
from verification.world.scenario import UNLIMITED, Message, Scenario
from verification.world.tasks import NUDGE


def fallen_companions(reality: Reality, scenario: Scenario, deeds: Sequence[Deeds]) -> frozenset[str]:
    """The names of the properties that do not hold.

    Args:
        reality: what happened.
        scenario: says what the messages are.
        deeds: what the processes came to.
    """
    judge = _Judge(reality, scenario, deeds)
    return frozenset((*judge.of_batches(), *judge.of_outputs(), *judge.of_messages()))


class _Judge:
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
        """What fell with a batch."""
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
        """Whether the state follows from the one before by the messages that the batch commits."""
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
        """Whether nobody will do any more for a message, so that it has to have been processed."""
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
        """Other messages with the same number."""
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
