"""The whole emulator without HTTP: the account, and everything that observes it or makes it misbehave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from local_cosmos.semantics.account import Account, AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.errors import RefusedError
from local_cosmos.semantics.faults import FaultRule, Faults, named_items
from local_cosmos.semantics.history import History
from local_cosmos.semantics.request_log import RequestLog
from local_cosmos.semantics.requests import ITEM_OPERATIONS, Reply, Request, refused
from local_cosmos.semantics.story import Recorder
from local_cosmos.storage.keeper import Keeper

Manner = Literal["answer", "close", "reset", "hang", "truncate"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What to do on the wire.

    Attributes:
        reply: The answer; for `close`, `reset` and `hang` it is not sent.
        fault: Id of the rule behind it; None for no fault.
    """

    reply: Reply
    manner: Manner = "answer"
    fault: int | None = None


@dataclass(slots=True, eq=False)
class _DelayedWrite:
    request: Request
    writes_left: int | None  # None: only when released
    fault: int


@dataclass(slots=True)
class Emulator:
    """An account, its faults and its logs. Every method is one step; call them from one thread.

    Attributes:
        clock: Time, for `_ts` and time to live.
        elapsed: Seconds since the server started, for the request log.
        observed: False to keep neither history nor request log.
        latency: Seconds that every request for items takes longer.
        recorder: Writes a story of all that happens; its time is the clock's.
    """

    settings: AccountSettings
    clock: Clock
    elapsed: Callable[[], float]
    observed: bool = True
    latency: float = 0.0
    keeper: Keeper = field(default_factory=Keeper)
    recorder: Recorder | None = None
    faults: Faults = field(default_factory=Faults)
    log: RequestLog = field(default_factory=RequestLog)
    history: History = field(init=False)
    account: Account = field(init=False)
    _delayed: list[_DelayedWrite] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open the account."""
        self.history = History(kept=self.observed)
        self.account = Account(self.settings, self.clock, self.history, self.keeper)

    def serve(self, request: Request, started: float) -> Outcome:
        """Decide and perform what a request leads to.

        Args:
            started: When it came, in seconds since the server started.
        """
        if self.recorder is None:
            return self._serve(request, started)
        self.recorder.begin()
        outcome = self._serve(request, started)
        self.recorder.request(request, outcome.reply, outcome.manner)
        return outcome

    def release_delayed(self, database: str | None = None, fault: int | None = None) -> int:
        """Apply the delayed writes of a database, or of all, now; only those that one rule caught, if it is named.

        Returns how many there were.
        """
        due = [
            write
            for write in self._delayed
            if database in (None, write.request.database) and fault in (None, write.fault)
        ]
        self._apply(due)
        return len(due)

    def delayed(self) -> int:
        """How many delayed writes wait."""
        return len(self._delayed)

    def _serve(self, request: Request, started: float) -> Outcome:
        request = self.account.named(request)
        struck = self.faults.strike(request)
        if struck is not None:
            return self._misbehave(request, *struck, started=started)
        if request.operation not in ITEM_OPERATIONS:
            return Outcome(self.account.execute(request))
        reply = self.account.execute(request)
        self._note(request, reply, executed=reply, started=started)
        return Outcome(reply)

    def _misbehave(self, request: Request, fault: int, rule: FaultRule, *, started: float) -> Outcome:
        executed = self.account.execute(request) if rule.when == "after" else None
        reply, manner = _answer(rule, executed)
        answered = reply if manner in {"answer", "truncate"} else None
        self._note(request, answered, executed=executed, started=started, fault=fault)
        if rule.when == "later":
            self._delayed.append(_DelayedWrite(request, rule.after_writes, fault))
        return Outcome(reply, manner, fault)

    def _note(
        self, request: Request, reply: Reply | None, *, executed: Reply | None, started: float, fault: int | None = None
    ) -> None:
        """Log a request; an applied write brings delayed ones nearer."""
        self._log(request, reply, executed, started, fault=fault)
        if self._delayed and executed is not None and executed.applied:
            self._count_down(request.database)

    def _count_down(self, database: str) -> None:
        due: list[_DelayedWrite] = []
        for write in self._delayed:
            if write.writes_left is not None and write.request.database == database:
                write.writes_left -= 1
                if write.writes_left <= 0:
                    due.append(write)
        self._apply(due)

    def _apply(self, due: list[_DelayedWrite]) -> None:
        self._delayed = [write for write in self._delayed if write not in due]
        for write in due:
            executed = self.account.execute(write.request)
            self._log(write.request, executed, executed, self.elapsed(), fault=write.fault, delayed=True)

    def _log(
        self,
        request: Request,
        reply: Reply | None,
        executed: Reply | None,
        started: float,
        *,
        fault: int | None,
        delayed: bool = False,
    ) -> None:
        if not self.observed:
            return
        items = [] if request.operation == "batch" else named_items(request)
        item = items[0] if items else None
        times = (started, self.elapsed())
        self.log.add(request, item, reply, executed=executed, times=times, fault=fault, delayed=delayed)


def _answer(rule: FaultRule, executed: Reply | None) -> tuple[Reply, Manner]:
    """The reply that a fault leads to, and how it is sent. A substituted status keeps the session token."""
    if rule.action != "status":
        return executed or Reply(503), rule.action
    refusal = RefusedError(rule.status, "A fault that was asked for.", rule.substatus, rule.retry_after_ms)
    reply = refused(refusal)
    if executed is not None:
        reply = replace(
            reply,
            charge=executed.charge,
            range_id=executed.range_id,
            lsn=executed.lsn,
            session_token=executed.session_token,
            content_path=executed.content_path,
        )
    return reply, "answer"
