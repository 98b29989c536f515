"""What a store has to offer: one method per effect, each answering with that effect's reply.

A store never raises for what the world does to it. What it cannot know is `UNKNOWN`; what it knows not to have been done, and
may be asked for again at once, is `Busy`, which drivers retry and strategies never see. It keeps no session tokens of its own:
tokens come in with effects and go out with replies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from exactlyonce.effects import (
    Conflict,
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    FindProcessed,
    Found,
    FoundParked,
    FoundStaged,
    HasRecords,
    Loaded,
    LoadEntity,
    LoadParked,
    LoadStaged,
    NoAnswer,
    Park,
    Saved,
    SaveEntity,
    Stage,
    WriteProcessed,
    Written,
)

Unknown = Literal[NoAnswer.UNKNOWN]


@dataclass(frozen=True, slots=True)
class Busy:
    """Throttled, or the partition is moving: certainly not applied.

    Attributes:
        retry_after: seconds the store asks to wait; None if it does not say.
    """

    retry_after: float | None = None


class Store(Protocol):
    """A store for blocking drivers. `AsyncStore` is the same, awaited."""

    def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy: ...
    def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy: ...
    def find_processed(self, effect: FindProcessed) -> Found | NoAnswer | Busy: ...
    def has_records(self, effect: HasRecords) -> bool | NoAnswer | Busy: ...
    def write_processed(self, effect: WriteProcessed) -> Written | Unknown | Busy: ...
    def stage(self, effect: Stage) -> Written | Conflict | Unknown | Busy: ...
    def load_staged(self, effect: LoadStaged) -> FoundStaged | NoAnswer | Busy: ...
    def delete_staged(self, effect: DeleteStaged) -> None: ...
    def delete_processed(self, effect: DeleteProcessed) -> None: ...
    def park(self, effect: Park) -> Written | Unknown | Busy: ...
    def load_parked(self, effect: LoadParked) -> FoundParked | NoAnswer | Busy: ...
    def delete_parked(self, effect: DeleteParked) -> None: ...


class AsyncStore(Protocol):
    """A store for the async driver."""

    async def load_entity(self, effect: LoadEntity) -> Loaded | NoAnswer | Busy: ...
    async def save_entity(self, effect: SaveEntity) -> Saved | Conflict | Unknown | Busy: ...
    async def find_processed(self, effect: FindProcessed) -> Found | NoAnswer | Busy: ...
    async def has_records(self, effect: HasRecords) -> bool | NoAnswer | Busy: ...
    async def write_processed(self, effect: WriteProcessed) -> Written | Unknown | Busy: ...
    async def stage(self, effect: Stage) -> Written | Conflict | Unknown | Busy: ...
    async def load_staged(self, effect: LoadStaged) -> FoundStaged | NoAnswer | Busy: ...
    async def delete_staged(self, effect: DeleteStaged) -> None: ...
    async def delete_processed(self, effect: DeleteProcessed) -> None: ...
    async def park(self, effect: Park) -> Written | Unknown | Busy: ...
    async def load_parked(self, effect: LoadParked) -> FoundParked | NoAnswer | Busy: ...
    async def delete_parked(self, effect: DeleteParked) -> None: ...
