"""The rules of a subscription: which messages of its topic it gets. They may change while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Final

from local_service_bus.broker.messages import Content
from local_service_bus.broker.refusals import ALREADY_EXISTS, NOT_FOUND, RefusedError
from local_service_bus.topology import CorrelationFilter

DEFAULT: Final = "$Default"
"""The rule of a subscription that was given none: it lets everything pass."""

Filter = CorrelationFilter | bool
"""A boolean lets everything pass, or nothing."""

_COMPARED: Final = tuple({item.name for item in fields(CorrelationFilter)} - {"properties", "rule"})


class Rules:
    """Rules by their names, whose case does not count; a message passes if one of them lets it.

    Args:
        filters: What it begins with; without any, everything passes.
    """

    def __init__(self, address: str, filters: Iterable[CorrelationFilter] = ()) -> None:
        self._address = address
        named: Mapping[str, Filter] = {
            item.rule or f"rule-{number}": item for number, item in enumerate(filters, start=1)
        }
        self._rules = {name.lower(): (name, item) for name, item in (named or {DEFAULT: True}).items()}

    def all(self) -> list[tuple[str, Filter]]:
        """Names and filters, in the order in which they were added."""
        return list(self._rules.values())

    def add(self, name: str, wanted: Filter) -> None:
        """Add a rule.

        Raises:
            RefusedError: there is one with this name.
        """
        if name.lower() in self._rules:
            told = f"The messaging entity '{self._address}/Rules/{name}' already exists."
            raise RefusedError(ALREADY_EXISTS, f"{told} Remove the rule first, or choose another name.")
        self._rules[name.lower()] = name, wanted

    def remove(self, name: str) -> None:
        """Remove a rule; without any, nothing passes.

        Raises:
            RefusedError: not found.
        """
        if self._rules.pop(name.lower(), None) is None:
            told = f"The messaging entity '{self._address}/Rules/{name}' could not be found."
            raise RefusedError(NOT_FOUND, f"{told} There are {sorted(rule for rule, _ in self.all())}.")

    def pass_on(self, content: Content) -> bool:
        """Whether a message concerns the subscription."""
        return any(item if isinstance(item, bool) else passes(item, content) for _, item in self.all())


def passes(item: CorrelationFilter, content: Content) -> bool:
    """Whether a filter lets a message pass."""
    named = ((getattr(item, name), getattr(content, name)) for name in _COMPARED)
    return all(wanted is None or wanted == found for wanted, found in named) and all(
        content.properties.get(name) == wanted for name, wanted in item.properties.items()
    )
