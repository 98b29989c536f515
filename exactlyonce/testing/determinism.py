"""Finds handlers that are not deterministic, on which a version stream and every repeated attempt rely."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass
from datetime import datetime
from itertools import zip_longest
from reprlib import Repr
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from exactlyonce.handling.context import Context
from exactlyonce.handling.messages import message_type
from exactlyonce.testing.leaks import Leak, Watch
from exactlyonce.testing.runner import NOW, Ran, Sent, run
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.round_trips import written

State = TypeVar("State")
Message = TypeVar("Message")
_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 80


class NonDeterministic(AssertionError):
    """A handler gave two results in the same circumstances, or may do so the next time.

    Attributes:
        leaks: calls that give another result every time.
        differences: what differed.
    """

    def __init__(self, text: str, leaks: tuple[Leak, ...], differences: tuple[str, ...]) -> None:
        super().__init__(text)
        self.leaks = leaks
        self.differences = differences


def assert_deterministic(
    handler: Callable[[State, Message, Context], Any],
    state: State,
    message: Message,
    *,
    message_id: str = "m-1",
    source: str = "test",
    entity: EntityRef | None = None,
    now: datetime = NOW,
) -> Ran[Any]:
    """Run a handler twice in the same circumstances; fail if the results differ, or if it called a clock, chance or the like.

    The second time the sets of state and message have another order, as they may in another process.

    Args:
        handler: a handler, decorated or not.
        state: the state before; each run gets a copy.
        message: an instance of a registered message type; each run gets a copy.
        message_id, source, entity, now: as for `run`.

    Returns:
        The result of the first run.

    Raises:
        NonDeterministic: naming the calls and their places, the differences, and what to do.
        Exception: whatever the handler raises the first time.
    """

    def once(turned: Callable[[Any], Any] = lambda value: value) -> Ran[Any]:
        given, sent = turned(deepcopy(state)), turned(deepcopy(message))
        with watch:
            return run(handler, given, sent, message_id=message_id, source=source, entity=entity, now=now)

    watch = Watch(handler)
    first = once()
    raised: BaseException | None = None
    try:
        differences = tuple(_differences(first, once(_turned)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raised = error
        differences = (f"it raised {type(error).__name__} the second time",)
    leaks = tuple(watch.leaks)
    if differences or leaks:
        name = getattr(handler, "__qualname__", repr(handler))
        raise NonDeterministic(_report(name, leaks, differences), leaks, differences) from raised
    return first


def _report(name: str, leaks: tuple[Leak, ...], differences: tuple[str, ...]) -> str:
    lines = [f"The handler {name} is not deterministic. Handling the message twice in the same circumstances gave"]
    if differences:
        lines[0] += " two results:"
        lines += [f"    {one}" for one in differences]
    else:
        lines[0] += " the same result; but it may not the next time, or in another process."
    if leaks:
        lines += ["It made calls that give another result every time:", *(f"    {one}" for one in leaks)]
        lines += dict.fromkeys(one.advice for one in leaks)
    else:
        lines.append(
            "No such call was seen. Does the handler change or read something outside of state and message, or the order of a "
            "set (sort it), or does a model have a default_factory that calls a clock or chance?"
        )
    lines.append("A duplicate may be handled again on its first state, and has to send the same outputs.")
    return "\n".join(lines)


def _differences(first: Ran[Any], second: Ran[Any]) -> Iterator[str]:
    if first.deleted != second.deleted:
        yield "the entity is deleted one time, and not the other"
    yield from _between("state", _json(first.state), _json(second.state))
    if len(first.sent) != len(second.sent):
        yield f"{len(first.sent)} messages sent at first, then {len(second.sent)}"
    for number, (one, other) in enumerate(zip(first.sent, second.sent, strict=False), start=1):
        yield from _between(f"message {number} ({_type_of(one)})", _parts(one), _parts(other))
    for number, (call, repeated) in enumerate(zip_longest(first.calls, second.calls), start=1):
        if call != repeated:
            yield f"call {number}"
    for number, (blob, again) in enumerate(zip_longest(first.blobs, second.blobs), start=1):
        if blob != again:
            yield f"blob {number}"


class _Turned(set[Any]):
    """A set with another order, as it may have in another process."""

    def __iter__(self) -> Iterator[Any]:
        return iter(list(super().__iter__())[::-1])


class _TurnedFrozen(frozenset[Any]):
    """As `_Turned`."""

    def __iter__(self) -> Iterator[Any]:
        return iter(list(super().__iter__())[::-1])


def _turned(value: Any) -> Any:
    """A value of which this test has a copy, with all of its sets in another order."""
    if isinstance(value, (set, frozenset)):
        return (_Turned if isinstance(value, set) else _TurnedFrozen)(value)
    if type(value) in (list, tuple):
        return type(value)(map(_turned, value))
    if type(value) is dict:
        return {key: _turned(one) for key, one in value.items()}
    names = list(type(value).model_fields) if isinstance(value, BaseModel) else []
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if hasattr(value, field.name)]
    for name in names:
        object.__setattr__(value, name, _turned(getattr(value, name)))
    return value


def _parts(sent: Sent) -> dict[str, Any]:
    delay = None if sent.delay is None else sent.delay.total_seconds()
    about = {"destination": sent.destination, "delay": delay, "type": _type_of(sent)}
    return {**about, "data": _json(sent.message)}


def _type_of(sent: Sent) -> str:
    return message_type(type(sent.message)).name


def _json(value: Any) -> Any:
    """A state, or the events in place of it, as they are stored."""
    if isinstance(value, (list, tuple)):
        return [[type(one).__name__, _json(one)] for one in value]
    return None if value is None else written(type(value), value)


def _between(name: str, first: Any, second: Any) -> Iterator[str]:
    """The differences of two JSON values, also in the type of numbers and the order of properties."""
    if Json.of(first) == Json.of(second):
        return
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        if list(first) != list(second):
            yield f"{name}: the order of its properties"
        for key in first:
            yield from _between(f"{name}.{key}", first[key], second[key])
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _between(f"{name}.{index}", one, other)
    else:
        yield f"{name}: {_SHORT.repr(first)} at first, then {_SHORT.repr(second)}"
