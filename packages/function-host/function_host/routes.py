"""HTTP routes: ASP.NET route templates as far as functions usually need them. Pure.

A template is a path whose segments are literals or parameters: `{name}`, `{name:int}`, `{name?}`, `{*rest}`. Literals match
in any case, as on the real host. A path that is known, but not with this method, is unknown: the real host answers 404,
not 405 (Azure/azure-functions-host#10098). That holds for HEAD and OPTIONS, too: a route that is to take them lists them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import unquote

from .errors import AppError

T = TypeVar("T")

_PARAMETER = re.compile(r"\{(?P<rest>\*{0,2})(?P<name>\w+)(?::(?P<constraint>[^?{}]+))?(?P<optional>\?)?\}")
_CONSTRAINTS = {
    "alpha": "[A-Za-z]*",
    "bool": "[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]",
    "guid": r"[\da-fA-F]{8}-?(?:[\da-fA-F]{4}-?){3}[\da-fA-F]{12}",
    "int": r"[+-]?\d{1,10}",
    "long": r"[+-]?\d{1,19}",
}


@dataclass(frozen=True, slots=True)
class _Segment:
    literal: str | None = None
    name: str = ""
    constraint: str | None = None
    optional: bool = False
    rest: bool = False

    def rank(self) -> int:
        """Smaller is matched first: literals, constrained parameters, parameters, the rest of a path."""
        if self.literal is not None:
            return 0
        if self.rest:
            return 3
        return 1 if self.constraint else 2

    def accepts(self, text: str) -> bool:
        if self.literal is not None:
            return text.lower() == self.literal.lower()
        return bool(text) and (self.constraint is None or re.fullmatch(_CONSTRAINTS[self.constraint], text) is not None)


@dataclass(frozen=True, slots=True)
class Route:
    """A parsed template."""

    template: str
    segments: tuple[_Segment, ...]

    @classmethod
    def parse(cls, template: str) -> "Route":
        """Read a template.

        Raises:
            AppError: it uses something of ASP.NET's templates that is not supported here.
        """
        return cls(template, tuple(_parse_segment(text, template) for text in template.strip("/").split("/") if text))

    def match(self, path: tuple[str, ...]) -> dict[str, str] | None:
        """Route parameters when the path's segments fit, else None. An absent optional parameter has no entry."""
        parameters: dict[str, str] = {}
        for position, segment in enumerate(self.segments):
            if segment.rest:
                return {**parameters, segment.name: "/".join(path[position:])}
            if position >= len(path):
                return parameters if all(later.optional for later in self.segments[position:]) else None
            if not segment.accepts(path[position]):
                return None
            if segment.literal is None:
                parameters[segment.name] = path[position]
        return parameters if len(path) == len(self.segments) else None

    def precedence(self) -> tuple[int, ...]:
        """Sort key: of two routes that both match, the smaller one serves."""
        return tuple(segment.rank() for segment in self.segments)


class RouteTable(Generic[T]):
    """Which target serves a request.

    Args:
        routes: route, methods (none at all means every method) and target.
    """

    def __init__(self, routes: Iterable[tuple[Route, frozenset[str], T]]) -> None:
        self._routes = sorted(routes, key=lambda entry: entry[0].precedence())

    def find(self, method: str, raw_path: str) -> tuple[T, dict[str, str]] | None:
        """Target and route parameters, or None: 404.

        Args:
            raw_path: the path as it came; segments are decoded after the split, so that `%2F` stays in its segment.
        """
        path = tuple(unquote(segment) for segment in raw_path.strip("/").split("/") if segment)
        for route, methods, target in self._routes:
            parameters = route.match(path)
            if parameters is not None and (not methods or method.upper() in methods):
                return target, parameters
        return None


def _parse_segment(text: str, template: str) -> _Segment:
    if "{" not in text and "}" not in text:
        return _Segment(literal=text)
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise AppError(f"Route '{template}': '{text}' must be a literal or one parameter, such as {{name}}.")
    constraint = match["constraint"]
    if constraint is not None and constraint not in _CONSTRAINTS:
        known = ", ".join(_CONSTRAINTS)
        raise AppError(f"Route '{template}': the constraint '{constraint}' is not supported here (only {known}).")
    return _Segment(
        name=match["name"], constraint=constraint, optional=bool(match["optional"]), rest=bool(match["rest"])
    )
