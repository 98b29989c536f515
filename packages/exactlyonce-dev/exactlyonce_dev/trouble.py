"""Trouble on request: lost replies, throttling and lagging replicas, by the rules of the local Cosmos DB."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from exactlyonce.errors import ConfigurationError
from local_cosmos.administration import Administration
from local_cosmos.semantics.faults import FaultRule
from local_cosmos.semantics.replicas import Lag

_WRITES: Final = ("create", "replace", "upsert", "patch", "delete", "batch")
_LAG: Final = Lag(writes=3, catch_up_after=2)
_THROTTLED: Final = 20
KINDS: Final = {
    "lost-applied": "the next write is applied, and its reply is lost",
    "lost-not-applied": "the next write is lost before it is applied",
    "throttle": f"the next {_THROTTLED} requests are throttled (429)",
    "lag": "replicas lag by up to 3 writes",
}
"""What can go wrong, in words."""


class Trouble:
    """Makes the local Cosmos DB of an app misbehave."""

    def __init__(self, admin: Administration, database: str) -> None:
        self._admin = admin
        self._database = database
        self._lagging: set[str | None] = set()
        self._kinds: dict[int, str] = {}

    async def make(self, kind: str, container: str | None) -> None:
        """Let something go wrong.

        Args:
            kind: one of `KINDS`.
            container: where; None for all of the app's database.

        Raises:
            ConfigurationError: there is no such kind.
        """
        if kind not in KINDS:
            raise ConfigurationError(f"There is no trouble {kind!r}; there are: {', '.join(KINDS)}.")
        if kind == "lag":
            await asyncio.to_thread(self._admin.set_lag, self._database, container, _LAG)
            self._lagging.add(container)
        else:
            rule = self._rule(kind, container)
            self._kinds[await asyncio.to_thread(self._admin.add_fault, rule)] = kind

    async def end(self) -> None:
        """Let everything go right again."""
        await asyncio.to_thread(self._admin.clear_faults)
        await asyncio.to_thread(self._admin.set_lag, self._database)
        self._kinds.clear()
        self._lagging.clear()

    async def armed(self) -> list[dict[str, Any]]:
        """What goes wrong at present, and how often it has."""
        found = [
            {
                "text": KINDS[self._kinds[item.rule_id]],
                "container": item.rule.container,
                "hit": item.hit,
                "of": item.rule.times,
            }
            for item in await asyncio.to_thread(self._admin.faults)
            if item.rule_id in self._kinds
        ]
        lag = sorted(self._lagging, key=str)
        return [*found, *({"text": KINDS["lag"], "container": item, "hit": None, "of": None} for item in lag)]

    def _rule(self, kind: str, container: str | None) -> FaultRule:
        if kind == "throttle":
            return FaultRule(
                database=self._database,
                container=container,
                when="before",
                action="status",
                status=429,
                substatus=3200,
                retry_after_ms=100,
                times=_THROTTLED,
            )
        return FaultRule(
            database=self._database,
            container=container,
            operations=_WRITES,
            when="after" if kind == "lost-applied" else "before",
            action="close",
            times=1,
        )
