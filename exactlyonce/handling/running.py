"""Handling one message: decode, run the handler on a state of its own, encode."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from exactlyonce.envelope import Envelope
from exactlyonce.errors import ExactlyOnceError, HandlerError, HandlerFailed, NoStateReturned
from exactlyonce.frozen_json import Json
from exactlyonce.handling.attempts import Handled, key_of
from exactlyonce.handling.context import Context
from exactlyonce.handling.entities import Entity, Handler
from exactlyonce.handling.routes import Routes
from exactlyonce.identity import EntityRef, Origin


@dataclass(frozen=True)
class Runner:
    """Runs the handlers of an entity type for one entity; a `Handle` in the sense of `attempts`.

    The state is built from the document anew for each message, so no message sees what a handler did to another's copy,
    and each sees what it would have seen alone.
    """

    type: Entity[Any]
    entity: EntityRef
    routes: Routes

    def __call__(self, body: Json | None, envelope: Envelope, at: datetime) -> Handled:
        """Handle one message. Raises `MessageError`, `HandlerError` or `StoredDataError`, each naming message and entity."""
        handling, message = self.type.read(envelope)
        context = Context(Origin(self.entity, key_of(envelope)), at, self.routes)
        try:
            return self._handle(handling.handler, message, body, context)
        except ExactlyOnceError as error:
            told = f"Message {key_of(envelope)} on entity {self.entity}: {error}"
            raise _kind_of(error)(told) from error.__cause__ or error

    def _handle(self, handler: Handler[Any, Any], message: Any, body: Json | None, context: Context) -> Handled:
        shape = self.type.shape
        state = shape.start(self.entity) if body is None else shape.read(self.entity, body)
        try:
            result = handler(state, message, context)
        except ExactlyOnceError:
            raise
        except Exception as error:
            raise HandlerFailed(
                f"The handler raised {type(error).__name__}. Nothing was changed and nothing was sent."
            ) from error
        if context.deleted:
            return Handled(shape.tombstone(self.entity), context.outputs, deleted=True)
        if result is None:
            raise NoStateReturned(
                "The handler returned None. Return the new state, or call context.delete() to delete the entity."
            )
        try:
            return Handled(shape.write(self.entity, result, body), context.outputs)
        except HandlerError:
            raise
        except Exception as error:
            raise HandlerFailed(
                f"What the handler returned, a {type(result).__name__}, cannot be stored ({type(error).__name__}). Return an "
                "instance of the state model whose values fit it and are what JSON has."
            ) from error


def _kind_of(error: ExactlyOnceError) -> type[ExactlyOnceError]:
    """The library's own class of an error: one that a user derived may not take just a text."""
    kind: type[ExactlyOnceError] = next(
        kind for kind in type(error).__mro__ if kind.__module__ == ExactlyOnceError.__module__
    )
    return kind
