"""Declarations: arguments with which an application describes itself, checked at import."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeVar

from exactlyonce.errors import ConfigurationError

_Declared = TypeVar("_Declared")
_NOT_PLAIN: Final = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)


def require(what: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Refuse an argument of a wrong type.

    Args:
        what: the argument, as the beginning of a sentence, such as `key= of entity 'order'`.
        value: the argument.
        kinds: the allowed classes. A truth value is no number.
        wanted: the advice to the caller.

    Raises:
        ConfigurationError: the value has none of the classes.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise ConfigurationError(f"{what} is {kind_of(value)}. Give {wanted}.")


def require_callable(what: str, value: object, wanted: str) -> None:
    """Refuse an argument that cannot be called, or is a class, in place of a function. Raises `ConfigurationError`."""
    if not callable(value) or isinstance(value, type):
        raise ConfigurationError(f"{what} is {kind_of(value)}. Give {wanted}.")


def require_plain(what: str, function: Any, parameters: tuple[str, ...]) -> None:
    """Refuse anything but a plain function of these parameters. The error shows neither `repr` nor bound arguments.
    Raises `ConfigurationError`: the argument cannot be called, is a class, async or a generator, or takes wrong parameters."""
    require_callable(what, function, f"a function of ({', '.join(parameters)})")
    called: Any = function
    while isinstance(called, partial):
        called = called.func
    name = getattr(called, "__qualname__", type(called).__qualname__)
    if any(kind(form) for kind in _NOT_PLAIN for form in (called, getattr(called, "__call__", None))):  # noqa: B004
        raise ConfigurationError(
            f"{what} {name} is async, or a generator. It has to be a plain function, since it may run any number of times: "
            "bind its dependencies with functools.partial, and call other services with context.call."
        )
    require_parameters(f"{what} {name}", function, parameters)


def require_parameters(what: str, function: Callable[..., Any], parameters: tuple[str, ...]) -> None:
    """Refuse a function with wrong parameters. Raises `ConfigurationError`."""
    try:
        # A decorator may bring parameters of the wrapped function.
        inspect.signature(function, follow_wrapped=False).bind(*parameters)
    except ValueError:  # A function of C may have no signature.
        return
    except TypeError:
        raise ConfigurationError(f"{what} has to take ({', '.join(parameters)}).") from None


def require_text(what: str, value: object) -> str:
    """A text as such: an `Enum`'s text would be written as its name. Raises `ConfigurationError` for no or empty text."""
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{what} is {kind_of(value)}. Give a string that is not empty.")
    return str.__str__(value)


def require_tuple(what: str, value: object, wanted: str) -> None:
    """Refuse a single value in place of a tuple, above all a text, which would pass for its letters.
    Raises `ConfigurationError`: the value is no tuple."""
    if not isinstance(value, tuple):
        raise ConfigurationError(f"{what} is {kind_of(value)}. Give a tuple, such as {wanted}: mind the comma.")


def declared(
    what: str, values: Iterable[_Declared], kinds: type[_Declared] | tuple[type[_Declared], ...], wanted: str
) -> tuple[_Declared, ...]:
    """Declared values, as a tuple. Raises `ConfigurationError` for a single value, or a value of no allowed class.
    The other arguments are those of `require`."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ConfigurationError(f"{what} are {kind_of(values)}. Give a tuple: {wanted}.")
    listed = tuple(values)
    for value in listed:
        if not isinstance(value, kinds):
            raise ConfigurationError(f"{what} have {kind_of(value)} among them. Give {wanted}.")
    return listed


def kind_of(value: Any) -> str:
    """The kind of a value without the value, which may be a key. No code of the value runs: its `==` may raise."""
    if issubclass(type(value), type):
        return f"the class {value.__qualname__}"
    if value is None or (type(value) is str and not value):
        return "None" if value is None else "an empty string"
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
