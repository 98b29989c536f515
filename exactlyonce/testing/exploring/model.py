"""The states of an application and the steps between them, for a search by yieldcheck.

An instance takes one delivery at a time, and runs the entity's own strategy, effect by effect. Between any two effects the
other instances may go on, and a fault may happen. A crash ends an instance; its delivery comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from exactlyonce.attempt import Before, Finished, Handled, Memory, Work, key_of
from exactlyonce.effects.effect import Begin, Begun, Effect, Step
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.age import AgeCheck
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.outputs import Output
from exactlyonce.testing.determinism import NonDeterministic, assert_deterministic
from exactlyonce.testing.exploring.answers import Answer, Answers, Documents
from exactlyonce.testing.exploring.kept_messages import DUE, KeptByEntities
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.lifetimes import Lifetimes

if TYPE_CHECKING:
    from yieldcheck import Situation


@dataclass(frozen=True)
class Sent:
    """A message, wherever it is.

    Attributes:
        destination: its queue; the name of the entity type for one that is in no queue.
        envelope: as it travels.
        entity: the type whose handlers take it; None if nobody here does.
        shown: for stories.
    """

    destination: str
    envelope: Envelope
    entity: Entity[Any] | None
    shown: str


class Waiting(NamedTuple):
    """A message that waits: its queue, the type whose handlers take it, and the message."""

    destination: str
    entity: Entity[Any]
    envelope: Envelope


@dataclass(frozen=True)
class Bounds:
    """The bounds of an exploration.

    Attributes:
        instances: how many there are.
        faults: how many there may be.
        interruptions: how often an instance may go on while another is in the middle of its work.
        may_fail: whether a message may fail.
    """

    instances: int
    faults: int
    interruptions: int
    may_fail: bool


class Busy(NamedTuple):
    """An instance that is processing a message.

    Attributes:
        message: its number.
        situation: where the strategy stands.
        stale: whether a replica that is behind has answered it.
    """

    message: int
    situation: Situation[int]
    stale: bool = False


class State(NamedTuple):
    """A state of the application.

    Attributes:
        documents: what the store holds.
        queue: numbers of the messages that wait to be delivered, sorted; a copy is there twice.
        instances: what each does; None if it is idle.
        arrived: numbers of the messages that reached their queues.
        failed: numbers of the messages that failed, and are not delivered again.
        begun: for each message that was handled how many transaction ids it was given.
        faults: how many more there may be.
        interruptions: how often an instance may still go on while another is in the middle of its work.
        turn: the place of the instance that is in the middle of its work; None if it is anybody's turn.
    """

    documents: Documents
    queue: tuple[int, ...]
    instances: tuple[Busy | None, ...]
    arrived: frozenset[int]
    failed: frozenset[int]
    begun: tuple[tuple[int, int], ...]
    faults: int
    interruptions: int
    turn: int | None = None

    def queued(self, *messages: int) -> State:
        """The state with more messages to be delivered."""
        return self._replace(queue=tuple(sorted((*self.queue, *messages))))

    def moved(self, place: int, instance: Busy | None) -> State:
        """The state after a turn of an instance, and what it does then."""
        instances = (*self.instances[:place], instance, *self.instances[place + 1 :])
        interrupts = self.turn not in (None, place)
        return self._replace(
            instances=instances,
            turn=None if instance is None else place,
            interruptions=self.interruptions - interrupts,
        )


@dataclass(frozen=True, slots=True)
class Move:
    """A step.

    Attributes:
        state: afterwards.
        fault: whether it takes a fault.
        violation: what it breaks; None if nothing.
        instance: the place of the instance that goes on.
        said: what it does.
        takes: whether it takes a message.
    """

    state: State
    fault: bool
    violation: str | None
    instance: int
    said: str
    takes: bool = False


class Application:
    """The model of an application.

    Args:
        routes, lifetimes: of the application.
        entities: the entity types, by name.
        takers: by destination the entity type whose handlers take its messages.
        replies: gives the replies that a message in a queue may get, most likely first; none for one that is no call.
        now: the time of day, which stands still.
        show: gives the words for a message.
        judge: says what is wrong with a state; None if nothing is.
        bounds: of the exploration.
    """

    def __init__(
        self,
        *,
        routes: Routes,
        lifetimes: Lifetimes,
        entities: Mapping[str, Entity[Any]],
        takers: Mapping[str, Entity[Any]],
        replies: Callable[[str, Envelope], tuple[Waiting, ...]],
        now: datetime,
        show: Callable[[Envelope], str],
        judge: Callable[[State], str | None],
        bounds: Bounds,
    ) -> None:
        from yieldcheck import Situations  # noqa: PLC0415  # Nothing but `explore` needs it.

        self._routes = routes
        self._lifetimes = lifetimes
        self._takers = takers
        self._replies = replies
        self._now = now
        self._show = show
        self._judge = judge
        self._bounds = bounds
        self._answers = Answers(now)
        self._kept = KeptByEntities(entities, routes, self._answers, now)
        self._situations: Situations[int] = Situations(self._deliver)
        self._numbers: dict[tuple[str, Envelope], int] = {}
        self._replied: dict[int, tuple[int, ...]] = {}
        self._work: dict[int, Work] = {}
        self.messages: list[Sent] = []
        self._first: State | None = None

    def begin(self, documents: Documents, waiting: list[Waiting]) -> None:
        """Set the state in which the search starts: what the store holds, and the messages that wait."""
        due = (self._number("", *one) for one in self._kept.possible(documents))
        queue = tuple(sorted((*(self._number(*one) for one in waiting), *due)))
        idle, nothing, bounds = (None,) * self._bounds.instances, frozenset[int](), self._bounds
        self._first = State(documents, queue, idle, nothing, nothing, (), bounds.faults, bounds.interruptions)

    def start(self) -> State:
        """The state in which nothing has happened."""
        assert self._first is not None  # noqa: S101  # `begin` comes first.
        return self._first

    def is_good_end(self, state: State) -> bool:
        """Whether every message is processed."""
        return not state.queue and not any(state.instances)

    def moves(self, state: State) -> Iterator[Move]:
        """Every step from a state."""
        for place, instance in enumerate(state.instances):
            if instance is not None and (state.turn in (None, place) or state.interruptions):
                yield from self._steps(state, place, instance)
        if None in state.instances and (state.turn is None or state.interruptions):  # All idle instances are alike.
            yield from self._taken(state, state.instances.index(None))

    def _taken(self, state: State, place: int) -> Iterator[Move]:
        for number in dict.fromkeys(state.queue):
            rest = list(state.queue)
            rest.remove(number)
            if self.messages[number].envelope.type == DUE:
                if not any(state.instances):  # The order of commits is all that handlers can see.
                    yield self._released(state._replace(queue=tuple(rest)), place, number)
                continue
            after = state.moved(place, Busy(number, self._situations.first(number)))
            said = f"takes {self.messages[number].shown}"
            yield Move(after._replace(queue=tuple(rest)), False, None, place, said, True)
            if state.faults:
                yield Move(
                    after._replace(faults=state.faults - 1), True, None, place, f"{said}, which comes twice", True
                )

    def _released(self, state: State, place: int, number: int) -> Move:
        """The sweeper releases a kept message, if it is still kept."""
        documents, outputs = self._kept.released(self.messages[number].envelope, number, state.documents)
        arrived = [self._arrival(output) for output in outputs]
        after = state.queued(*(one for one in arrived if self.messages[one].entity is not None))
        after = after._replace(documents=documents, arrived=state.arrived.union(arrived))
        said = f"sweeps: {', '.join(self.messages[one].shown for one in arrived) or 'nothing'} is due"
        return Move(after, False, self._judged(state, after), place, said, True)

    def _steps(self, state: State, place: int, instance: Busy) -> Iterator[Move]:
        for answer, arrived, queued in self._outcomes(instance.situation.request, state.documents):
            if answer.fault and not state.faults:
                continue
            after = state.queued(*queued)._replace(
                documents=answer.documents,
                arrived=state.arrived.union(arrived),
                faults=state.faults - answer.fault,
            )
            situation = self._situations.after(instance.situation, answer.reply)
            after, situation = self._begun(after, instance.message, situation)
            busy = Busy(instance.message, situation, instance.stale or answer.stale)
            said = answer.said
            violation = None
            if situation.request is not None:
                after = after.moved(place, busy)
            else:
                after, ending, violation = self._ended(after.moved(place, None), busy)
                said = f"{said}, {ending}"
            yield Move(after, answer.fault, violation or self._judged(state, after), place, said)
        if state.faults and state.turn in (None, place):  # Another's crash might as well have come before.
            after = state.moved(place, None).queued(instance.message)._replace(faults=state.faults - 1)
            yield Move(after, True, None, place, "crashes: its message comes again")

    def _outcomes(
        self, effect: Effect[Any], documents: Documents
    ) -> Iterator[tuple[Answer, tuple[int, ...], tuple[int, ...]]]:
        """Every answer to an effect, the messages that arrive, and those of them, and replies to them, that are delivered.

        The reply to a call may come as soon as the call waits in its queue, and at any time later. That its outcome is unknown
        is a fault.
        """
        for answer in self._answers.to(effect, documents):
            arrived = tuple(self._arrival(output) for output in answer.arrived)
            taken = tuple(number for number in arrived if self.messages[number].entity is not None)
            called = [self._replied[number] for number in arrived if self._replied[number]]
            taken += tuple(self._number("", *one) for one in self._kept.begun_by(effect, documents, answer))
            yield answer, arrived, (*taken, *(replies[0] for replies in called))
            if any(len(replies) > 1 for replies in called) and not answer.fault:
                unknown = replace(answer, said=f"{answer.said} (and no final answer comes of it)", fault=True)
                yield unknown, arrived, (*taken, *(replies[-1] for replies in called))

    def _begun(self, state: State, message: int, situation: Situation[int]) -> tuple[State, Situation[int]]:
        """Give transaction ids. It is no step of its own: nobody else sees it."""
        while isinstance(situation.request, Begin):
            begun = dict(state.begun)
            first = begun.get(message, 0)
            begun[message] = first + situation.request.count
            names = tuple(f"{message:016x}{one:016x}" for one in range(first, begun[message]))
            situation = self._situations.after(situation, Begun(self._now, names))
            state = state._replace(begun=tuple(sorted(begun.items())))
        return state, situation

    def _ended(self, after: State, busy: Busy) -> tuple[State, str, str | None]:
        """The state once a delivery is over, what is said of it, and what is wrong with its error, if it has one."""
        result = busy.situation.result
        errors = dict((*result.failed, *result.stopped)) if isinstance(result, Finished) else {}
        error = result if isinstance(result, Exception) else next(iter(errors.values()), None)
        if error is None:
            return after, "and is done", None
        if isinstance(error, NonDeterministic):
            return after, "and runs the handler", str(error)
        if busy.stale:  # The next delivery will meet a newer replica.
            return after.queued(busy.message), "and fails: its message comes again", None
        if self._bounds.may_fail and isinstance(error, ExactlyOnceError):
            return after._replace(failed=after.failed | {busy.message}), "and gives its message up", None
        cause = error.__cause__
        shown = f"{type(error).__name__}: {error}" + (f" ({type(cause).__name__}: {cause})" if cause else "")
        return after, "and fails", shown

    def _judged(self, before: State, after: State) -> str | None:
        """What is wrong with a state, if the step to it can be seen."""
        seen = (after.documents, after.arrived, after.failed) != (before.documents, before.arrived, before.failed)
        return self._judge(after) if seen or self.is_good_end(after) else None

    def _arrival(self, output: Output) -> int:
        taker = self._takers.get(output.destination)
        return self._number(output.destination, taker, Envelope.read(output.envelope.text))

    def _number(self, destination: str, entity: Entity[Any] | None, envelope: Envelope) -> int:
        number = self._numbers.get((destination, envelope))
        if number is None:
            if envelope.reference is not None:
                raise ConfigurationError(
                    f"Message {key_of(envelope)} is too large for its queue. `explore` takes none whose data is in a blob: let "
                    "the handlers send less in this test."
                )
            number = self._numbers[destination, envelope] = len(self.messages)
            self.messages.append(Sent(destination, envelope, entity, self._show(envelope)))
            self._replied[number] = tuple(self._number(*one) for one in self._replies(destination, envelope))
        return number

    def _deliver(self, message: int) -> Step[Finished]:
        """Process a message: attempts, until one finishes."""
        entity, work, memory = self.messages[message].entity, self._work_of(message), Memory()
        assert entity is not None  # noqa: S101  # Only what somebody takes is delivered.
        outcome = yield from entity.strategy.attempt(work, memory)
        while not isinstance(outcome, Finished):
            outcome = yield from entity.strategy.attempt(work, outcome.memory)
        return outcome

    def _work_of(self, message: int) -> Work:
        work = self._work.get(message)
        if work is None:
            sent = self.messages[message]
            assert sent.entity is not None  # noqa: S101  # As above.
            ref = sent.entity.ref_of(sent.envelope)
            runner = Runner(sent.entity, ref, self._routes)
            handle = AgeCheck(Remembering(runner), ref, self._lifetimes, sent.entity.strategy.forgets)
            work = self._work[message] = Work(
                ref,
                (sent.envelope,),
                handle,
                runner.absent,
                runner.evolve,
                self._lifetimes.retention.kept(self._now),
                self._lifetimes.refusal,
            )
        return work


class Remembering:
    """Runs the handler once for each input, after a look at whether it is deterministic; a `Handle`.

    Args:
        runner: runs it.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._known: dict[Any, Handled | ExactlyOnceError] = {}

    def __call__(self, before: Before, envelope: Envelope) -> Handled:
        key = before, before.sent, envelope
        if key not in self._known:
            self._require_deterministic(before, envelope)
            try:
                self._known[key] = self._runner(before, envelope)
            except ExactlyOnceError as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, ExactlyOnceError):
            raise found
        return found

    def _require_deterministic(self, before: Before, envelope: Envelope) -> None:
        entity, ref = self._runner.type, self._runner.entity
        registration, message = entity.read(envelope)
        shape = entity.shape
        state = shape.start(ref) if before.body is None else shape.read(ref, before.body)
        about = {"message_id": envelope.id, "source": envelope.source}
        try:
            assert_deterministic(registration.handler, state, message, entity=ref, now=before.at, **about)
        except (NonDeterministic, KeyboardInterrupt):
            raise
        except BaseException:  # noqa: S110  # The runner raises it as well.
            pass
