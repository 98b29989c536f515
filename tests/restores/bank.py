"""A bank in memory whose documents are put back, deleted or written by others: what a restore, a script or an import does."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from exactlyonce import Context, Destination, Entity, ExactlyOnceError, Outbox, message
from exactlyonce.records.outbox import Output
from exactlyonce.stores.memory.store import Partition
from exactlyonce.testing.app import App
from exactlyonce.testing.guarantee import Facts, Violation, violations
from exactlyonce.testing.world import StoreHistory
from exactlyonce.values.envelope import Envelope, milliseconds
from exactlyonce.values.frozen_json import Json

TAKEN = "taken"
BAD = -1
"""An amount that no account takes."""
Saved = tuple[dict[tuple[object, ...], Partition], dict[str, Partition] | None]


@message("restores.order")
@dataclass
class Order:
    """A command to a source: pay an amount into an account."""

    source: str
    to: str
    amount: int = 1


@message("restores.paid")
@dataclass
class Paid:
    """A payment into an account."""

    to: str
    amount: int
    what: int = 0


@dataclass
class Source:
    paid: int = 0
    orders: int = 0


@dataclass
class Account:
    total: int = 0
    payments: list[int] = field(default_factory=list)


class Bank:
    """Sources pay into accounts.

    Args:
        timed: whether orders have ids that say their time, as HTTP clients may give them. Then payments are timed, too.

    Attributes:
        app: the application.
        sources, accounts: its entity types.
        waiting: payments that are held back.
    """

    def __init__(self, *, timed: bool = True) -> None:
        self.sources = Entity("source", state=Source, container="sources", partition_key="/owner", strategy=Outbox())
        self.accounts = Entity(
            "account", state=Account, container="accounts", partition_key="/owner", strategy=Outbox()
        )
        payments = Destination("payments", to=self.accounts)

        @self.sources.handles(Order, key=lambda order: order.source)
        def order(state: Source, given: Order, context: Context) -> Source:
            context.send(payments, Paid(given.to, given.amount, state.orders))
            return Source(state.paid + given.amount, state.orders + 1)

        @self.accounts.handles(Paid, key=lambda paid: paid.to)
        def paid(state: Account, given: Paid, context: Context) -> Account:
            del context
            if given.amount == BAD:
                raise ValueError(given.amount)
            return Account(state.total + given.amount, [*state.payments, given.what])

        self.app = App(
            self.sources, self.accounts, destinations=[payments, Destination("orders")], queues={"orders": self.sources}
        )
        self.waiting: list[Envelope] = []
        self._put_back: set[str] = set()
        self._timed = timed
        self._ids: dict[str, str] = {}
        self._held: Any = None

    @property
    def _host(self) -> Any:
        return self.app.host

    @property
    def _documents(self) -> Any:
        return self._host.accounts.documents

    def pay(self, name: str, amount: int = 1, *, source: str = "s", to: str = "r") -> str:
        """Send an order under a name, which gives its id; "taken", or the name of the error that gave it or its payment up."""
        order = Order(source, to, amount)
        return self._outcome(lambda: self.app.send("orders", order, message_id=self._id(name)))

    def pay_many(self, name: str, times: int, *, source: str = "s") -> None:
        """Send so many orders, of one coin each."""
        for number in range(times):
            assert self.pay(f"{name}{number}", source=source) == TAKEN

    def total(self, account: str = "r") -> int:
        """What an account holds."""
        state = self.app.state(self.accounts, account)
        return 0 if state is None else state.total

    def sent(self) -> list[Envelope]:
        """All payments that reached their queue, each once, in order."""
        return list(self.app.host.sent["payments"].values())

    def again(self, payment: Envelope) -> str:
        """Another copy of a payment arrives."""

        async def arrives() -> None:
            self.app.host.arrive("payments", Output(payment.id, "payments", payment.to_json()))

        return self._outcome(lambda: self.app.run(arrives()))

    def later(self, **time: float) -> None:
        """Let time pass while nothing runs."""
        self.app.host.loop.run_for(timedelta(**time).total_seconds())

    def hold(self) -> None:
        """Hold payments back from now on."""
        host, arrive = self._host, self.app.host.arrive
        transport = host.accounts.addresses["payments"].transport
        self._held = (host.takers.pop("payments"), arrive, transport)

        def arrived(name: str, output: Output) -> None:
            arrive(name, output)
            if name == "payments":
                self.waiting.append(Envelope.read(output.envelope.text))

        host.arrive = arrived
        transport._arrived = arrived

    def let_go(self) -> None:
        """Deliver payments again. Those that were held back stay so."""
        taker, arrive, transport = self._held
        self._host.takers["payments"] = taker
        self._host.arrive = arrive
        transport._arrived = arrive

    def backup(self, *types: str) -> Saved:
        """A copy of the store: of all types, or of the containers of some ("library" for the library's)."""
        entities = {key: item for key, item in self._documents.entities.items() if not types or key[0] in types}
        library = self._documents.library if not types or "library" in types else None
        return copy.deepcopy(entities), copy.deepcopy(library)

    def restore(self, saved: Saved, *types: str) -> None:
        """Put back what was saved, with new processes. Session tokens stay valid: the kindest restore there is."""
        entities, library = saved
        for key, now in self._documents.entities.items():
            if not types or key[0] in types:
                self._rewrite(now, entities.get(key, Partition()))
        if library is not None:
            for name, now in self._documents.library.items():
                self._rewrite(now, library.get(name, Partition()))
        self.app.host.kill()
        self._outcome(lambda: self.app.advance(minutes=20))

    def violations(self) -> tuple[Violation, ...]:
        """What is wrong with the documents that were ever written."""
        history = StoreHistory(self._documents, self._put_back)
        facts = Facts(tuple(history.commits), fallen=frozenset(history.fallen), undone=tuple(history.undone))
        return violations(facts, drained=False)

    def raw(self, type: str, id: str) -> Any:
        """The document of an entity."""
        version = self._documents.entities[type, id].newest(id)
        return None if version is None else version.document.value

    def write(self, type: str, id: str, document: dict[str, Any] | None) -> None:
        """What another program writes without a condition; None deletes. All processes begin anew."""
        partition = self._documents.entities.setdefault((type, id), Partition())
        self._documents._append(partition, id, None if document is None else Json.of(document))
        self.app.host.kill()
        self._outcome(lambda: self.app.advance(seconds=5))

    def library(self, kind: str = "") -> dict[str, list[str]]:
        """Ids of the library's documents of a kind, by partition."""
        found = {
            key: [id for id in item.view(len(item.log)) if id.startswith(kind)]
            for key, item in self._documents.library.items()
        }
        return {key: ids for key, ids in found.items() if ids}

    def _id(self, name: str) -> str:
        if not self._timed:
            return name
        time, number = f"{milliseconds(self.app.now):012x}", len(self._ids)
        return self._ids.setdefault(name, f"{time[:8]}-{time[8:]}-7000-8000-{number:012x}")

    def _rewrite(self, now: Partition, then: Partition) -> None:
        for id in dict.fromkeys(version.id for version in now.log):
            was, there = then.newest(id), now.newest(id)
            if (was and was.document) != (there and there.document):
                self._put_back.add(self._documents._append(now, id, was.document if was else None).etag)

    def _outcome(self, action: Any) -> str:
        try:
            action()
            self.app.advance(seconds=5)
        except ExactlyOnceError as error:
            return type(error).__name__
        return TAKEN
