"""Names and values of an app as the source code of a test."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import Enum
from functools import cached_property
from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from exactlyonce.hosting import ExactlyOnce

_PLAIN: Final = (type(None), bool, int, bytes)
_OWN: Final = frozenset({"answered", "app", "replies"})
"""Names that a test gives itself."""
_NO_NAME: Final = re.compile(r"\W+")
_LONGEST: Final = 110
_FIRST: Final = frozenset({"datetime", "exactlyonce", "pydantic", "pytest"})
"""Packages that do not belong to the app."""


class Names:
    """Where the objects of an app can be imported from: by the identity of an object its module and its name there."""

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
    """The source code of a test, as it grows."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._imports: dict[str, tuple[str, str]] = {}
        self.lines: list[str] = []

    def imported(self, module: str, name: str) -> str:
        """A name that the test imports, or what it calls it where it has another one of that name."""
        here = name
        while here in _OWN or self._imports.get(here, (module, name)) != (module, name):
            here = f"{module.rpartition('.')[2]}_{here}"
        self._imports[here] = module, name
        return here

    def name(self, value: object) -> str | None:
        """The name of an object of the app, imported; None if no module has it."""
        found = self._names.find(value)
        return None if found is None else self.imported(*found)

    def value(self, value: Any) -> str:
        """A value as an expression."""
        write = self._writers.get(type(value))
        if write is not None:
            return write(value)
        name = self.name(type(value))
        if isinstance(value, Enum) and name is not None:
            return f"{name}.{value.name}"
        fields = _fields(value)
        if fields is None or name is None:
            return self._validated(value)
        return f"{name}({', '.join(f'{field}={self.value(item)}' for field, item in fields.items())})"

    def _values(self, values: Iterable[Any]) -> str:
        return ", ".join(map(self.value, values))

    def _set(self, values: frozenset[Any] | set[Any]) -> str:
        items = f"{{{', '.join(sorted(map(self.value, values)))}}}" if values else ""
        return items if items and type(values) is set else f"{type(values).__name__}({items})"

    @cached_property
    def _writers(self) -> Mapping[type, Callable[[Any], str]]:
        """By their type how values are written that need no model."""
        return {
            str: lambda text: repr(text) if '"' in text else json.dumps(text, ensure_ascii=False),
            float: lambda number: repr(number) if math.isfinite(number) else f'float("{number}")',
            list: lambda values: f"[{self._values(values)}]",
            tuple: lambda values: f"({self._values(values)}{',' if len(values) == 1 else ''})",
            dict: lambda pairs: f"{{{', '.join(f'{self.value(key)}: {self.value(it)}' for key, it in pairs.items())}}}",
            datetime: lambda at: f"{self.imported('datetime', 'datetime')}.fromisoformat({self.value(at.isoformat())})",
            set: self._set,
            frozenset: self._set,
            **dict.fromkeys(_PLAIN, repr),
        }

    def _validated(self, value: Any) -> str:
        """A value that has no short expression, by way of its JSON."""
        kind, content = type(value), TypeAdapter(type(value)).dump_python(value, mode="json", by_alias=True)
        name = self.name(kind) or self.imported(kind.__module__, kind.__qualname__.partition(".")[0])
        return f"{self.imported('pydantic', 'TypeAdapter')}({name}).validate_python({self.value(content)})"

    def call(self, function: str, arguments: Iterable[str], indent: int = 1) -> None:
        """Add a call, with its arguments on lines of their own if it is long; `function` is the text before the parenthesis."""
        arguments, blanks = list(arguments), "    " * indent
        short = f"{blanks}{function}({', '.join(arguments)})"
        if len(short) <= _LONGEST:
            self.lines.append(short)
        else:
            self.lines += [f"{blanks}{function}(", *(f"{blanks}    {item}," for item in arguments), f"{blanks})"]

    def __str__(self) -> str:
        modules: defaultdict[str, list[str]] = defaultdict(list)
        for here, (module, name) in sorted(self._imports.items()):
            modules[module].append(name if here == name else f"{name} as {here}")
        own = sorted(modules, key=lambda module: (module.partition(".")[0] not in _FIRST, module))
        imports = [f"from {module} import {', '.join(modules[module])}" for module in own]
        return "\n".join([*imports, "", "", *self.lines, ""])


def identifier(text: str) -> str:
    """A text as a part of a name."""
    return _NO_NAME.sub("_", text).strip("_").lower()


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a model that make an equal one, without those that have their defaults; None where they may not."""
    if isinstance(value, BaseModel):
        models = type(value).model_fields
        if any(model.alias is not None for model in models.values()):
            return None
        defaults = {name: item.default for name, item in models.items()}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        defaults = {field.name: field.default for field in dataclasses.fields(value) if field.init}
    else:
        return None
    fields = {name: getattr(value, name) for name in defaults}
    return {
        name: item for name, item in fields.items() if type(item) is not type(defaults[name]) or item != defaults[name]
    }


def _makes_an_application(module: ModuleType) -> bool:
    return any(isinstance(value, ExactlyOnce) for value in vars(module).values())
