"""Whatever code of the application raises, wherever it runs: it fails its message alone, with an error of the library."""

from __future__ import annotations

import asyncio
import builtins
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any, Final

import azure.functions as func
import pytest
from azure.functions.queue import QueueMessage
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, field_serializer, field_validator, model_validator

from exactlyonce import (
    Context,
    Destination,
    Entity,
    EntityKey,
    Envelope,
    ExactlyOnceError,
    Outbox,
    VersionStream,
    message,
)
from exactlyonce.errors import HandlerFailed
from exactlyonce.hosting.deliveries.triggers import PlainJson
from exactlyonce.testing.in_memory import Host
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.raised import shown

NOW: Final = datetime(2026, 1, 1, tzinfo=timezone.utc)
SECRET: Final = "s" + "ecret"  # Not as it stands in a line of the source.
ADAPTED: Final = {"id of an adapter", "time of an adapter", "adapter"}
_GROUP: Final = getattr(builtins, "BaseExceptionGroup", None)


class PanicException(BaseException):
    """As extensions in Rust raise it."""


class Silent(ValueError):
    """An exception without a text."""

    def __str__(self) -> str:
        raise SystemExit(SECRET)

    __repr__ = __str__


class Hidden(Exception):
    """An exception whose attributes raise."""

    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise Silent

    __context__ = __traceback__ = __notes__ = __cause__

    def __bool__(self) -> bool:
        raise Silent

    def __reduce__(self) -> Any:
        raise Silent


def circle() -> BaseException:
    first, second = KeyError(SECRET), ValueError(SECRET)
    first.__cause__, second.__cause__ = second, first
    return first


def too_deep() -> BaseException:
    try:
        return too_deep()
    except RecursionError as error:
        return error


SINGLE: Final[dict[str, Callable[[], BaseException]]] = {
    kind.__name__: (lambda kind=kind: kind(SECRET))
    for kind in (
        MemoryError, RecursionError, StopIteration, StopAsyncIteration, TimeoutError, OSError, AssertionError, KeyError,
        SystemExit, GeneratorExit, asyncio.CancelledError, PanicException, Silent, Hidden, TypeError, UnicodeError,
    )
} | {"circle": circle, "too deep": too_deep}  # fmt: skip
"""Makers, since an exception that was raised once keeps its trace and its context."""


def raised() -> st.SearchStrategy[Callable[[], BaseException]]:
    """Makers of exceptions, and of groups of them."""
    singles = st.sampled_from(sorted(SINGLE)).map(lambda name: SINGLE[name])
    if _GROUP is None:
        return singles

    def group(inner: list[Callable[[], BaseException]]) -> Callable[[], BaseException]:
        return lambda: _GROUP(SECRET, [item() for item in inner])

    return st.recursive(singles, lambda inner: st.lists(inner, min_size=1, max_size=3).map(group), max_leaves=4)


AT_FAULT: dict[str, Callable[[], BaseException]] = {}
"""By the name of a place, what it raises."""


def run(place: object) -> None:
    """Code of the application's at a place: raises if the place is at fault."""
    if isinstance(place, str) and place in AT_FAULT:
        error = AT_FAULT[place]()
        raise error


@message("raised.put")
class Put(BaseModel):
    key: str = "k"
    place: str = ""

    @model_validator(mode="before")
    @classmethod
    def _before(cls, content: Any) -> Any:
        run("validator before" if content.get("place") == "validator before" else None)
        return content

    @field_validator("place")
    @classmethod
    def _after(cls, place: str) -> str:
        run("validator after" if place == "validator after" else None)
        return place


@message("raised.sent")
class Sent(BaseModel):
    place: str

    @field_serializer("place")
    def _written(self, place: str) -> str:
        run("serializer of a message" if place == "serializer of a message" else None)
        return place


class State(BaseModel):
    id: str = ""
    puts: int = 0
    note: str = ""

    @field_validator("id")
    @classmethod
    def _starts(cls, id: str) -> str:
        run("start of a state" if id == "fresh" else None)
        return id

    @field_validator("note")
    @classmethod
    def _read(cls, note: str) -> str:
        run("validator of a state" if note == "validator of a state" else None)
        return note

    @field_serializer("note")
    def _noted(self, note: str) -> str:
        run("serializer of a state" if note == "serializer of a state" else None)
        return note


def _key(put: Put) -> EntityKey | str:
    run("key" if put.place == "key" else None)
    return put.key


