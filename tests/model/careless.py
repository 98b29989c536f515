"""Mistakes of an outbox that show with numbers and without: several zoos have a twin that makes them."""

from __future__ import annotations

from typing import Any, Final

from exactlyonce import Outbox
from exactlyonce.attempt import Finished
from exactlyonce.effects.effect import NoAnswer
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import WriteRecords, Written
from exactlyonce.protocols.outbox import apart
from exactlyonce.protocols.outbox import draft as drafting
from verification.twins.alterations import answers, called, ending
from verification.twins.modules import Patch, around

COMMIT, WRITE_APART = Outbox._commit, apart.write_apart


def _finished_by_a_conflict(reply: Any, _save: Any, _self: Any, _work: Any, view: Any, _draft: Any) -> Finished | None:
    return Finished(view.memory) if isinstance(reply, Conflict) else None


def _written_all_the_same(reply: Any, _write: Any, _entity: Any, view: Any, _draft: Any) -> Any:
    return Written(view.ledger.token) if isinstance(reply, NoAnswer) else reply


def _saved_all_the_same(reply: Any, *_: Any) -> Any:
    return Saved("0", None) if isinstance(reply, NoAnswer) else reply


def _with_the_token_of_before(limits: Any, view: Any, draft: Any, _token: Any) -> tuple[Any, ...]:
    return (limits, view, draft, view.ledger.token)


CONFLICT_TAKEN_FOR_A_COPY: Final[Patch] = around(COMMIT, ending(SaveEntity, _finished_by_a_conflict))
UNKNOWN_WRITE_TAKEN_FOR_DONE: Final[Patch] = around(WRITE_APART, answers(WriteRecords, _written_all_the_same))
UNKNOWN_SAVE_TAKEN_FOR_DONE: Final[Patch] = around(COMMIT, answers(SaveEntity, _saved_all_the_same))
TOKEN_NOT_CARRIED: Final[Patch] = around(drafting.next_ledger, called(_with_the_token_of_before))
