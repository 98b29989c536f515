"""The story of an app: its latest deliveries, over all of its processes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from exactlyonce_dev.witness import Event

MOST_KEPT: Final = 200
"""Deliveries, and parked messages, that the story keeps."""
UNDER_WAY: Final = "under way"
LOST: Final = "lost with the process"


class Story:
    """Keeps what the processes of an app tell of their deliveries, in memory only.

    Attributes:
        version: changes with every event.
    """

    def __init__(self) -> None:
        self.version = 0
        self._process = 1
        self._numbers = 0
        self._rows: OrderedDict[tuple[int, int], dict[str, Any]] = OrderedDict()

    def hear(self, event: Event) -> None:
        """Take an event of a `Witness`."""
        self.version += 1
        if "parked" in event:
            self._numbers -= 1
            row = {"message": event["parked"], "entity": {"name": event["entity"]}, "outcome": "parked"}
            self._keep(self._numbers, row | {"steps": [event["reason"]], "outputs": []})
        elif "envelope" in event:
            self._keep(event["delivery"], event | {"outcome": UNDER_WAY, "steps": [], "outputs": []})
        elif (self._process, event["delivery"]) in self._rows:
            self._rows[self._process, event["delivery"]] |= event

    def end_process(self) -> None:
        """The process has ended: what was under way in it has no outcome."""
        self.version += 1
        for row in self._rows.values():
            if row["outcome"] == UNDER_WAY:
                row["outcome"] = LOST
        self._process += 1

    def rows(self) -> list[dict[str, Any]]:
        """The deliveries, the latest first."""
        return list(reversed(self._rows.values()))

    def _keep(self, number: int, row: dict[str, Any]) -> None:
        self._rows[self._process, number] = {**row, "id": f"{self._process}.{number}"}
        while len(self._rows) > MOST_KEPT:
            self._rows.popitem(last=False)
