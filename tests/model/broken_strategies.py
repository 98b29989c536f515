"""The zoo: what can go wrong with the outbox if one guard is missing, and where it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from exactlyonce import Outbox
from exactlyonce.attempt import Again
from exactlyonce.effects.effect import Begin, NoAnswer, Step
from exactlyonce.effects.entity import Conflict, Saved, SaveEntity
from exactlyonce.effects.library import DeleteStaged, LoadStaged, Stage
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.protocols.outbox import owed
from tests.model.careless import (
    COMMIT,
    CONFLICT_TAKEN_FOR_A_COPY,
    TOKEN_NOT_CARRIED,
    UNKNOWN_SAVE_TAKEN_FOR_DONE,
    UNKNOWN_WRITE_TAKEN_FOR_DONE,
    WRITE_APART,
)
from tests.model.zoo import Broken
from verification.mutants.named import Mutation
from verification.twins.alterations import answers, asks, called, ending, first, followed
from verification.twins.modules import Patch, around
from verification.world.scenario import Budget, Scenario

ONE = Scenario("one message, two copies", (2,), Outbox(window=1), budget=Budget(crashes=1, unknown=1, repeated=1))
TWO = Scenario("two messages", (2, 1), Outbox(window=1), budget=Budget(crashes=1))
STAGED = Scenario("staged outputs", (2, 1), Outbox.transaction_id(), budget=Budget(crashes=1))

PUBLISH_OWED = owed.publish_owed
SAVED = Saved("0", None)


def unknown(scenario: Scenario, **more: int) -> Scenario:
    return replace(scenario, budget=replace(scenario.budget, **{"unknown": 1, **more}))


def taken_for(reply: Any, *kinds: Any) -> Callable[..., Any]:
    """Replies of these kinds are taken for another one."""
    return lambda given, *_: reply if isinstance(given, kinds) else given


def staging(token_of: Callable[[Any, str | None], str | NoAnswer | None]) -> Patch:
    """Outputs are staged as they are, and what the reply says of the token is up to `token_of(reply, token so far)`."""

    def wrapper(write_apart: Callable[..., Step[Any]]) -> Callable[..., Step[Any]]:
        def twin(entity: Any, view: Any, draft: Any) -> Step[Any]:
            token = yield from write_apart(entity, view, draft._replace(staged=()))
            if isinstance(token, Again) or not draft.staged:
                return token
            staged = yield from Stage(entity, draft.staged)
            given = token_of(staged, token)
            if isinstance(given, NoAnswer):
                return Again(view.memory, "whether the outputs were staged is not known")
            return given

        return twin

    return around(WRITE_APART, wrapper)


def staged_deleted_on(kind: Any) -> Patch:
    """What was staged for a commit is deleted after a reply of this kind to it."""

    def delete(reply: Any, _save: Any, _self: Any, work: Any, _view: Any, draft: Any) -> DeleteStaged | None:
        if not draft.staged or not isinstance(reply, kind):
            return None
        return DeleteStaged(work.entity, tuple(one.tx for one in draft.staged))

    return around(COMMIT, followed(SaveEntity, delete))


def remembered_all_the_same(reply: Any, _publish: Any, _self: Any, _work: Any, view: Any, draft: Any) -> Again | None:
    if reply is PUBLISHED:
        return None
    done = view.memory.published | {entry.tx for entry in draft.entries}
    return Again(replace(view.memory, published=done), "the outputs could not be published")


def taken_for_gone(reply: Any, _load: Any, _entity: Any, entries: Any, view: Any) -> Any:
    if not isinstance(reply, NoAnswer):
        return None
    owing = {entry.tx for entry in entries if entry.owed is not None}
    return replace(view.memory, published=view.memory.published | owing)


TWINS: tuple[Broken[Scenario], ...] = (
    Broken(
        "publish before commit",
        (around(COMMIT, first(lambda _self, _work, _view, draft: Publish(draft.outputs) if draft.outputs else None)),),
        ONE,
        "no_ghost_output",
    ),
    Broken("save without If-Match", (Mutation("outbox: save without If-Match"),), TWO, "serial_execution"),
    Broken(
        "upsert for an absent entity",
        (around(COMMIT, asks(SaveEntity, lambda save, *_: replace(save, etag=save.etag or "*"))),),
        TWO,
        "serial_execution",
    ),
    Broken("stale find accepted", (Mutation("outbox: stale find accepted"),), TWO, "at_most_one_state_change"),
    Broken(
        "token not carried",
        (TOKEN_NOT_CARRIED,),
        TWO,
        "at_most_one_state_change",
    ),
    Broken(
        "entry dropped without a record",
        (Mutation("outbox: entry dropped without a record"),),
        TWO,
        "at_most_one_state_change",
    ),
    Broken(
        "what leaving entries owe is not published",
        (Mutation("outbox: what leaving entries owe is not published"),),
        TWO,
        "nothing_lost",
    ),
    Broken("hits not published", (Mutation("outbox: hits not published"),), TWO, "nothing_lost"),
    Broken("records not looked at", (Mutation("outbox: records not looked at"),), TWO, "at_most_one_state_change"),
    Broken("unknown publish taken as done", (Mutation("outbox: unknown publish taken as done"),), ONE, "nothing_lost"),
    Broken(
        "unknown save taken as saved",
        (UNKNOWN_SAVE_TAKEN_FOR_DONE,),
        ONE,
        "no_ghost_output",
    ),
    Broken(
        "conflict taken as somebody else's success",
        (CONFLICT_TAKEN_FOR_A_COPY,),
        TWO,
        "nothing_lost",
    ),
    Broken(
        "unknown record taken as written",
        (UNKNOWN_WRITE_TAKEN_FOR_DONE,),
        unknown(TWO),
        "at_most_one_state_change",
    ),
    Broken(
        "unknown stage taken as staged",
        (staging(lambda staged, token: getattr(staged, "token", token)),),
        unknown(STAGED),
        "nothing_lost",
    ),
    Broken(
        "staged after the commit",
        (
            around(WRITE_APART, called(lambda entity, view, draft: (entity, view, draft._replace(staged=())))),
            around(
                COMMIT,
                followed(
                    SaveEntity,
                    lambda reply, save, _self, _work, _view, draft: (
                        Stage(save.entity, draft.staged) if draft.staged and isinstance(reply, Saved) else None
                    ),
                ),
            ),
        ),
        STAGED,
        "nothing_lost",
    ),
    Broken(
        "staged deleted on conflict",
        (staged_deleted_on(Conflict),),
        replace(STAGED, copies=(1, 1), budget=Budget(crashes=1, repeated=1)),
        "nothing_lost",
    ),
    Broken(
        "staged deleted on unknown outcome",
        (staged_deleted_on(NoAnswer),),
        unknown(replace(STAGED, copies=(1, 1))),
        "nothing_lost",
    ),
    Broken(
        "token of staging not carried",
        (staging(lambda staged, token: staged if isinstance(staged, NoAnswer) else token),),
        STAGED,
        "nothing_lost",
    ),
    Broken(
        "one transaction id for a group",
        (
            around(
                Outbox.attempt,
                answers(
                    Begin,
                    lambda begun, *_: replace(begun, transactions=begun.transactions[:1] * len(begun.transactions)),
                ),
            ),
        ),
        Scenario("a group, staged", (1, 1, 1), Outbox(window=2, inline_limit=0), group=2, budget=Budget(crashes=1)),
        "nothing_lost",
    ),
    Broken(
        "remembered as published before publishing",
        (around(COMMIT, ending(Publish, remembered_all_the_same)),),
        unknown(ONE),
        "nothing_lost",
    ),
    Broken(
        "behind taken as gone",
        (around(PUBLISH_OWED, ending(LoadStaged, taken_for_gone)),),
        replace(STAGED, budget=Budget(crashes=1, stale=1)),
        "nothing_lost",
    ),
)
