"""What a peer is to the comparison, and what it is asked to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar


class NotInstalledError(Exception):
    """A peer cannot run on this machine. The text says what is missing, and how to install it."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to the counter of an entity; a copy of it is equal to it."""

    id: str
    entity: str


class Running(Protocol):
    """A peer at work, with nothing in it at first. It counts messages by entity, and sends the id of each to a sink.

    The sink is outside the peer, takes any number of copies, and counts different ids.
    """

    async def deliver(self, message: Message) -> None:
        """Process one delivery; returns when it may be acknowledged."""
        ...

    async def sent(self) -> int:
        """How many different ids the sink has."""
        ...

    async def counted(self) -> int:
        """The sum of all counters."""
        ...

    async def stored(self) -> int:
        """Bytes that are stored now, for whatever purpose."""
        ...


Work = TypeVar("Work")


@dataclass(frozen=True)  # Of a generic class with slots, typing cannot note what it is of.
class Peer(Generic[Work]):
    """A product that is compared.

    Attributes:
        name: in the result.
        versions: of its parts, by their names. Raises `NotInstalledError`, as `open` does.
        open: starts it in an empty folder, and ends all that was started when the `with` block ends.
    """

    name: str
    versions: Callable[[], Mapping[str, str]]
    open: Callable[[Path], AbstractAsyncContextManager[Work]]


def library(name: str) -> Any:
    """A module of the dependency group `peers`, which is installed apart. Raises `NotInstalledError`."""
    try:
        return import_module(name)
    except ImportError as error:
        raise NotInstalledError(f"The package {name} is not installed; `make bench-peers` installs it.") from error


def installed(*distributions: str) -> dict[str, str]:
    """Versions of distributions from the package index. Raises `NotInstalledError`."""
    try:
        return {name: version(name) for name in distributions}
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{error.name} is not installed; `make bench-peers` installs it.") from error
