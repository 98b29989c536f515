"""Writing and deleting blobs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from exactlyonce.effects.effect import Effect, NoAnswer
from exactlyonce.records.blobs import Blob


class Kept(Enum):
    """Every blob is there."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


@dataclass(frozen=True, slots=True)
class WriteOnce(Effect[Kept | Literal[NoAnswer.UNKNOWN]]):
    """Create blobs. One that exists was written by an earlier send of the same request, since names are fresh."""

    blobs: tuple[Blob, ...]


@dataclass(frozen=True, slots=True)
class DeleteBlobs(Effect[None]):
    """Delete blobs, best effort: what remains is a candidate for clean-up again."""

    names: tuple[str, ...]
