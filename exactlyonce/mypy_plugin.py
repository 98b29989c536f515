"""A plugin for mypy: reports a class that is handled, sent or announced without being a message type.

A class decorator cannot tell a type checker its effect. An application names the plugin in `pyproject.toml`:

    [tool.mypy]
    plugins = ["pydantic.mypy", "exactlyonce.mypy_plugin"]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy.nodes import CallExpr, Expression, RefExpr, TypeInfo
from mypy.plugin import ClassDefContext, MethodContext, Plugin
from mypy.types import Type

_MARK: Final = "exactlyonce"
_DECORATOR: Final = "exactlyonce.handling.messages.message"
_ARGUMENTS: Final = {
    "exactlyonce.handling.context.Context.send": 1,
    "exactlyonce.handling.context.Context.announce": 0,
    "exactlyonce.handling.entities.Entity.handles": 0,
    "exactlyonce.handling.entities.Entity.applies": 0,
    "exactlyonce.hosting.application.ExactlyOnce.send": 1,
    "exactlyonce.testing.app.App.send": 1,
}
"""By method, the position of the message, or of its class."""


class MessagePlugin(Plugin):
    """Knows the classes below `@message(...)`."""

    def get_class_decorator_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """Mark message types."""
        return _mark if fullname == _DECORATOR else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Look at the message of a call."""
        position = _ARGUMENTS.get(fullname)
        return None if position is None else lambda call: _checked(call, position)


def _mark(decorated: ClassDefContext) -> None:
    decorated.cls.info.metadata[_MARK] = {"message": True}


def _checked(call: MethodContext, position: int) -> Type:
    for argument in call.args[position]:
        model = _class_of(argument)
        if model is not None and _MARK not in model.metadata:
            call.api.fail(f'"{model.name}" is no message type: put @message("a-name") above it', argument)
    return call.default_return_type


def _class_of(argument: Expression) -> TypeInfo | None:
    """The class that an argument names or makes an instance of. The class of any other value may be a base class."""
    named = argument.callee if isinstance(argument, CallExpr) else argument
    return named.node if isinstance(named, RefExpr) and isinstance(named.node, TypeInfo) else None


def plugin(version: str) -> type[Plugin]:
    """The plugin, for mypy."""
    del version
    return MessagePlugin
