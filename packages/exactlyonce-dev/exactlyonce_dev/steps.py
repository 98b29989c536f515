"""Steps of a protocol in words: what was asked for, why, and what came back."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from exactlyonce.effects.companions import FoundCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, Effect, Step, Together
from exactlyonce.effects.entity import PUBLISHED, Conflict, Loaded, Publish, Saved, SaveEntity
from exactlyonce.effects.library import (
    OTHER,
    CloseNumbers,
    FindPaid,
    FoundPages,
    HasPages,
    OpenNumbers,
    Park,
    Stage,
    WritePage,
    Written,
)
from exactlyonce.records.ledger import read_entity
from exactlyonce.telemetry.words import lines_of, words_at

Kind = Literal["write", "publish", "read"]
_WRITES: Final = (SaveEntity, SaveBatch, WritePage, Stage, Park)
_OF_THE_PROCESS: Final = (Begin, OpenNumbers, FindPaid, CloseNumbers)
_CONFLICT: Final = "conflict: another write came first, or this one, sent twice by the client library"
_OTHER: Final = "another page follows the same one: the entity had another history"
_BEHIND: Final = "the replica that answered is behind what this process has seen"
_NO_REPLY: Final = "no reply: nobody knows whether it was applied"


@dataclass(frozen=True, slots=True)
class Asked:
    """A step before its reply.

    Attributes:
        title, why: what the protocol's comment at this step says; the effect's name, and nothing, where it says nothing.
    """

    effect: str
    kind: Kind
    title: str
    why: str

    def answered(self, effect: Effect[Any], reply: object) -> dict[str, Any]:
        """The step as JSON, with its reply."""
        told = asdict(self) | _in_words(effect, reply)
        if isinstance(effect, Publish):
            told["sends"] = len({output.destination for output in effect.outputs})
        return told


def asked(step: Step[Any], effect: Effect[Any]) -> Asked | None:
    """The step at which a protocol waits; None if it asks for what the process knows: the time, and its book."""
    if isinstance(effect, _OF_THE_PROCESS):
        return None
    words = words_at(lines_of(step))
    kind: Kind = "write" if isinstance(effect, _WRITES) else "publish" if isinstance(effect, Publish) else "read"
    name = name_of(effect)
    if words is None:
        return Asked(name, kind, name, "")
    return Asked(name, kind, words.title, " ".join(filter(None, (words.occasion, words.reason))))


def name_of(effect: Effect[Any]) -> str:
    """The name of an effect, as the protocol pages have it."""
    if isinstance(effect, Together):
        return f"{name_of(effect.first)} + {name_of(effect.second)}"
    return type(effect).__name__


def _in_words(effect: Effect[Any], reply: object) -> dict[str, Any]:
    """A reply, and how it looks: "good", "conflict", "lost", or plain."""
    if isinstance(effect, Together) and isinstance(reply, tuple):
        both = [_in_words(item, other) for item, other in zip((effect.first, effect.second), reply, strict=True)]
        looks = {item["look"] for item in both}
        return {"reply": "; ".join(item["reply"] for item in both), "look": "lost" if "lost" in looks else ""}
    if reply is UNKNOWN or reply is BEHIND:
        return {"reply": _NO_REPLY if reply is UNKNOWN else _BEHIND, "look": "lost"}
    if isinstance(reply, Conflict) or reply is OTHER:
        return {"reply": _OTHER if reply is OTHER else _CONFLICT, "look": "conflict"}
    if isinstance(reply, (Saved, Written)):
        return {"reply": "applied", "look": "good"}
    if isinstance(effect, Publish) and reply is PUBLISHED:
        queues = ", ".join(sorted({output.destination for output in effect.outputs}))
        return {"reply": f"{len(effect.outputs)} accepted by {queues}", "look": "good"}
    return {"reply": _read(effect, reply), "look": ""}


def _read(effect: Effect[Any], reply: object) -> str:
    if isinstance(reply, Loaded):
        ledger = read_entity(effect.entity, reply.document).ledger  # type: ignore[attr-defined]  # It loads an entity.
        if reply.document is None:
            return "there is no such document"
        return "a document without a ledger" if ledger is None else f"version {ledger.version}"
    if isinstance(effect, HasPages):
        return "it has pages" if reply else "it has no page"
    if isinstance(reply, FoundPages):
        return f"{len(reply.pages)} pages" if reply.pages else "no page"
    if isinstance(reply, FoundCompanions):
        return f"{len(reply.companions)} companions" if reply.companions else "no companion"
    return "done"
