"""The trouble a demo makes: lost replies and stale reads all the time, killed hosts at chosen moments."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from demo.stack import DATABASE, Stack
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.replicas import Lag

WRITES: Final = ("create", "replace", "upsert", "batch", "delete")
COMMITS: Final = ("replace", "upsert", "batch")  # The naive handler upserts; a game and its companions come in a batch.
KILLS: Final = (0.25, 0.5, 0.75)
"""After which share of the shots the hosts are killed; the middle one between a commit and its publish."""
_LOST_AFTER: Final = 0.12
_LOST_BEFORE: Final = 0.15
_POLL_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Counted:
    """What was injected so far; at the broker locks are lost, and replies."""

    lost_after: int = 0
    lost_before: int = 0
    throttled: int = 0
    at_the_broker: int = 0


def inject(stack: Stack, seed: int) -> None:
    """From now on writes lose their replies, before or after they were applied, and reads come from lagging replicas."""
    cosmos = stack.cosmos
    cosmos.add_fault(
        FaultRule(DATABASE, operations=WRITES, when="after", action="close", probability=_LOST_AFTER, seed=seed)
    )
    cosmos.add_fault(
        FaultRule(DATABASE, operations=WRITES, when="after", action="truncate", probability=0.03, seed=seed + 1)
    )
    cosmos.add_fault(
        FaultRule(DATABASE, operations=WRITES, when="before", action="close", probability=_LOST_BEFORE, seed=seed + 2)
    )
    cosmos.add_fault(
        FaultRule(
            DATABASE, when="before", action="status", status=429, substatus=3200, retry_after_ms=5,
            probability=0.02, seed=seed + 3,
        )
    )  # fmt: skip
    cosmos.set_lag(DATABASE, lag=Lag(writes=20, varying=True, share=0.2, seed=seed))
    if stack.bus is not None:
        stack.bus.inject()


def count(stack: Stack) -> Counted:
    """What was injected so far."""
    hits = {"after": 0, "before": 0, "throttled": 0}
    for fault in stack.cosmos.faults():
        hits["throttled" if fault.rule.action == "status" else str(fault.rule.when)] += fault.hit
    at_the_broker = 0 if stack.bus is None else stack.bus.count()
    return Counted(hits["after"], hits["before"], hits["throttled"], at_the_broker)


async def kill_between_commit_and_publish(stack: Stack) -> int:
    """Hold back the reply of a commit that was applied, and kill the hosts while they wait for it.

    A host publishes after that reply, so the outputs of this commit are owed by a process that is no more.

    Returns:
        How many hosts were killed.

    Raises:
        RuntimeError: no commit came along.
    """
    rule = stack.cosmos.add_fault(FaultRule(DATABASE, "games", COMMITS, when="after", action="hang", times=1))
    for _ in range(round(_PATIENCE_SECONDS / _POLL_SECONDS)):
        if any(fault.rule_id == rule and fault.hit for fault in stack.cosmos.faults()):
            break
        await asyncio.sleep(_POLL_SECONDS)
    else:
        raise RuntimeError("No commit came along to be interrupted; fire more shots.")
    killed = stack.kill_hosts()
    stack.cosmos.remove_fault(rule)
    return killed
