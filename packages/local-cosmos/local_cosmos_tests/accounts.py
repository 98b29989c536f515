"""Accounts without HTTP."""

from __future__ import annotations

from typing import Any

from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.requests import OperationKind, Reply, Request
from local_cosmos.storage.keeper import Keeper
from local_cosmos.values import serialise
from local_cosmos_tests.raw import KEY


class LocalAccount:
    """An account with database `d` and container `c`, whose partition key is `/pk`.

    Args:
        partitions: Physical ones of the container.
        keeper: Where all is kept, and may be from before; in memory by default.
        definition: More of the container.
    """

    def __init__(self, partitions: int = 1, keeper: Keeper | None = None, **definition: Any) -> None:
        settings, clock = AccountSettings(partitions=partitions), Clock(lambda: 1000.0)
        self.emulator = Emulator(settings, clock, lambda: 0.0, observed=False, keeper=keeper or Keeper())
        self.ask("create_database", {"id": "d"})
        self.ask("create_container", {"id": "c", "partitionKey": KEY, **definition})

    def ask(self, operation: OperationKind, content: object = None, key: str | None = None, **more: Any) -> Reply:
        """The reply to a request; `content` is JSON unless it is bytes, `key` the partition key, a string."""
        partition_key = None if key is None else serialise([key]).decode()
        body = content if isinstance(content, bytes) else serialise(content)
        request = Request(operation, "d", "c", body=body, partition_key=partition_key, **more)
        return self.emulator.serve(request, 0.0).reply

    def pages(self, content: object, key: str | None = None, **more: Any) -> list[Reply]:
        """All pages of a query, the last of which may be a refusal."""
        replies = [self.ask("query", content, key, **more)]
        while replies[-1].continuation is not None:
            replies.append(self.ask("query", content, key, continuation=replies[-1].continuation, **more))
        return replies
