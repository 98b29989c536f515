"""Mistakes of an outbox that show in many worlds: several zoos have a twin that makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from exactlyonce import Outbox
from exactlyonce.attempt import Finished
from exactlyonce.effects.effect import NoAnswer
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish, Saved, SaveEntity
from exactlyonce.protocols.outbox import protocol as owed
from verification.twins.alterations import answers, ending, unasked
from verification.twins.modules import Patch, around

COMMIT = Outbox._commit
SAVED = Saved("0", None)


def _finished_by_a_conflict(reply: Any, _save: Any, _self: Any, _work: Any, view: Any, *_: Any) -> Finished | None:
    return Finished(view.memory) if isinstance(reply, Conflict) else None


def taken_for(reply: Any, *kinds: Any) -> Callable[..., Any]:
    """Replies of these kinds are taken for another one."""
    return lambda given, *_: reply if isinstance(given, kinds) else given


def saved_all_the_same(reply: Any, *_: Any) -> Any:
    return SAVED if isinstance(reply, NoAnswer) else reply


CONFLICT_TAKEN_FOR_A_COPY: Final[Patch] = around(COMMIT, ending(SaveEntity, _finished_by_a_conflict))
UNKNOWN_SAVE_TAKEN_FOR_DONE: Final[Patch] = around(COMMIT, answers(SaveEntity, saved_all_the_same))
OWED_NOT_PUBLISHED: Final[Patch] = around(owed.publish_owed, unasked(Publish, PUBLISHED))
