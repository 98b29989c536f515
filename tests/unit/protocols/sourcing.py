"""An event-sourced account for tests: it keeps what was paid, and is made of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from exactlyonce import Context, Entity, Envelope, VersionStream, message
from exactlyonce.effects.attempt import Again, Before, Finished, Handle, Handled, Memory, Strategy, Work
from exactlyonce.effects.effect import Step
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.stream.protocol import Point
from exactlyonce.records.companions import StreamEntry
from tests.samples import Account, Break, Close, Deposit, Deposited
from tests.unit.script import ENTITY, ORDERED, Script

STREAM = VersionStream(snapshot_every=3)


@message("account.paid", formerly=("account.given",))
@dataclass
class Paid:
    amount: int


@message("account.noted")
@dataclass
class Noted:
    text: str


def declared(strategy: Strategy = STREAM) -> Entity[Account]:
    """The type without handlers and appliers."""
    return Entity("account", state=Account, container="accounts", partition_key="/owner", strategy=strategy)


def paid(state: Account, paid: Paid) -> Account:
    return Account(state.total + paid.amount, [*state.history[-9:], paid.amount], state.note)


def noted(state: Account, noted: Noted) -> Account:
    state.note = noted.text  # An applier may change the state that it is given.
    return state


def events_of(given: Deposit) -> list[object]:
    """What a deposit leads to: nothing if it is of nothing, a note if it has padding."""
    return [*([Paid(given.amount)] if given.amount else []), *([Noted(given.padding)] if given.padding else [])]


def accounts(strategy: Strategy = STREAM) -> Entity[Account]:
    """The type with all its handlers and appliers."""
    entity = declared(strategy)
    entity.applies(Paid)(paid)
    entity.applies(Noted)(noted)

    @entity.handles(Deposit, key=lambda deposit: deposit.account)
    def deposit(state: Account, given: Deposit, context: Context) -> list[object]:
        state.total += given.amount  # Its own copy: what counts is what it returns.
        for _ in range(given.answers):
            context.send("receipts", Deposited(state.total, context.new_id()))
        return events_of(given)

    @entity.handles(Close, key=lambda close: close.account)
    def close(state: Account, given: Close, context: Context) -> list[object]:
        context.send("receipts", Deposited(state.total, context.new_id()))
        context.delete()
        return []

    @entity.handles(Break, key=lambda given: given.account)
    def break_(state: Account, given: Break, context: Context) -> list[object]:
        raise RuntimeError("the handler's own fault")

    return entity


def answering(result: Any) -> Entity[Account]:
    """The type with the appliers, and a handler that returns this."""
    entity = declared()
    entity.applies(Paid)(paid)
    entity.applies(Noted)(noted)
    entity.handles(Deposit, key=lambda deposit: deposit.account)(lambda state, given, context: result)
    return entity


class Remembering:
    """A handler that keeps what it was given. The numbers given out are no matter where a message is handled again."""

    def __init__(self, type: Entity[Account]) -> None:
        self.given: list[Before] = []
        self._runner = Runner(type, ENTITY, ORDERED)

    def __call__(self, before: Before, envelope: Envelope) -> Handled:
        self.given.append(replace(before, sequences=()))
        return self._runner(before, envelope)

    @property
    def points(self) -> list[Point]:
        """What each message was handled on."""
        return [Point(before.body) for before in self.given]


def work(type: Entity[Account], *messages: Envelope, handle: Handle | None = None) -> Work:
    """Messages for the account `ENTITY` of this type."""
    runner = Runner(type, ENTITY, ORDERED)
    return Work(ENTITY, messages, handle or runner, runner.absent, runner.evolve)


def attempt(type: Entity[Account], *messages: Envelope, handle: Handle | None = None) -> Step[Finished | Again]:
    """An attempt by the strategy of the type."""
    return type.strategy.attempt(work(type, *messages, handle=handle), Memory())


def played(*messages: Envelope, type: Entity[Account] | None = None) -> Script:
    """An account that processed these messages, one after the other."""
    script = Script()
    for item in messages:
        script.play(attempt(type or accounts(), item))
    return script


def entries(script: Script) -> tuple[StreamEntry, ...]:
    """The stream."""
    return tuple(companion for companion in script.companions if isinstance(companion, StreamEntry))
