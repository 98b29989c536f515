"""Faults on request: rules that say which requests are to go wrong, when and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal, get_args

from local_cosmos.semantics.errors import RefusedError
from local_cosmos.semantics.requests import ITEM_OPERATIONS, PROPERTY_READS, WRITES, Request

When = Literal["before", "after", "later"]
Action = Literal["close", "reset", "hang", "truncate", "status"]

WHENS: Final[tuple[str, ...]] = get_args(When)
ACTIONS: Final[tuple[str, ...]] = get_args(Action)


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One kind of trouble. A rule whose seed, matches and order of requests are the same does the same.

    Attributes:
        database: Only requests to this database.
        container: Only to this container; None for all.
        operations: Only these (create, read, replace, upsert, patch, delete, batch, query, list_items, change_feed,
            delete_partition_key); empty for all. Reads of properties (read_database, read_container) go wrong only where
            they are named.
        id: Only requests that name this item; a batch names several.
        body_contains: Only requests whose body contains this text.
        when: `before`: nothing is applied; `after`: the request is applied, then its answer goes wrong; `later`: a write is
            applied only after the next `after_writes` accepted writes in the database, or when released.
        action: `close` (the connection ends, FIN), `reset` (RST), `hang` (no answer until the rule is deleted, then FIN),
            `truncate` (half a body; only `after`), `status` (answer this status instead).
        status, substatus, retry_after_ms: What `status` answers.
        after_writes: For `later`; None: only when released.
        probability: Chance that a matching request is hit.
        seed: Of that chance.
        skip: So many matching requests are let through first.
        times: Most hits; None for no limit.
    """

    database: str
    container: str | None = None
    operations: tuple[str, ...] = ()
    id: str | None = None
    body_contains: str | None = None
    when: When = "after"
    action: Action = "close"
    status: int = 503
    substatus: int = 0
    retry_after_ms: int | None = None
    after_writes: int | None = None
    probability: float = 1.0
    seed: int = 0
    skip: int = 0
    times: int | None = None

    def __post_init__(self) -> None:
        """Refuse what could never happen, so that a test does not wait for it."""
        if not self.database:
            raise ValueError("A fault rule names a database.")
        if self.when not in WHENS or self.action not in ACTIONS:
            raise ValueError(f"A fault is one of {WHENS} and one of {ACTIONS}; not {self.when!r}, {self.action!r}.")
        known = (*ITEM_OPERATIONS, *PROPERTY_READS)
        if unknown := set(self.operations) - set(known):
            raise ValueError(f"There are no such operations: {sorted(unknown)}; there are {known}.")
        if self.action == "truncate" and self.when != "after":
            raise ValueError("Only the answer to an applied request can be truncated.")

    def matches(self, request: Request) -> bool:
        """Whether a request is of the kind that this rule is for."""
        return (
            request.database == self.database
            and self.container in (None, request.container)
            and request.operation in (self.operations or ITEM_OPERATIONS)
            and (self.when != "later" or request.operation in WRITES)
            and (self.body_contains is None or self.body_contains.encode() in request.body)
            and (self.id is None or self.id in named_items(request))
        )


@dataclass(frozen=True, slots=True)
class FaultCounters:
    """A rule and how often it has matched and hit."""

    rule_id: int
    rule: FaultRule
    matched: int
    hit: int


@dataclass(slots=True)
class _Armed:
    rule: FaultRule
    chance: Random
    matched: int = 0
    hit: int = 0

    def strikes(self) -> bool:
        """Count a matching request and decide whether it is hit."""
        self.matched += 1
        rule = self.rule
        if self.matched <= rule.skip or (rule.times is not None and self.hit >= rule.times):
            return False
        if self.chance.random() >= rule.probability:
            return False
        self.hit += 1
        return True


@dataclass(slots=True)
class Faults:
    """All rules, in the order in which they were added; the first one that hits a request decides."""

    _armed: dict[int, _Armed] = field(default_factory=dict)
    _last_id: int = 0

    def add(self, rule: FaultRule) -> int:
        """Arm a rule; returns its id."""
        self._last_id += 1
        self._armed[self._last_id] = _Armed(rule, Random(rule.seed))
        return self._last_id

    def remove(self, rule_id: int) -> None:
        """Disarm a rule; an unknown id is no error."""
        self._armed.pop(rule_id, None)

    def clear(self) -> None:
        """Disarm all rules."""
        self._armed.clear()

    def counters(self) -> list[FaultCounters]:
        """All rules with their counters."""
        return [FaultCounters(key, armed.rule, armed.matched, armed.hit) for key, armed in self._armed.items()]

    def is_armed(self, rule_id: int) -> bool:
        """Whether a rule is still there."""
        return rule_id in self._armed

    def strike(self, request: Request) -> tuple[int, FaultRule] | None:
        """The rule that hits this request, with its id."""
        for rule_id, armed in self._armed.items():
            if armed.rule.matches(request) and armed.strikes():
                return rule_id, armed.rule
        return None


def named_items(request: Request) -> list[str]:
    """The ids of the items that a request is about, as far as its path or body says."""
    if request.item:
        return [request.item]
    if request.operation not in WRITES:
        return []
    try:
        content = request.content
    except RefusedError:  # Not JSON; whoever executes the request will say so.
        return []
    operations = content if isinstance(content, list) else [content]
    return [item_id for operation in operations if (item_id := _named_item(operation))]


def _named_item(operation: object) -> str | None:
    if not isinstance(operation, dict):
        return None
    body = operation.get("resourceBody")
    item_id = operation.get("id") or (body.get("id") if isinstance(body, dict) else None)
    return item_id if isinstance(item_id, str) else None
