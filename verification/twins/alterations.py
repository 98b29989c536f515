"""Wrappers that make a broken twin of a shipped function: they change its requests, the replies to them, or its result.

Each of these makes a wrapper, for `twins.around`. None knows how the function is written, so a twin stays what it is when the
function is written anew. What decides gets the effect or the reply, and then the arguments of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from exactlyonce.effects.effect import Effect, Step

Function = Callable[..., Any]
Wrapper = Callable[[Function], Function]
Kind = type[Effect[Any]]


def instead(kind: Kind, edit: Callable[..., Step[Any]]) -> Wrapper:
    """Something else is done in place of each effect of a kind: what `edit(effect, *arguments)` asks; it returns the reply."""

    def wrapper(function: Function) -> Function:
        def altered(*arguments: Any) -> Step[Any]:
            step, reply = function(*arguments), None
            while True:
                try:
                    effect, reply = step.send(reply), None
                except StopIteration as end:
                    return end.value
                if isinstance(effect, kind):
                    reply = yield from edit(effect, *arguments)
                else:
                    reply = yield effect

        return altered

    return wrapper


def asks(kind: Kind, change: Callable[..., Effect[Any]]) -> Wrapper:
    """Each effect of a kind is asked as `change(effect, *arguments)` makes it."""

    def edit(effect: Any, *arguments: Any) -> Step[Any]:
        reply = yield from change(effect, *arguments)
        return reply

    return instead(kind, edit)


def answers(kind: Kind, change: Callable[..., Any]) -> Wrapper:
    """Each reply to an effect of a kind is taken for `change(reply, effect, *arguments)`."""

    def edit(effect: Any, *arguments: Any) -> Step[Any]:
        reply = yield from effect
        return change(reply, effect, *arguments)

    return instead(kind, edit)


def unasked(kind: Kind, reply: Any, when: Callable[..., bool] = lambda *_: True) -> Wrapper:
    """Effects of a kind are not asked when `when(effect, *arguments)` holds; the reply is made up."""

    def edit(effect: Any, *arguments: Any) -> Step[Any]:
        if when(effect, *arguments):
            return reply
        answer = yield from effect
        return answer

    return instead(kind, edit)


def followed(kind: Kind, make: Callable[..., Effect[Any] | None]) -> Wrapper:
    """After each effect of a kind the one that `make(reply, effect, *arguments)` makes is asked, if it makes any."""

    def edit(effect: Any, *arguments: Any) -> Step[Any]:
        reply = yield from effect
        added = make(reply, effect, *arguments)
        if added is not None:
            yield from added
        return reply

    return instead(kind, edit)


def first(make: Callable[..., Effect[Any] | None]) -> Wrapper:
    """Before all else the effect that `make(*arguments)` makes is asked, if it makes any; its reply is ignored."""

    def wrapper(function: Function) -> Function:
        def altered(*arguments: Any) -> Step[Any]:
            added = make(*arguments)
            if added is not None:
                yield from added
            result = yield from function(*arguments)
            return result

        return altered

    return wrapper


def deferred(kind: Kind, reply: Any, until: Kind) -> Wrapper:
    """An effect of one kind is asked only after the next of another; till then its reply is made up, and later ignored."""

    def wrapper(function: Function) -> Function:
        def altered(*arguments: Any) -> Step[Any]:
            step, answer, late = function(*arguments), None, None
            while True:
                try:
                    effect, answer = step.send(answer), None
                except StopIteration as end:
                    return end.value
                if isinstance(effect, kind):
                    late, answer = effect, reply
                    continue
                answer = yield effect
                if isinstance(effect, until) and late is not None:
                    yield from late
                    late = None

        return altered

    return wrapper


def ending(kind: Kind, result: Callable[..., Any]) -> Wrapper:
    """The function ends after an effect of a kind with `result(reply, effect, *arguments)`, unless that is None."""

    def wrapper(function: Function) -> Function:
        def altered(*arguments: Any) -> Step[Any]:
            step, reply = function(*arguments), None
            while True:
                try:
                    effect, reply = step.send(reply), None
                except StopIteration as end:
                    return end.value
                reply = yield effect
                early = result(reply, effect, *arguments) if isinstance(effect, kind) else None
                if early is not None:
                    step.close()
                    return early

        return altered

    return wrapper


def comes_to(change: Callable[..., Any]) -> Wrapper:
    """What the function comes to is taken for `change(result, *arguments)`."""

    def wrapper(function: Function) -> Function:
        def altered(*arguments: Any) -> Step[Any]:
            result = yield from function(*arguments)
            return change(result, *arguments)

        return altered

    return wrapper


def called(change: Callable[..., tuple[Any, ...]]) -> Wrapper:
    """The function is called with `change(*arguments)`; arguments by name stay as they are."""

    def wrapper(function: Function) -> Function:
        return lambda *arguments, **named: function(*change(*arguments), **named)

    return wrapper


def replaced(other: Function) -> Wrapper:
    """Another function takes its place."""
    return lambda _: other


def seeing(**constants: Any) -> Wrapper:
    """The function, and no other, sees constants of its module with other values.

    Raises:
        LookupError: its module has no such constant.
    """

    def wrapper(function: Function) -> Function:
        if missing := constants.keys() - function.__globals__.keys():
            raise LookupError(f"{function.__qualname__} sees no constant {', '.join(sorted(missing))}.")
        seen = {**function.__globals__, **constants}
        altered = FunctionType(function.__code__, seen, function.__name__, function.__defaults__, function.__closure__)
        altered.__kwdefaults__ = function.__kwdefaults__
        return altered

    return wrapper
