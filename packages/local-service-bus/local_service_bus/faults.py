"""Faults on request: rules that say which operations are to go wrong, when and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal, get_args

Action = Literal["cut_before", "cut_after", "lock_lost", "redeliver", "server_busy", "slow"]
Operation = Literal[
    "send",
    "schedule",
    "cancel",
    "receive",
    "receive_deferred",
    "peek",
    "complete",
    "abandon",
    "dead_letter",
    "defer",
    "renew_lock",
    "accept_session",
    "renew_session_lock",
    "get_session_state",
    "set_session_state",
    "list_sessions",
    "list_rules",
    "add_rule",
    "remove_rule",
]

ACTIONS: Final[tuple[str, ...]] = get_args(Action)
OPERATIONS: Final[tuple[str, ...]] = get_args(Operation)
SETTLEMENTS: Final = ("complete", "abandon", "dead_letter", "defer")
LOCKING: Final = ("receive", "receive_deferred", "renew_lock", "renew_session_lock", *SETTLEMENTS)
REPEATABLE: Final = ("send", "receive", *SETTLEMENTS)


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One kind of trouble.

    Attributes:
        operation: Which one goes wrong; what a client does by its links and what it does by requests count alike.
        entity: Only at this address (`orders`, `events/Subscriptions/all`, `orders/$DeadLetterQueue`); None for all.
        action: `cut_before`: the connection ends, and nothing was done. `cut_after`: it was done, and the connection ends
            before the reply. `lock_lost`: the lock ends before its time, so that the operation finds it lost; with
            `receive` as soon as the message was handed out. `redeliver`: it was done, and the message is delivered
            once more. `server_busy`: refused, nothing was done. `slow`: done after so many seconds.
        times: Most hits; None for no limit.
        probability: Chance that a matching operation is hit; None for always. The endpoint's seed decides.
        seconds: For `slow`, of the endpoint's clock.
        message_id: Only operations on this message; None for all. Requests that name no message never match it.
        skip: So many matching operations are let through first.

    Raises:
        ValueError: for what could never happen.
    """

    operation: str
    entity: str | None = None
    action: str = "cut_after"
    times: int | None = 1
    probability: float | None = None
    seconds: float = 1.0
    message_id: str | None = None
    skip: int = 0

    def __post_init__(self) -> None:
        """Refuse what could never happen, so that a test does not wait for it."""
        if self.operation not in OPERATIONS:
            raise ValueError(f"There is no operation {self.operation!r}; there are {', '.join(OPERATIONS)}.")
        if self.action not in ACTIONS:
            raise ValueError(f"There is no action {self.action!r}; there are {', '.join(ACTIONS)}.")
        if self.action == "lock_lost" and self.operation not in LOCKING:
            raise ValueError(f"{self.operation} has no lock to lose; these have: {', '.join(LOCKING)}.")
        if self.action == "redeliver" and self.operation not in REPEATABLE:
            raise ValueError(f"{self.operation} delivers nothing again; these do: {', '.join(REPEATABLE)}.")
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise ValueError(f"A probability is between 0 and 1, not {self.probability}.")
        if self.seconds < 0:
            raise ValueError(f"Nothing can be slow by {self.seconds} seconds.")

    def matches(self, operation: str, entity: str, message_ids: tuple[str | None, ...]) -> bool:
        """Whether an operation is of the kind that this rule is for."""
        return (
            operation == self.operation
            and (self.entity is None or self.entity.lower() == entity.lower())
            and (self.message_id is None or self.message_id in message_ids)
        )


@dataclass(slots=True)
class _Armed:
    rule: FaultRule
    matched: int = 0
    hit: int = 0

    def strikes(self, chance: Random) -> bool:
        """Count a matching operation and decide whether it is hit."""
        self.matched += 1
        rule = self.rule
        if self.matched <= rule.skip or (rule.times is not None and self.hit >= rule.times):
            return False
        if rule.probability is not None and chance.random() >= rule.probability:
            return False
        self.hit += 1
        return True


@dataclass(slots=True)
class Faults:
    """All rules, in the order in which they were added; the first one that hits decides.

    Args:
        chance: Of rules with a probability.
    """

    chance: Random
    _armed: dict[int, _Armed] = field(default_factory=dict)
    _last_id: int = 0

    def add(self, rule: FaultRule) -> int:
        """Arm a rule; returns its id."""
        self._last_id += 1
        self._armed[self._last_id] = _Armed(rule)
        return self._last_id

    def clear(self) -> None:
        """Disarm all rules."""
        self._armed.clear()

    def hits(self, rule_id: int) -> int:
        """How often a rule has hit; 0 if there is no such rule."""
        armed = self._armed.get(rule_id)
        return armed.hit if armed else 0

    def strike(self, operation: str, entity: str, message_ids: tuple[str | None, ...] = ()) -> FaultRule | None:
        """The rule that hits this operation."""
        for armed in self._armed.values():
            if armed.rule.matches(operation, entity, message_ids) and armed.strikes(self.chance):
                return armed.rule
        return None
