"""The story of an app: its latest deliveries, over all of its processes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from exactlyonce.stores.port import entity_named
from exactlyonce_dev.witness import Event

MOST_KEPT: Final = 200
"""Deliveries, and parked messages, that the story keeps; and calls whose tries it keeps."""
UNDER_WAY: Final = "under way"
LOST: Final = "lost with the process"
LOST_REPLIES: Final = {"lost-applied": "reply", "lost-not-applied": "request"}
"""Trouble with a single write, and what it loses."""
_MOST_TRIES: Final = 60
_STATES: Final = frozenset({"before", "after"})
_OF_A_LOSS: Final = frozenset({"lost", "conflict"})
"""How the reply of a write looks that was lost. A client library that sends a write twice meets its own first write."""


class Story:
    """Keeps what the processes of an app tell of their deliveries, in memory only.

    Attributes:
        version: changes with every event.
    """

    def __init__(self) -> None:
        self.version = 0
        self._process = 1
        self._others = 0
        self._steps = 0
        self._losses: list[str] = []
        self._rows: OrderedDict[tuple[int, int], dict[str, Any]] = OrderedDict()
        self._tries: OrderedDict[str, list[Event]] = OrderedDict()

    def hear(self, event: Event) -> None:
        """Take an event of a `Witness`."""
        self.version += 1
        if "call" in event:
            tries = self._tries.setdefault(event["call"], [])
            if len(tries) < _MOST_TRIES:
                tries.append(event["received"])
            if len(self._tries) > MOST_KEPT:
                self._tries.popitem(last=False)
        elif "parked" in event:
            place = event["entity"]
            row = {"message": event["parked"], "entity": {"name": _name(place), "place": place}, "outcome": "parked"}
            self._keep_other(row | {"reason": event["reason"], "at": event.get("at")})
        elif "maintained" in event:
            row = {"message": "", "entity": event["maintained"], "outcome": "published later", "at": event["at"]}
            self._keep_other(row | {"outputs": [event["output"]]})
        elif "envelope" in event:
            self._keep(event["delivery"], event | {"outcome": UNDER_WAY})
        elif (known := self._rows.get((self._process, event.get("delivery", 0)))) is not None:
            self._add(known, event)

    def expect(self, kind: str) -> None:
        """Somebody has armed trouble: the next write whose reply does not come suffers it."""
        if kind in LOST_REPLIES:
            self._losses.append(LOST_REPLIES[kind])

    def calm(self) -> None:
        """No trouble is armed any more."""
        self._losses.clear()

    def end_process(self) -> None:
        """The process has ended: what was under way in it has no outcome."""
        self.version += 1
        for row in self._rows.values():
            if row["outcome"] == UNDER_WAY:
                row["outcome"] = LOST
        self._process += 1

    def rows(self) -> list[dict[str, Any]]:
        """The deliveries, the latest first, without states."""
        return [
            {name: value for name, value in row.items() if name not in _STATES} for row in reversed(self._rows.values())
        ]

    def whole(self) -> dict[str, Any]:
        """All that is needed for a test: the deliveries in order, with states, and what came of the tries of each call."""
        return {"rows": list(self._rows.values()), "tries": self._tries}

    def _add(self, row: dict[str, Any], event: Event) -> None:
        if "step" in event:
            self._steps += 1
            step = event["step"] | {"number": self._steps}
            if self._losses and step["kind"] == "write" and step["look"] in _OF_A_LOSS:
                step["lost"] = self._losses.pop(0)
            row["steps"].append(step)
        elif "output" in event:
            row["outputs"].append(event["output"])
        else:
            row |= event
            if "outcome" in event:
                row["ended"] = self.version

    def _keep_other(self, row: dict[str, Any]) -> None:
        self._others -= 1
        self._keep(self._others, row)

    def _keep(self, number: int, row: dict[str, Any]) -> None:
        self._rows[self._process, number] = {
            "steps": [],
            "outputs": [],
            "reason": None,
            "began": self.version,
            **row,
            "id": f"{self._process}.{number}",
        }
        while len(self._rows) > MOST_KEPT:
            self._rows.popitem(last=False)


def _name(place: str) -> str:
    """The entity of a place, as people read it."""
    try:
        return str(entity_named(place))
    except (ValueError, TypeError):  # The document is damaged.
        return place
