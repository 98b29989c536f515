"""The runner: every failure of a handler is an error that names its message, and never escapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import BaseModel

from exactlyonce import (
    Context,
    DamagedDocument,
    Entity,
    EntityKey,
    Envelope,
    ExactlyOnceError,
    HandlerError,
    HandlerFailed,
    IdentityChanged,
    InvalidMessage,
    NoStateReturned,
    Outbox,
    UnknownDestination,
    message,
)
from exactlyonce.attempt import Before, Handled
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes, Retention

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


def runner_of(handler: Callable[..., Any], *, state: type = Thing, path: str = "/owner") -> Runner:
    entity: Entity[Any] = Entity(
        "thing", state=state, container="things", partition_key=path, strategy=Outbox(), adopts=True
    )
    entity.handles(Said, key=lambda said: EntityKey("t-1", "me"))(handler)
    return Runner(entity, entity.ref(EntityKey("t-1", "me")), Routes({"there": 1_000}))


def handle(
    handler: Callable[..., Any], *, body: Any = None, data: Any = None, state: type = Thing, path: str = "/owner"
) -> Handled:
    runner = runner_of(handler, state=state, path=path)
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


def test_no_result_is_an_error() -> None:
    with pytest.raises(NoStateReturned, match=r"web/m-1.*context\.delete"):
        handle(lambda state, said, context: None)


@pytest.mark.parametrize(
    "result", [Thing(number=float("nan")), Thing(said=object()), Thing(said="\ud800"), 5, "text", [Thing()], object()]
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_result_that_cannot_be_a_document_fails_its_own_message(result: Any) -> None:
    with pytest.raises(HandlerFailed, match="web/m-1 on entity thing/me/t-1"):
        handle(lambda state, said, context: result)


def test_a_result_that_leaves_no_room_for_the_key_fails_its_own_message() -> None:
    with pytest.raises(HandlerFailed, match="web/m-1"):
        handle(lambda state, said, context: Game(game=None), state=Game, path="/game/id")


def test_the_error_of_a_changed_key_names_the_message() -> None:
    with pytest.raises(IdentityChanged, match=r"web/m-1 on entity thing/me/t-1: .*/game/id"):
        handle(lambda state, said, context: Game(game={"id": "other"}), state=Game, path="/game/id")


def test_a_document_that_does_not_fit_the_model_is_damaged() -> None:
    with pytest.raises(DamagedDocument, match="number"):
        handle(lambda state, said, context: state, body={"number": "many"})


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


def test_a_result_that_could_not_be_read_again_is_refused() -> None:
    class Counter(BaseModel):
        count: int = 0

    entity = Entity("counter", state=Counter, container="counters", strategy=Outbox())

    @entity.handles(Said, key=lambda said: "c")
    def count(state: Counter, said: Said, context: Context) -> Counter:
        return state.model_copy(update={"count": "many"})  # Copies are not validated by pydantic.

    envelope = Envelope("web", "m-1", "things.said", Json.of({}))
    with pytest.raises(HandlerFailed, match="web/m-1 on entity counter/c: The handler's result"):
        Runner(entity, entity.ref("c"), Routes())(Before(None, AT, "tx"), envelope)


def test_the_work_of_an_entity_has_the_lifetimes_of_the_application() -> None:
    lifetimes = Lifetimes(Retention(timedelta(days=30)), timedelta(days=1))
    runner = runner_of(lambda state, *_: state)
    work = runner.work(lifetimes, AT, frozenset({"thing"}))
    assert (work.entity, work.messages, work.handle, work.release) == (runner.entity, (), runner, runner.release)
    assert work.retention == lifetimes.retention.kept(AT)
    assert (work.send_limit, work.page_lifetime) == (lifetimes.send_limit(AT), lifetimes.page_lifetime(AT))
    assert work.senders == {"thing"}
