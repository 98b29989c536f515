"""The runner: every failure of a handler is an error that names its message, and messages of unknown age are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import BaseModel

from exactlyonce import Context, Entity, EntityKey, Envelope, ExactlyOnceError, HandlerError, Outbox, message
from exactlyonce.effects.attempt import Before, Handled
from exactlyonce.errors import (
    DamagedDocument,
    HandlerFailed,
    IdentityChanged,
    InvalidMessage,
    MessageFromTheFuture,
    NoStateReturned,
    TooOldToJudge,
    UndatedMessage,
    UnknownDestination,
)
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import AgeCheck, Runner
from exactlyonce.values.envelope import EntityRef, milliseconds
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from tests.samples import SENT, deposit

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)


@message("things.said")
@dataclass
class Said:
    what: Any = None


@dataclass
class Thing:
    said: Any = None
    number: float = 0
    seen: list[int] = field(default_factory=list)


class Game(BaseModel):
    game: dict[str, str] | None = None


def handle(
    handler: Callable[..., Any], *, body: Any = None, data: Any = None, state: type = Thing, path: str = "/owner"
) -> Handled:
    entity: Entity[Any] = Entity(
        "thing", state=state, container="things", partition_key=path, strategy=Outbox(), adopts=True
    )
    entity.handles(Said, key=lambda said: EntityKey("t-1", "me"))(handler)
    runner = Runner(entity, entity.ref(EntityKey("t-1", "me")), Routes({"there": 1_000}))
    envelope = Envelope("web", "m-1", "things.said", Json.of({} if data is None else data))
    return runner(Before(None if body is None else Json.of(body), AT, "tx"), envelope)


def test_a_handler_gets_state_message_and_context_and_its_result_is_the_new_body() -> None:
    def handler(state: Thing, said: Said, context: Context) -> Thing:
        context.send("there", Said("on"))
        return Thing(said.what, state.number + 1)

    handled = handle(handler, body={"id": "t-1", "owner": "me", "number": 4, "more": 1}, data={"what": [1]})
    assert handled.body.value == {"id": "t-1", "owner": "me", "number": 5, "more": 1, "said": [1], "seen": []}
    assert [output.destination for output in handled.outputs] == ["there"]
    assert handled.deleted is False


def test_deleting_leaves_id_and_key_whatever_is_returned() -> None:
    for result in (None, Thing(), "anything"):

        def handler(state: Thing, said: Said, context: Context, result: Any = result) -> Any:
            context.delete()
            context.send("there", Said())
            return result

        handled = handle(handler, body={"id": "t-1", "owner": "me", "number": 4})
        assert (handled.body.value, handled.deleted) == ({"id": "t-1", "owner": "me"}, True)
        assert len(handled.outputs) == 1


def test_an_exception_of_a_handler_is_chained_to_an_error_with_message_and_entity() -> None:
    def handler(state: Thing, said: Said, context: Context) -> Thing:
        raise KeyError("inner")

    with pytest.raises(HandlerFailed, match=r"web/m-1 on entity thing/me/t-1.*KeyError") as caught:
        handle(handler)
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_of_the_library_keeps_its_class_and_gets_the_names() -> None:
    def handler(state: Thing, said: Said, context: Context) -> Thing:
        context.send("nowhere", Said())
        return state

    with pytest.raises(UnknownDestination, match=r"web/m-1 on entity thing/me/t-1: .*'nowhere'"):
        handle(handler)


def test_a_users_subclass_of_an_error_may_take_any_arguments() -> None:
    class OutOfStock(HandlerError):
        def __init__(self, item: str, wanted: int) -> None:
            super().__init__(f"{wanted} of {item}")

    def handler(state: Thing, said: Said, context: Context) -> Thing:
        raise OutOfStock("bolts", 3)

    with pytest.raises(HandlerError, match="web/m-1") as caught:
        handle(handler)
    assert isinstance(caught.value.__cause__, OutOfStock)


@pytest.mark.parametrize(
    "result", [Thing(number=float("nan")), Thing(said=object()), Thing(said="\ud800"), 5, "text", [Thing()], object()]
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_result_that_cannot_be_a_document_fails_its_own_message(result: Any) -> None:
    with pytest.raises(HandlerFailed, match="web/m-1 on entity thing/me/t-1"):
        handle(lambda state, said, context: result)


@pytest.mark.parametrize(
    ("result", "given", "error", "says"),
    [
        (None, {}, NoStateReturned, r"context\.delete"),
        (Game(game=None), {"state": Game, "path": "/game/id"}, HandlerFailed, ""),
        (Game(game={"id": "other"}), {"state": Game, "path": "/game/id"}, IdentityChanged, ".*/game/id"),
        (Thing(), {"body": {"number": "many"}}, DamagedDocument, "number"),
    ],
    ids=["no result", "no room for the key", "another key", "a document that does not fit"],
)
def test_a_result_or_a_document_that_cannot_be_fails_its_own_message(
    result: Any, given: dict[str, Any], error: type[ExactlyOnceError], says: str
) -> None:
    with pytest.raises(error, match=rf"web/m-1 on entity thing/me/t-1: .*{says}"):
        handle(lambda state, said, context: result, **given)


def test_data_too_deep_to_read_fails_its_own_message() -> None:
    deep = "[" * 200_000 + "]" * 200_000
    entity: Entity[Any] = Entity("thing", state=Thing, container="things", strategy=Outbox())
    entity.handles(Said, key=lambda said: "t-1")(lambda state, said, context: state)
    with pytest.raises(InvalidMessage, match="web/m-1"):
        entity.read(Envelope("web", "m-1", "things.said", Json(f'{{"what":{deep}}}')))


def test_a_message_does_not_see_a_handlers_changes_to_anothers_object() -> None:
    def handler(state: Thing, said: Said, context: Context) -> Thing:
        state.seen.append(1)
        raise RuntimeError

    body = {"id": "t-1", "owner": "me", "seen": [7]}
    for _ in range(2):
        with pytest.raises(ExactlyOnceError):
            handle(handler, body=body)
    assert handle(lambda state, said, context: state, body=body).body.value["seen"] == [7]


ENTITY = EntityRef("account", ("a",), "a")
DONE = Handled(Json("{}"))
OLDEST = Lifetimes().oldest_judged(SENT)
MILLISECOND = timedelta(milliseconds=1)


def checked(envelope: Envelope, *, forgets: bool = True, sent: bool = False) -> Handled:
    """The result of a handler that does nothing, for a message that came at the time of the samples."""
    before = Before(None, SENT, "tx-1", sent=() if sent else None)
    return AgeCheck(lambda *_: DONE, ENTITY, Lifetimes(), lambda _: forgets)(before, envelope)


def stable(age: timedelta) -> Envelope:
    """A message whose copies all carry the time of this age, and that says the present."""
    return deposit("m-1").with_stable_time(milliseconds(SENT - age))


def test_a_message_that_says_no_stable_time_is_judged_by_its_own() -> None:
    assert checked(replace(deposit("m-1"), time=SENT - OLDEST)) == DONE
    with pytest.raises(TooOldToJudge, match="web/m-1 on entity account/a"):
        checked(replace(deposit("m-1"), time=SENT - OLDEST - MILLISECOND))
    with pytest.raises(UndatedMessage):
        checked(replace(deposit("m-1"), time=None))


def test_the_time_that_all_copies_share_is_the_one_that_counts() -> None:
    assert checked(replace(stable(timedelta(0)), time=SENT - 2 * OLDEST)) == DONE
    assert checked(replace(stable(OLDEST), time=None)) == DONE
    with pytest.raises(TooOldToJudge):
        checked(stable(OLDEST + MILLISECOND))
    with pytest.raises(MessageFromTheFuture):
        checked(stable(-timedelta(days=1) - MILLISECOND))


def test_an_id_may_carry_that_time() -> None:
    named = replace(deposit("m-1"), id=f"{milliseconds(SENT - 2 * OLDEST):012x}-7000-8000-000000000000")
    id = f"{named.id[:8]}-{named.id[8:]}"
    with pytest.raises(TooOldToJudge):
        checked(replace(named, id=id))
    assert checked(replace(named, id=id).with_stable_time()) == DONE, "its sender promises another time"


def test_neither_a_message_that_is_never_forgotten_nor_one_that_is_handled_again_is_judged() -> None:
    assert checked(stable(2 * OLDEST), forgets=False) == DONE
    assert checked(stable(2 * OLDEST), sent=True) == DONE
