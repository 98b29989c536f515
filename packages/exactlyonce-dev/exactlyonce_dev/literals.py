"""Names and values of an app as the source code of a test."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from exactlyonce.hosting import ExactlyOnce

_PLAIN: Final = (type(None), bool, int, float, str)
_NO_NAME: Final = re.compile(r"\W+")
_LONGEST: Final = 110


class Names:
    """Where the objects of an app can be imported from.

    Args:
        objects: by the identity of an object its module and its name there.
    """

    def __init__(self, objects: Mapping[int, tuple[str, str]]) -> None:
        self._objects = objects

    @classmethod
    def of(cls, modules: Iterable[ModuleType]) -> Names:
        """The names in modules. A module that makes an application opens its accounts, so its names are the last choice."""
        found: dict[int, tuple[str, str]] = {}
        for module in sorted(modules, key=_makes_an_application):
            for name, value in vars(module).items():
                is_own = getattr(value, "__module__", module.__name__) == module.__name__
                if not name.startswith("_") and (is_own or not isinstance(value, type)):
                    found.setdefault(id(value), (module.__name__, name))
        return cls(found)

    def find(self, value: object) -> tuple[str, str] | None:
        """The module and the name of an object; None if no module has it."""
        return self._objects.get(id(value))


class Source:
    """The source code of a test, as it grows.

    Args:
        names: of the app.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._imports: defaultdict[str, set[str]] = defaultdict(set)
        self.lines: list[str] = []

    def imported(self, module: str, name: str) -> str:
        """A name that the test imports."""
        self._imports[module].add(name)
        return name

    def name(self, value: object) -> str | None:
        """The name of an object of the app, imported; None if no module has it."""
        found = self._names.find(value)
        return None if found is None else self.imported(*found)

    def value(self, value: Any) -> str:
        """A value as an expression."""
        if isinstance(value, _PLAIN):
            return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if isinstance(value, tuple) and type(value) is tuple:
            return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self.value(key)}: {self.value(one)}' for key, one in value.items())}}}"
        fields = _fields(value)
        if fields is None or (name := self.name(type(value))) is None:
            return self._validated(value)
        return f"{name}({', '.join(f'{field}={self.value(one)}' for field, one in fields.items())})"

    def _validated(self, value: Any) -> str:
        """A value that has no short expression, by way of its JSON."""
        kind, content = type(value), TypeAdapter(type(value)).dump_python(value, mode="json", by_alias=True)
        name = self.name(kind) or self.imported(kind.__module__, kind.__qualname__.partition(".")[0])
        return f"{self.imported('pydantic', 'TypeAdapter')}({name}).validate_python({self.value(content)})"

    def call(self, function: str, arguments: Iterable[str], indent: int = 1) -> None:
        """Add a call, with its arguments on lines of their own if it is long.

        Args:
            function: what comes before the parenthesis.
            arguments: of the call.
            indent: how deep it is.
        """
        arguments, blanks = list(arguments), "    " * indent
        short = f"{blanks}{function}({', '.join(arguments)})"
        if len(short) <= _LONGEST:
            self.lines.append(short)
        else:
            self.lines += [f"{blanks}{function}(", *(f"{blanks}    {one}," for one in arguments), f"{blanks})"]

    def __str__(self) -> str:
        own = sorted(
            self._imports, key=lambda module: ("exactlyonce" not in module and "pydantic" not in module, module)
        )
        imports = [f"from {module} import {', '.join(sorted(self._imports[module]))}" for module in own]
        return "\n".join([*imports, "", "", *self.lines, ""])


def identifier(text: str) -> str:
    """A text as a part of a name."""
    return _NO_NAME.sub("_", text).strip("_").lower()


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a model that make an equal one; None where they may not."""
    if isinstance(value, BaseModel):
        if any(one.alias is not None for one in type(value).model_fields.values()):
            return None
        return {name: getattr(value, name) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.init}
    return None


def _makes_an_application(module: ModuleType) -> bool:
    return any(isinstance(value, ExactlyOnce) for value in vars(module).values())
