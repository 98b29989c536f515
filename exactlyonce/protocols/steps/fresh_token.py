"""A session token of the present: a view at that token shows everything that was written before."""

from __future__ import annotations

from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.library import DeleteStaged, Stage
from exactlyonce.records.library import StagedOutputs
from exactlyonce.values.identity import EntityRef


def fresh_token(entity: EntityRef, purpose: str) -> Step[str | None]:
    """The session token of a write made now in the library's partition of an entity; None if it is not known.

    At most 3 effects.

    Args:
        entity: whose partition it is.
        purpose: key of no message, for the document that is written.
    """
    # Begin. The next document needs an id.
    begun = yield from Begin(more=1)
    (tx,) = begun.given
    # Write a document for its session token. A view at that token shows everything that was written before.
    staged = yield from Stage(entity, (StagedOutputs(entity.key, purpose, tx, begun.at, ()),))
    if isinstance(staged, NoAnswer) or staged.token is None:
        return None
    # Delete the document. Only its token was wanted; clean-up takes it if this fails.
    yield from DeleteStaged(entity, (tx,))
    return staged.token
