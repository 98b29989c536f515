"""Which explorer a scenario needs."""

from __future__ import annotations

from functools import singledispatch

from verification.explorers.ages import AgedExplorer
from verification.explorers.explorer import Explorer
from verification.explorers.requests import OpenedExplorer, RequestsExplorer
from verification.world.scenario import Scenario


@singledispatch
def explorer_of(scenario: Scenario) -> Explorer:
    """The explorer for a scenario.

    Those for other classes of scenarios register themselves: a search imports, and its verdict depends on, what it runs only.

    Raises:
        TypeError: none has registered for this class.
    """
    if type(scenario) is not Scenario:
        raise TypeError(f"No explorer for {type(scenario).__name__} is imported.")
    if scenario.endless:
        from verification.endless.explorer import stream_of  # noqa: PLC0415  # It imports much that others do not need.

        return stream_of(scenario)
    if scenario.ages is not None:
        return AgedExplorer(scenario)
    if any(request is not None and request.opened for request in scenario.requests):
        return OpenedExplorer(scenario)
    if scenario.requests:
        return RequestsExplorer(scenario)
    return Explorer(scenario)