def _entities() -> Iterator[Entity[State]]:
    plain = Entity("plain", state=State, container="plain", strategy=Outbox())

    @plain.handles(Put, key=_key)
    def put(state: State, given: Put, context: Context) -> State:
        context.send("out", Sent(place=given.place))
        run("handler" if given.place == "handler" else None)
        noted = given.place in ("validator of a state", "serializer of a state")
        return State.model_construct(id=state.id, puts=state.puts + 1, note=given.place if noted else "")

    yield plain
    sourced = Entity("sourced", state=State, container="sourced", strategy=VersionStream())

    @sourced.handles(Put, key=_key)
    def putting(state: State, given: Put, context: Context) -> list[Put]:
        run("handler" if given.place == "handler" else None)
        return [given]

    @sourced.applies(Put)
    def apply(state: State, event: Put) -> State:
        run("applier" if event.place == "applier" else None)
        return state.model_copy(update={"puts": state.puts + 1})

    yield sourced


PLAIN, SOURCED = _entities()
OF_PLAIN: Final = (
    "handler", "key", "validator before", "validator after", "serializer of a message", "validator of a state",
    "serializer of a state", "start of a state", *sorted(ADAPTED),
)  # fmt: skip
OF_SOURCED: Final = ("handler", "key", "validator before", "validator after", "applier")


def _id(content: dict[str, Any]) -> str:
    run("id of an adapter" if content["place"] == "id of an adapter" else None)
    return str(content["id"])


def _time(content: dict[str, Any]) -> datetime:
    run("time of an adapter" if content["place"] == "time of an adapter" else None)
    return NOW


def _adapter(body: bytes) -> Envelope:
    run("adapter" if b'"place": "adapter"' in body else None)
    return PlainJson(Put, "field", _id, _time)(body)


def host_of(entity: Entity[Any]) -> Host:
    return Host((entity,), (Destination("out"),), {}, {}, NOW, blobs=False)


def delivery(id: str, place: str = "", *, adapted: bool) -> QueueMessage:
    key = "fresh" if place == "start of a state" else "k"
    content = {"key": key, "place": place}
    if adapted:
        body = json.dumps({"id": id, **content})
    else:
        body = Envelope("field", id, "raised.put", Json.of(content), NOW).to_json().text
    return QueueMessage(id=id, body=body.encode(), dequeue_count=1)  # type: ignore[no-untyped-call]


@pytest.fixture(autouse=True)
def _silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # A handler of logs writes what it cannot format to standard error: here that is a failure.
    monkeypatch.setattr(logging.Handler, "handleError", lambda *_: pytest.fail("a log cannot be written"))
    yield
    AT_FAULT.clear()


@given(entity=st.sampled_from((PLAIN, SOURCED)), data=st.data(), make=raised(), together=st.booleans())
def test_whatever_is_raised_fails_its_message_alone(
    entity: Entity[Any], data: st.DataObject, make: Callable[[], BaseException], together: bool
) -> None:
    place = data.draw(st.sampled_from(OF_PLAIN if entity is PLAIN else OF_SOURCED))
    adapted = place in ADAPTED
    AT_FAULT.clear()
    AT_FAULT[place] = make
    host = host_of(entity)
    adapter = _adapter if adapted else None

    async def take(*ids: str) -> list[Any]:
        places = {"m-2": place}
        taken = [delivery(id, places.get(id, ""), adapted=adapted) for id in ids]
        done = (host.once.process(item, entity, adapter=adapter) for item in taken)
        return list(await asyncio.gather(*done, return_exceptions=True))

    groups = [("m-1", "m-2", "m-3")] if together else [("m-1",), ("m-2",), ("m-3",)]
    first, error, third = [item for group in groups for item in host.loop.run(take(*group))]
    assert (first, third) == (None, None)
    assert isinstance(error, ExactlyOnceError)
    assert host.loop.run(take("m-4", "m-1")) == [None, None]  # A new one, and a duplicate.
    state = host.loop.run(host.once.read(entity, "k"))
    assert state is not None
    assert state.puts == 3
    if entity is PLAIN:
        assert len(host.sent["out"]) == 3
    for text in (False, True):
        assert type(error).__name__ in "".join(traceback.format_exception(shown(error, text=text)))
    told = "".join(traceback.format_exception(shown(error)))
    assert SECRET not in told
    # There pydantic's own error is only that the state would not come back; and it drops a RecursionError in a serializer.
    if place != "validator of a state" and "PydanticSerializationError" not in told:
        assert "test_whatever_is_raised.py" in told


