"""The reset of a session token that no replica will ever reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from exactlyonce.effects.attempt import Again, Memory, Strategy
from exactlyonce.effects.effect import BEHIND, NoAnswer, Step
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.effects.library import FoundStaged, LoadStaged
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.steps.load import View, fresh_token, load, start_over, with_ledger
from exactlyonce.records.outbox import Sequences
from exactlyonce.values.envelope import EntityRef

_NOBODYS: Final = "exactlyonce/reset-token"
"""Key of no message: no entity has this source."""


@dataclass(frozen=True, slots=True)
class TokenReset:
    """The outcome of a token reset.

    Attributes:
        outcome: "reset"; "no token": nothing to exchange; or "not ahead": a replica has answered at the token.
        kept: ids of kept messages without a document. After a reset, they are gone for good.
    """

    outcome: Literal["reset", "no token", "not ahead"]
    memory: Memory
    kept: tuple[str, ...] = ()


def reset_token(entity: EntityRef, memory: Memory) -> Step[TokenReset | Again]:
    """Exchange the session token in an entity's ledger, if the account will never reach it. At most 7 effects.

    A token is ahead of the account after a failover that lost writes, or in a restored container. Every read with such a
    token is `BEHIND` for ever. The new token is that of a write made now. Everything surviving in the library's partition was
    written before, so a reader at the new token misses nothing; a reader without a token might. Lost pages stay lost:
    messages possibly marked there are refused, as described at `Ledger.lost`.

    Args:
        entity: an entity of the outbox protocol; other protocols have no token.

    Raises:
        StoredDataError: the document cannot be trusted; nothing was changed.
        ConfigurationError: the entity belongs to another protocol.
    """
    view = yield from load(entity, Outbox(), memory)
    if isinstance(view, Again):
        return view
    if view.document is None or view.ledger.token is None:
        return TokenReset("no token", view.memory)
    # Read at the ledger's session token. The reply is "behind" if no replica has reached it.
    reached = yield from LoadStaged(entity, (_NOBODYS,), view.ledger.token)
    if reached is not BEHIND:
        if isinstance(reached, NoAnswer):
            return Again(view.memory, "whether a replica has reached the token could not be read")
        return TokenReset("not ahead", view.memory)
    outcome = yield from _exchanged(entity, view)
    return outcome


def _exchanged(entity: EntityRef, view: View) -> Step[TokenReset | Again]:
    """Replace the ledger's token by the token of a write made now; delete the document written for it."""
    assert view.document is not None  # noqa: S101  # Without one there is no token.
    token = yield from fresh_token(entity, _NOBODYS)
    if token is None:
        return Again(view.memory, "whether anything was written is not known")
    kept = [(item.tx, item.id) for item in view.ledger.kept]
    staged: FoundStaged | NoAnswer = FoundStaged(())
    if kept:
        # Read the kept messages at the new token. Missing messages are lost, and reported.
        staged = yield from LoadStaged(entity, tuple(dict.fromkeys(tx for tx, _ in kept)), token)
    if isinstance(staged, NoAnswer):
        return Again(view.memory, "kept messages could not be read")
    ledger = replace(view.ledger, token=token, lost=view.ledger.complete)
    # Save the entity with the new token, if it is unchanged.
    saved = yield from SaveEntity(entity, with_ledger(view.document, ledger), view.etag)
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    there = {document.tx for document in staged.documents}
    after = replace(view.memory, entity_token=saved.token, library_token=token)
    return TokenReset("reset", after, tuple(name for tx, name in kept if tx not in there))


# Renumbering: a source that would give out numbers twice begins fresh channels.


@dataclass(frozen=True, slots=True)
class Renumbered:
    """A source will begin fresh channels.

    Attributes:
        forgotten: the former sequences; empty if no number was given out since the last renumbering.
    """

    forgotten: Sequences
    memory: Memory


def renumber(entity: EntityRef, strategy: Strategy, memory: Memory) -> Step[Renumbered | Again]:
    """Forget how far an entity has numbered its outputs. At most 4 effects.

    An entity restored from a backup gives out numbers that receivers have seen. Receivers refuse such messages as forks while
    they know the latest ids of the channel, and drop them afterwards. In a fresh channel every number is new.

    Owed outputs keep the numbers of their commit.

    Raises:
        StoredDataError: the document cannot be trusted; nothing was changed.
        ConfigurationError: the entity belongs to another protocol.
    """
    view = yield from load(entity, strategy, memory)
    if isinstance(view, Again):
        return view
    sequences = view.ledger.sequences
    if view.document is None or not sequences:
        return Renumbered((), view.memory)
    owing = (item.without_sequences(entity, view.ledger.to, sequences) for item in view.ledger.outbox)
    ledger = replace(view.ledger, sequences=(), outbox=tuple(owing))
    # Save the entity without its sequences, if it is unchanged. A commit in between has given out numbers.
    saved = yield from SaveEntity(entity, with_ledger(view.document, ledger), view.etag)
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    return Renumbered(sequences, replace(view.memory, entity_token=saved.token, saved=None))
