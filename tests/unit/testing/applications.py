"""Correct applications in small, and the same with a planted mistake, for tests of `explore`.

Of each the outcome is the same in every order. So what it comes to on an `App`, which takes one message after the other, is
what it has to come to in the end of every story.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from exactlyonce import Api, Colocated, Context, Destination, Entity, Outbox, Reply, Resequencer, VersionStream, message
from exactlyonce.testing import App, Request, Response, Seen

STRATEGIES: dict[str, tuple[Any, str]] = {
    "outbox": (Outbox(), "/id"),
    "colocated": (Colocated(), "/owner"),
    "stream": (VersionStream(), "/owner"),
}
KEYS = ("a", "b", "c")


@message("test.right.put")
class Put(BaseModel):
    key: str
    amount: int = 1
    to: str = "b"


@message("test.right.came")
class Came(Put):
    """An amount came from another."""


@message("test.right.tick")
class Tick(BaseModel):
    key: str
    left: int = 0


@message("test.right.noted")
class Noted(BaseModel):
    key: str
    total: int


@message("test.right.charged")
class Charged(Reply):
    """The tag is the key."""


@message("test.right.amount")
class Amount(BaseModel):
    amount: int


class Account(BaseModel):
    total: int = 0
    ticks: int = 0
    last: int = 0


class Board(BaseModel):
    shown: dict[str, int] = {}


@dataclass
class Opened:
    """An application, and what tests need of it.

    Attributes:
        app: the application.
        accounts: takes each `Put`.
        compared: entities whose states are the outcome.
        shown: the part of a state that does not depend on the order.
    """

    app: App
    accounts: Entity[Account]
    compared: tuple[tuple[Entity[Any], str], ...]
    shown: Callable[[Any], object] = lambda state: state

    def outcome(self, look: App | Seen) -> tuple[Any, ...]:
        return tuple(self.shown(look.state(entity, key)) for entity, key in self.compared)


def accounts(strategy: str) -> Entity[Account]:
    chosen, path = STRATEGIES[strategy]
    return Entity("account", state=Account, container="accounts", partition_key=path, strategy=chosen)


def _opened(app: App, entity: Entity[Any], *others: tuple[Entity[Any], str]) -> Opened:
    return Opened(app, entity, (*((entity, key) for key in KEYS), *others))


def counter(strategy: str, mistake: bool) -> Opened:
    """It adds up. The mistake: what it adds to depends on what came last."""
    entity = accounts(strategy)

    @entity.handles(Put, key=lambda put: put.key)
    def put(state: Account, put: Put, context: Context) -> Account:
        added = put.amount * 2 if mistake and state.last > put.amount else put.amount
        return Account(total=state.total + added, last=put.amount if mistake else 0)

    return _opened(App(entity), entity)


def transfers(strategy: str, mistake: bool) -> Opened:
    """Amounts go from one to another. The mistake: an amount that is refused is lost, and that depends on the order."""
    entity = accounts(strategy)

    @entity.handles(Put, key=lambda put: put.key)
    def put(state: Account, put: Put, context: Context) -> Account:
        if mistake and state.total < 0:
            return state
        context.send("accounts", Came(key=put.to, amount=put.amount))
        return Account(total=state.total - put.amount)

    @entity.handles(Came, key=lambda came: came.key)
    def came(state: Account, came: Came, context: Context) -> Account:
        return Account(total=state.total + came.amount)

    return _opened(App(entity, destinations=(Destination("accounts", to=entity),)), entity)


def reminders(strategy: str, mistake: bool) -> Opened:
    """Each message starts a reminder that sets the next one. The mistake: they are counted together."""
    entity = accounts("outbox")

    @entity.handles(Put, key=lambda put: put.key)
    def put(state: Account, put: Put, context: Context) -> Account:
        context.send("accounts", Tick(key=put.key, left=1), at=context.now + timedelta(days=1))
        return Account(total=state.total + put.amount, ticks=state.ticks)

    @entity.handles(Tick, key=lambda tick: tick.key)
    def tick(state: Account, tick: Tick, context: Context) -> Account:
        if state.last < 1 if mistake else tick.left:
            context.send("accounts", Tick(key=tick.key), at=context.now + timedelta(days=1))
        return state.model_copy(update={"ticks": state.ticks + 1, "last": state.last + mistake})

    return _opened(App(entity, destinations=(Destination("accounts", to=entity),)), entity)


def board(strategy: str, mistake: bool) -> Opened:
    """A read model shows the latest total of each. The mistake: it takes them as they come."""
    entity = accounts(strategy)
    kind: Any = Outbox() if mistake else Resequencer()
    boards = Entity("board", state=Board, container="boards", partition_key="/board", strategy=kind)

    @entity.handles(Put, key=lambda put: put.key)
    def put(state: Account, put: Put, context: Context) -> Account:
        context.send("boards", Noted(key=put.key, total=state.total + put.amount))
        return Account(total=state.total + put.amount)

    @boards.handles(Noted, key=lambda noted: "all")
    def note(state: Board, noted: Noted, context: Context) -> Board:
        return Board(shown=dict(sorted({**state.shown, noted.key: noted.total}.items())))

    app = App(entity, boards, destinations=(Destination("boards", to=boards),))
    return _opened(app, entity, (boards, "all"))


def calls(strategy: str, mistake: bool) -> Opened:
    """It calls a service, and counts the answers. The mistake: it adds what was called for by then."""
    service = Api("service", "https://service.example", key_lifetime=timedelta(hours=1))
    entity = accounts(strategy if isinstance(STRATEGIES[strategy][0], Outbox) else "outbox")  # Only these make calls.
    replies = Destination("accounts", receives=(Charged,), to=entity)

    @entity.handles(Put, key=lambda put: put.key)
    def put(state: Account, put: Put, context: Context) -> Account:
        context.call(service, "POST", "/", Amount(amount=put.amount), then=Charged, tag=put.key)
        return state.model_copy(update={"total": state.total + put.amount})

    @entity.handles(Charged, key=lambda charged: charged.tag)
    def charged(state: Account, charged: Charged, context: Context) -> Account:
        return state.model_copy(update={"ticks": state.ticks + (state.total if mistake else 1)})

    def play(request: Request) -> Response:
        return Response(201, request.body)

    return _opened(App(entity, destinations=(replies, service), apis={service: play}), entity)


def cancelled(strategy: str, mistake: bool) -> Opened:
    """A message is kept until the next one cancels it, or it is due: it counts once. The mistake: it counts in either case."""
    entity = accounts("outbox")

    class Plan(Account):
        planned: list[str] = []

    planned = Entity("account", state=Plan, container="accounts", partition_key="/id", strategy=entity.strategy)

    @planned.handles(Put, key=lambda put: put.key)
    def put(state: Plan, put: Put, context: Context) -> Plan:
        gone = sum(context.cancel(id) or mistake for id in state.planned)
        kept = context.send("accounts", Tick(key=put.key), at=context.now + timedelta(days=1))
        return Plan(total=state.total + put.amount, ticks=state.ticks + gone, planned=[kept])

    @planned.handles(Tick, key=lambda tick: tick.key)
    def tick(state: Plan, tick: Tick, context: Context) -> Plan:
        return state.model_copy(update={"ticks": state.ticks + 1})

    opened = _opened(App(planned, destinations=(Destination("accounts", to=planned),)), planned)
    return replace(opened, shown=lambda state: state and (state.total, state.ticks))


def events(strategy: str, mistake: bool) -> Opened:
    """An event-sourced counter. The mistake is that of the counter."""
    entity = accounts("stream")

    @entity.handles(Put, key=lambda put: put.key)
    def put(state: Account, put: Put, context: Context) -> list[object]:
        context.send("accounts", Came(key=put.to, amount=put.amount))
        return [Amount(amount=put.amount)]

    @entity.handles(Came, key=lambda came: came.key)
    def came(state: Account, came: Came, context: Context) -> list[object]:
        return [Amount(amount=-came.amount)]

    @entity.applies(Amount)
    def add(state: Account, added: Amount) -> Account:
        twice = mistake and state.last > added.amount
        return Account(total=state.total + added.amount * (1 + twice), last=added.amount)

    opened = _opened(App(entity, destinations=(Destination("accounts", to=entity),)), entity)
    return replace(opened, shown=lambda state: 0 if state is None else state.total)


APPLICATIONS: dict[str, Callable[[str, bool], Opened]] = {
    item.__name__: item for item in (counter, transfers, reminders, board, calls, cancelled, events)
}
