"""The words of a story: what an instance does, as the protocols' pages say it."""

from __future__ import annotations

from typing import Any, Final

from exactlyonce.effects.blobs import WriteOnce
from exactlyonce.effects.companions import LoadCompanions, SaveBatch
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.effects.library import LoadStaged, Stage
from exactlyonce.effects.pages import FindPages, HasPages, WritePage
from exactlyonce.effects.publish import Publish
from exactlyonce.handling.messages import model_named
from exactlyonce.records.calls import CALL_TYPE
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope

WORDS: Final[dict[type[Effect[Any]], str]] = {
    LoadEntity: "loads the entity",
    SaveEntity: "saves the entity if it is unchanged",
    SaveBatch: "saves the entity and its records if the entity is unchanged",
    LoadCompanions: "looks for records",
    HasPages: "asks whether the entity has pages",
    FindPages: "looks for pages",
    WritePage: "writes the page of what leaves the ledger",
    Stage: "stages the messages to keep",
    LoadStaged: "reads the kept messages",
    WriteOnce: "writes blobs",
}
"""Other effects are called by the name of their class."""


def words_of(effect: Effect[Any]) -> str:
    """What an instance does that asks for an effect."""
    if isinstance(effect, Publish):
        return "publishes " + ", ".join(f"{_named(output)} to {output.destination}" for output in effect.outputs)
    return WORDS.get(type(effect), f"asks for {type(effect).__name__}")


def _named(output: Output) -> str:
    envelope = Envelope.read(output.envelope.text)
    if envelope.type == CALL_TYPE:
        return "a call"
    model = model_named(envelope.type)
    return envelope.type if model is None else model.__name__
