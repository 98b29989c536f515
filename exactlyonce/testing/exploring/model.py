"""The states of an application and the steps between them, for a search by yieldcheck.

An instance takes one delivery at a time, and runs the entity's own strategy, effect by effect. Between any two effects other
instances may go on, and a fault may happen. A crash ends an instance, and its delivery comes again.

All instances share one book, so a payment is known to all at once. A crash loses the book: paid transactions are owed again.
In reality instances know less of each other. The only result would be further copies, and a copy is a fault here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from exactlyonce.effects.attempt import Before, Finished, Handled, Memory, Work
from exactlyonce.effects.effect import Begin, Begun, Effect, Opened, Step
from exactlyonce.effects.library import CloseNumbers, FindPaid, OpenNumbers
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.runner import AgeCheck, Runner
from exactlyonce.records.outbox import Output, named_after
from exactlyonce.testing.app import App
from exactlyonce.testing.determinism import NonDeterministic, assert_deterministic
from exactlyonce.testing.exploring.answers import Answer, Answers, Documents, transaction
from exactlyonce.testing.exploring.messages import KeptByEntities, LeftOut, Messages, Partition, Sent, Waiting, paid_in
from exactlyonce.values.envelope import Envelope

if TYPE_CHECKING:
    from yieldcheck import Situation

_MOST_FOLLOWED: Final = 1_000
"""Most steps that are taken as one: more than any delivery has, unless it goes round in circles."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of an exploration, as for `explore`. What is reduced and why is in `docs/decisions`."""

    instances: int
    faults: int
    interruptions: int
    may_fail: bool
    releases: int
    left_out: LeftOut
    reduced: bool

    def allowed(self) -> list[tuple[int, int]]:
        """The pairs of faults and interruptions to search with, from the simplest stories to all."""
        pairs = product(range(self.faults + 1), range(self.interruptions + 1))
        return sorted(pairs, key=lambda pair: (sum(pair), pair))


class Busy(NamedTuple):
    """An instance at work on a message.

    Attributes:
        stale: whether a lagging replica has answered.
        spent: number of transaction ids that may have left a trace.
        drawn: number of transaction ids drawn so far.
    """

    message: int
    situation: Situation[int]
    stale: bool = False
    spent: int = 0
    drawn: int = 0


class Company(NamedTuple):
    """The events since an instance began to work with all other instances idle.

    Attributes:
        partitions: the partitions of the entities whose messages were taken.
        before: the messages that waited at the beginning.
    """

    partitions: frozenset[Partition | None]
    before: frozenset[int]


class State(NamedTuple):
    """A state of the application.

    Attributes:
        documents: the documents in the store.
        queue: numbers of the waiting messages, sorted; a message with a copy is there twice.
        instances: the work of each instance; None for an idle instance.
        arrived: numbers of the messages that reached their queues.
        failed: numbers of the messages that failed for good.
        begun: for each handled message the number of transaction ids given; empty if ids are given again.
        paid: transactions known to be paid, if documents name them.
        turn: place of the instance in the middle of its work; None if any instance may go on.
        company: the company of the instances at work; None if all are idle, or for searches without companies.
        faults: number of faults left.
        interruptions: number of interruptions left.
    """

    documents: Documents
    queue: tuple[int, ...]
    instances: tuple[Busy | None, ...]
    arrived: frozenset[int]
    failed: frozenset[int]
    begun: tuple[tuple[int, int], ...]
    paid: frozenset[str]
    turn: int | None
    company: Company | None
    faults: int
    interruptions: int

    @property
    def split(self) -> tuple[Hashable, tuple[int, int]]:
        """The state apart from its budget, and the rest of the budget of faults and interruptions."""
        return tuple(self[:-2]), (self.faults, self.interruptions)

    def moved(self, place: int, instance: Busy | None) -> State:
        """The state after a turn of an instance, with the instance's next work."""
        instances = (*self.instances[:place], instance, *self.instances[place + 1 :])
        interrupts = self.turn not in (None, place)
        return self._replace(
            instances=instances,
            turn=None if instance is None else place,
            company=self.company if any(instances) else None,
            interruptions=self.interruptions - interrupts,
        )