@given(make=raised(), place=st.sampled_from(("handler", "key", "maker", "serializer of a message")))
@example(make=SINGLE["Silent"], place="maker")
def test_whatever_is_raised_behind_http_is_a_problem_and_shown(make: Callable[[], BaseException], place: str) -> None:
    AT_FAULT.clear()
    AT_FAULT[place] = make
    host = host_of(PLAIN)
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign, assignment]
    log = logging.getLogger("exactlyonce.hosting.requests.door")

    def maker() -> Put:
        run(place if place == "maker" else None)
        return Put(place=place)

    request = func.HttpRequest("POST", "http://localhost/api", headers={"Idempotency-Key": "k-1"}, body=b"{}")
    log.addHandler(handler)
    try:
        response = host.loop.run(host.once.answer(request, PLAIN, maker))
    finally:
        log.removeHandler(handler)
    # A body that the maker cannot read is the client's mistake; it raises one of these, as code with a mistake may.
    is_clients = place == "maker" and isinstance(
        make(), (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
    )
    assert (response.status_code, response.mimetype) == (400 if is_clients else 500, "application/problem+json")
    (record,) = records
    told = logging.Formatter().format(record)
    assert "test_whatever_is_raised.py" in told or "PydanticSerializationError" in told
    AT_FAULT.clear()
    assert host.loop.run(host.once.answer(request, PLAIN, maker)).status_code == 204  # The key may be used again.


class HandlersClass:
    def __call__(self, state: State, given: Put, context: Context) -> Any:
        async def later() -> State:
            return state

        return later()


def _generator(state: State) -> Iterator[State]:
    yield state


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (HandlersClass(), "returned a coroutine"),
        (lambda state, given, context: _generator(state), "returned a generator"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_handler_that_hides_that_it_is_async_fails_with_that_reason(handler: Any, says: str) -> None:
    entity = Entity("hiding", state=State, container="hiding", strategy=Outbox())
    entity.handles(Put, key=_key)(handler)
    host = host_of(entity)
    with pytest.raises(HandlerFailed, match=says):
        host.loop.run(host.once.process(delivery("m-1", adapted=False), entity))


class Evil:
    """A value whose every attribute raises, its class included."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(SECRET)


class Unequal:
    """A value that compares as arrays do."""

    def __eq__(self, other: object) -> Any:
        raise ValueError(SECRET)

    __hash__ = None  # type: ignore[assignment]


class Bare(Exception):
    """An exception whose every attribute raises, its class included."""

    def __getattribute__(self, name: str) -> Any:
        raise KeyError(SECRET)


def _bare(*_: Any) -> Any:
    raise Bare


def _hidden(*_: Any) -> Any:
    raise Hidden


@pytest.mark.parametrize(
    "place", ["handler", "events", "event", "applier", "key", "id", "partition", "entity_by", "session_by"]
)
@pytest.mark.parametrize(
    "give", [lambda *_: Evil(), lambda *_: Unequal(), _bare, _hidden], ids=["evil", "unequal", "bare", "hidden"]
)
def test_a_value_whose_own_code_raises_fails_its_message_alone(place: str, give: Callable[..., Any]) -> None:
    keys: dict[str, Callable[..., Any]] = {
        "key": give,
        "id": lambda put: EntityKey(give(), "p"),
        "partition": lambda put: EntityKey("k", give()),
    }
    sourced = place in ("events", "event", "applier")
    strategy = VersionStream() if sourced else Outbox()
    entity = Entity("evil", state=State, container="evil", strategy=strategy)
    if sourced:
        entity.applies(Put)(give if place == "applier" else lambda state, event: state)
    out = (
        Destination("out", to="other", entity_by=give) if place == "entity_by" else Destination("out", session_by=give)
    )
    results = {"handler": give, "events": give, "event": lambda: [give()]}

    def handler(state: State, put: Put, context: Context) -> Any:
        if put.place and place in ("entity_by", "session_by"):
            context.send(out, put)
        return results[place]() if put.place and place in results else [put] if sourced else state

    entity.handles(Put, key=lambda put: keys[place](put) if put.place and place in keys else put.key)(handler)
    host = Host((entity,), (out,), {}, {}, NOW, blobs=False)

    async def take() -> list[Any]:
        taken = [delivery("m-1", adapted=False), delivery("m-2", "evil", adapted=False), delivery("m-3", adapted=False)]
        taken = taken if place != "applier" else taken[1:2]
        return list(await asyncio.gather(*(host.once.process(item, entity) for item in taken), return_exceptions=True))

    errors = [error for error in host.loop.run(take()) if error is not None]
    (error,) = errors
    assert type(error) is HandlerFailed
    assert SECRET not in "".join(traceback.format_exception(shown(error)))
    if place in ("entity_by", "session_by", "key", "id", "partition"):
        assert "key= " in str(error) or f"{place}= of destination 'out'" in str(error)


def test_an_interrupt_from_the_keyboard_passes() -> None:
    AT_FAULT["handler"] = KeyboardInterrupt
    host = host_of(PLAIN)
    with pytest.raises(KeyboardInterrupt):
        host.loop.run(host.once.process(delivery("m-1", "handler", adapted=False), PLAIN))
    host.loop.run_for(0.0)  # The other tasks end too: one that never began would be a warning in a later test.
