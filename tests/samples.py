"""A small entity for tests: an account that counts what it was told and answers every message."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final

from exactlyonce import Context, Destination, Entity, Envelope, Outbox, message
from exactlyonce.effects.attempt import Strategy
from exactlyonce.stores.memory.store import Fate
from exactlyonce.values.frozen_json import Json


@message("account.deposit", formerly=("account.pay-in",))
@dataclass
class Deposit:
    account: str
    amount: int = 1
    answers: int = 1
    padding: str = ""
    repeat: int = 1


@message("account.close")
@dataclass
class Close:
    account: str


@message("account.break")
@dataclass
class Break:
    account: str


@message("account.deposited")
@dataclass
class Deposited:
    total: int
    receipt: str
    padding: str = ""


@dataclass
class Account:
    total: int = 0
    history: list[int] = field(default_factory=list)
    note: str = ""


SENT: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)
FATES: Final = {
    Fate.LOST_BEFORE: 0.04,
    Fate.LOST_AFTER: 0.06,
    Fate.REPEATED: 0.06,
    Fate.DELAYED: 0.04,
    Fate.BUSY: 0.05,
}
"""Shares of writes that end so, in random histories."""
"""When samples were sent: the time at which the clocks of tests start."""

ledger_queue = Destination("receipts", receives=(Deposited,))


def accounts(strategy: Strategy | None = None) -> Entity[Account]:
    """A fresh entity type with all its handlers."""
    entity = Entity(
        "account",
        state=Account,
        container="accounts",
        partition_key="/owner",
        strategy=strategy or Outbox(),
        adopts=True,
    )

    @entity.handles(Deposit, key=lambda deposit: deposit.account)
    def deposit(state: Account, given: Deposit, context: Context) -> Account:
        total = state.total + given.amount
        for _ in range(given.answers):
            context.send("receipts", Deposited(total, context.new_id(), given.padding * given.repeat))
        return Account(total, [*state.history[-9:], given.amount], state.note)

    @entity.handles(Close, key=lambda close: close.account)
    def close(state: Account, given: Close, context: Context) -> Account:
        context.delete()
        context.send("receipts", Deposited(state.total, context.new_id()))
        return state

    @entity.handles(Break, key=lambda given: given.account)
    def break_(state: Account, given: Break, context: Context) -> Account:
        context.send("receipts", Deposited(state.total, "never"))
        raise RuntimeError("the handler's own fault")

    return entity


def deposit(id: str, account: str = "a", **more: Any) -> Envelope:
    return Envelope("web", id, "account.deposit", Json.of({"account": account, **more}), SENT)


def close(id: str, account: str = "a") -> Envelope:
    return Envelope("web", id, "account.close", Json.of({"account": account}), SENT)


def breaking(id: str, account: str = "a") -> Envelope:
    return Envelope("web", id, "account.break", Json.of({"account": account}), SENT)