class Move(NamedTuple):
    """A step, with the state afterwards, and the words for it.

    Attributes:
        violation: the broken property; None without a violation.
        instance: place of the instance.
        takes: whether the step takes a message.
        kind: type of the message.
        before: earlier steps that are taken together with this step.
    """

    state: State
    fault: bool
    violation: str | None
    instance: int
    said: str
    takes: bool = False
    kind: str = ""
    before: tuple[Move, ...] = ()


class Outcome(NamedTuple):
    """An answer to an effect, the messages that arrive with it, and the messages to deliver then."""

    answer: Answer
    arrived: tuple[int, ...]
    queued: tuple[int, ...]


class Application:
    """The model of an application.

    Args:
        app: the application, in the state from which the search starts.
        waiting: the messages that wait.
        judge: gives the fault of a state; None without a fault.
        bounds: the bounds of the exploration.

    Attributes:
        messages: all messages so far.
    """

    def __init__(
        self, app: App, waiting: list[Waiting], judge: Callable[[Application, State], str | None], bounds: Bounds
    ) -> None:
        try:
            from yieldcheck import Situations  # noqa: PLC0415  # Only `explore` needs it.
        except ImportError:
            raise ConfigurationError(
                "explore(...) needs the package yieldcheck, which exactlyonce-dev brings: install it."
            ) from None

        entities = {entity.name: entity for entity in app.once.entities}
        self._routes = app.host.parts.routes
        self._lifetimes = app.host.accounts.ownership.lifetimes()
        self._types = frozenset(entities)
        self._takers = app.host.takers
        self._now = app.now
        self._judge = judge
        self._bounds = bounds
        self._answers = Answers(app.now, reduced=bounds.reduced)
        self._kept = KeptByEntities(entities, self._routes, self._answers, app.now)
        self._situations: Situations[int] = Situations(self._deliver)
        self._outcomes: dict[tuple[Effect[Any], Documents], tuple[Outcome, ...]] = {}
        self._is_named = cache(_is_named)
        self._work_of = cache(self._work)
        self._left_a_trace = cache(self._is_anywhere)
        self.messages = Messages(app, bounds.left_out, bounds.releases)
        self._first = self._beginning(app, waiting)

    def _beginning(self, app: App, waiting: list[Waiting]) -> State:
        documents, bounds, nothing = self._answers.before(app.host.accounts.documents), self._bounds, frozenset[int]()
        numbers = [self.messages.number(*item) for item in waiting]
        numbers += [self.messages.number("", *item) for item in self._kept.possible(documents, app.host.has_arrived)]
        idle = (None,) * bounds.instances
        paid = paid_in(documents, app.host.has_arrived)
        first = State(documents, (), idle, nothing, nothing, (), paid, None, None, bounds.faults, bounds.interruptions)
        return self._queued(first, numbers)

    def allow(self, faults: int, interruptions: int) -> None:
        """Set the numbers of faults and interruptions in a story."""
        self._first = self._first._replace(faults=faults, interruptions=interruptions)

    def start(self) -> State:
        """The first state."""
        return self._reduced(self._first)

    def is_good_end(self, state: State) -> bool:
        """Whether every message is processed, except messages beyond the limit of releases."""
        return not any(state.instances) and all(self.messages[number].beyond for number in state.queue)

    def is_cut_off(self, state: State) -> bool:
        """Whether a message beyond the limit of releases still waits."""
        waiting = (self.messages[number] for number in state.queue)
        return any(
            item.beyond and (not item.is_turn or self._kept.is_kept(item.envelope, state.documents)) for item in waiting
        )

    def moves(self, state: State) -> Iterator[Move]:
        """Every step from a state."""
        for move in self._steps_from(state):
            yield self._followed(move) if self._bounds.reduced else move

    def _followed(self, move: Move) -> Move:
        """A step together with the steps that have to follow: the rest of a delivery that nothing can disturb any more."""
        for _ in range(_MOST_FOLLOWED):
            if move.violation is not None or not self._has_no_choice(move.state):
                break
            after = next(self._steps_from(move.state))
            move = after._replace(fault=move.fault, kind=move.kind, before=(*move.before, move._replace(before=())))
        return move

    def _has_no_choice(self, state: State) -> bool:
        """Whether an instance goes on, and no other step is possible."""
        at_work = sum(instance is not None for instance in state.instances)
        if state.faults or at_work == 0:
            return False
        if not state.interruptions:
            return state.turn is not None or at_work == 1
        company = state.company
        if company is None or at_work > 1:
            return False
        return not any(_matters(number, self.messages[number], company) for number in state.queue)

    def _steps_from(self, state: State) -> Iterator[Move]:
        for place, instance in enumerate(state.instances):
            if instance is not None and (state.turn in (None, place) or state.interruptions):
                yield from self._steps(state, place, instance)
        if None in state.instances and (state.interruptions or not any(state.instances)):  # All idle ones are alike.
            yield from self._taken(state, state.instances.index(None))

    def _taken(self, state: State, place: int) -> Iterator[Move]:
        """Every step by which an idle instance begins to work: taking a message, up to the first reply."""
        for number in dict.fromkeys(state.queue):
            sent = self.messages[number]
            if sent.beyond or (state.company is not None and not _matters(number, sent, state.company)):
                continue
            rest = list(state.queue)
            rest.remove(number)
            left = state._replace(queue=tuple(rest))
            if sent.is_turn:
                if not any(state.instances):  # Handlers can see only the order of commits.
                    yield self._released(left, place, number)
                continue
            began = Busy(number, self._situations.first(number))
            left = left._replace(company=self._company(left, sent.partition))
            yield from self._begins(left, place, began, f"takes {sent.shown}")
            if state.faults:
                twice = left._replace(queue=state.queue, faults=state.faults - 1)
                yield from self._begins(twice, place, began, f"takes {sent.shown}, which comes twice", fault=True)

    def _begins(self, state: State, place: int, began: Busy, said: str, *, fault: bool = False) -> Iterator[Move]:
        interrupts = any(state.instances)
        state = state._replace(turn=place, interruptions=state.interruptions - interrupts)
        if began.situation.request is None:  # The message names no entity.
            after, ending, violation = self._ended(state.moved(place, None), began)
            violation, kind = violation or self._judged(state, after), self.messages[began.message].kind
            yield Move(self._reduced(after), fault, violation, place, f"{said} {ending}", True, kind)
            return
        for move in self._steps(state, place, began):
            yield move._replace(fault=fault or move.fault, said=f"{said}, {move.said}", takes=True)

    def _company(self, state: State, partition: Partition | None) -> Company | None:
        """The company of an instance that begins to work for an entity."""
        if not self._bounds.reduced or self._bounds.interruptions != 1:
            return None  # Without interruptions there is no company; with several, instances may meet outside of it.
        if state.company is None:
            return Company(frozenset({partition}), frozenset(state.queue))
        return state.company._replace(partitions=state.company.partitions | {partition})

    def _released(self, state: State, place: int, number: int) -> Move:
        """The sweeper's release of a kept message, if it is still kept."""
        released = self._kept.released(self.messages[number].envelope, number, state.documents, state.paid)
        arrived = [self._arrival(output, number) for output in released.sent]
        after = state._replace(documents=released.documents, paid=released.paid, arrived=state.arrived.union(arrived))
        after = self._reduced(self._queued(after, arrived))
        said = f"sweeps: {', '.join(self.messages[item].shown for item in arrived) or 'nothing'} is due"
        return Move(after, False, self._judged(state, after), place, said, True, self.messages[number].kind)

    def _steps(self, state: State, place: int, instance: Busy) -> Iterator[Move]:
        kind = self.messages[instance.message].kind
        for answer, arrived, queued in self._outcomes_of(instance, state.documents):
            if answer.fault and not state.faults:
                continue
            after = state._replace(
                documents=answer.documents,
                arrived=state.arrived.union(arrived),
                faults=state.faults - answer.fault,
            )
            after = self._queued(after, queued)
            has_changed = bool(arrived) or answer.documents is not state.documents
            busy = instance._replace(
                situation=self._situations.after(instance.situation, answer.reply),
                stale=instance.stale or answer.stale,
                spent=instance.drawn if has_changed else instance.spent,
            )
            after, busy = self._informed(after, place, busy)
            said, violation = answer.said, None
            if busy.situation.request is not None:
                after = after.moved(place, busy)
            else:
                after, ending, violation = self._ended(after.moved(place, None), busy)
                said = f"{said}, {ending}"
            after = self._reduced(after)
            yield Move(after, answer.fault, violation or self._judged(state, after), place, said, kind=kind)
        # The crash of any other instance might as well have come before.
        if state.faults and state.turn in (None, place):
            after = self._queued(state.moved(place, None), [instance.message])
            after = after._replace(faults=state.faults - 1, paid=frozenset())
            yield Move(self._reduced(after), True, None, place, "crashes: its message comes again", kind=kind)

    def _outcomes_of(self, instance: Busy, documents: Documents) -> tuple[Outcome, ...]:
        """Every outcome of an instance's effect.

        The reply to a call may come as soon as the call waits in its queue, and at any time later. An unknown outcome of the
        call is a fault.
        """
        effect = instance.situation.request
        outcomes = self._outcomes.get((effect, documents))
        if outcomes is None:
            performed = self._found(effect, documents, instance.message)
            outcomes = self._outcomes[effect, documents] = tuple(performed)
        return outcomes

    def _found(self, effect: Effect[Any], documents: Documents, message: int) -> Iterator[Outcome]:
        for answer in self._answers.to(effect, documents):
            arrived = tuple(self._arrival(output, message) for output in answer.arrived)
            turns = self._kept.begun_by(effect, documents, answer)
            taken = (*arrived, *(self.messages.number("", *turn, message) for turn in turns))
            called = [replies for number in arrived if (replies := self.messages.replies_to(number))]
            yield Outcome(answer, arrived, (*taken, *(replies[0] for replies in called)))
            if any(len(replies) > 1 for replies in called) and not answer.fault:
                unknown = replace(answer, said=f"{answer.said} (and no final answer comes of it)", fault=True)
                yield Outcome(unknown, arrived, (*taken, *(replies[-1] for replies in called)))

    def _informed(self, state: State, place: int, busy: Busy) -> tuple[State, Busy]:
        """Answer effects from a process's memory: transactions, and its book. No step, since other instances see nothing."""
        while True:
            reply: Any = None
            match busy.situation.request:
                case Begin(count=count) | OpenNumbers(count=count) as effect:
                    state, busy, names = self._given(state, place, busy, count)
                    reply = Begun(self._now, names) if isinstance(effect, Begin) else Opened(self._now, names)
                case FindPaid(transactions=transactions):
                    reply = state.paid.intersection(transactions)
                case CloseNumbers(transactions):
                    state = state._replace(paid=state.paid.union(transactions))
                case _:
                    return state, busy
            busy = busy._replace(situation=self._situations.after(busy.situation, reply))

    def _given(self, state: State, place: int, busy: Busy, count: int) -> tuple[State, Busy, tuple[str, ...]]:
        """Give transaction ids to an instance."""
        begun = dict(state.begun)
        reduced = self._bounds.reduced
        first = self._fresh(state, place, busy, count) if reduced else begun.get(busy.message, 0)
        names = tuple(transaction(busy.message, number) for number in range(first, first + count))
        if not reduced:
            state = state._replace(begun=tuple(sorted({**begun, busy.message: first + count}.items())))
        return state, busy._replace(drawn=first + count), names

    def _fresh(self, state: State, place: int, busy: Busy, count: int) -> int:
        """The lowest number from which transaction ids have left no trace anywhere, and so serve as new ids."""
        others = (item for other, item in enumerate(state.instances) if item is not None and other != place)
        first = max((item.drawn for item in others if item.message == busy.message), default=0)
        first = max(first, busy.spent)
        scene = state.documents, state.arrived, state.queue, busy.message
        while any(self._left_a_trace(*scene, number) for number in range(first, first + count)):
            first += 1
        return first

    def _is_anywhere(
        self, documents: Documents, arrived: frozenset[int], queue: tuple[int, ...], message: int, count: int
    ) -> bool:
        """Whether a document or message names a transaction id, or a channel that began with it."""
        tx = transaction(message, count)
        texts = (*documents.texts, *(self.messages[item].text for item in {*arrived, *queue}))
        return any(name in text for text in texts for name in (tx, named_after(tx)))

    def _ended(self, after: State, busy: Busy) -> tuple[State, str, str | None]:
        """The state after a delivery, the words for its end, and the fault in its error, if there is one."""
        result = busy.situation.result
        errors = dict((*result.failed, *result.stopped)) if isinstance(result, Finished) else {}
        error = result if isinstance(result, Exception) else next(iter(errors.values()), None)
        if error is None:
            return after, "and is done", None
        if isinstance(error, NonDeterministic):
            return after, "and runs the handler", str(error)
        if busy.stale:  # The next delivery will read a newer replica.
            return self._queued(after, [busy.message]), "and fails: its message comes again", None
        if self._bounds.may_fail and isinstance(error, ExactlyOnceError):
            return after._replace(failed=after.failed | {busy.message}), "and gives its message up", None
        cause = error.__cause__
        shown = f"{type(error).__name__}: {error}" + (f" ({type(cause).__name__}: {cause})" if cause else "")
        return after, "and fails", shown

    def _judged(self, before: State, after: State) -> str | None:
        """The fault of a state, if the step to the state is visible."""
        seen = (after.documents, after.arrived, after.failed) != (before.documents, before.arrived, before.failed)
        return self._judge(self, after) if seen or self.is_good_end(after) else None

    def _queued(self, state: State, messages: Iterable[int]) -> State:
        """The state with further messages to deliver, without messages that no entity type takes."""
        taken = (number for number in messages if self.messages[number].taken)
        return state._replace(queue=tuple(sorted((*state.queue, *taken))))

    def _reduced(self, state: State) -> State:
        """The state without parts that make no difference any more."""
        if not self._bounds.reduced:
            return state
        sent = [(number, self.messages[number]) for number in state.queue]
        if any(item.is_turn for _, item in sent):
            kept = [it for it in sent if not it[1].is_turn or self._kept.is_kept(it[1].envelope, state.documents)]
            state = state._replace(queue=tuple(number for number, _ in kept))
        if not state.faults:
            settled = self._answers.settled(state.documents, at_rest=not any(state.instances))
            state = state._replace(documents=settled)
        named = (tx for tx in state.paid if self._is_named(state.documents, tx))
        return state._replace(paid=frozenset(named))

    def _arrival(self, output: Output, cause: int) -> int:
        taker, envelope = self._takers.get(output.destination), Envelope.read(output.envelope.text)
        return self.messages.number(output.destination, taker, envelope, cause, later=output.delay > 0)

    def _deliver(self, message: int) -> Step[Finished]:
        """Process a message: attempts, until one finishes."""
        entity, work, memory = self.messages[message].entity, self._work_of(message), Memory()
        assert entity is not None  # noqa: S101  # Only messages with an entity type are delivered.
        outcome = yield from entity.strategy.attempt(work, memory)
        while not isinstance(outcome, Finished):
            outcome = yield from entity.strategy.attempt(work, outcome.memory)
        return outcome

    def _work(self, message: int) -> Work:
        sent = self.messages[message]
        assert sent.entity is not None  # noqa: S101  # As above.
        ref = sent.entity.ref_of(sent.envelope)
        runner = Runner(sent.entity, ref, self._routes)
        return Work(
            ref,
            (sent.envelope,),
            AgeCheck(Remembering(runner), ref, self._lifetimes, sent.entity.strategy.forgets),
            runner.absent,
            runner.evolve,
            self._lifetimes.retention.kept(self._now),
            self._lifetimes.refusal,
            send_limit=self._lifetimes.send_limit(self._now),
            senders=self._types,
        )


def _is_named(documents: Documents, tx: str) -> bool:
    """Whether a document names a transaction."""
    return any(tx in text for text in documents.texts)


def _matters(number: int, sent: Sent, company: Company) -> bool:
    """Whether a delivery matters to the instances at work: it may meet them, or follows from their work.

    Any other delivery might as well have come before they began.
    """
    return number not in company.before or sent.partition is None or sent.partition in company.partitions


class Remembering:
    """Runs the handler once for each input, after a check that the handler is deterministic; a `Handle`."""

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
        handled = self._known[key]
        if isinstance(handled, ExactlyOnceError):
            raise handled
        return handled

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
        except BaseException:  # noqa: S110  # The runner raises the same.
            pass
