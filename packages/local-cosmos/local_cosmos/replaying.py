"""Playing a recorded story again: the same requests, faults and moves of the clock, in an emulator that serves nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_cosmos.protocol.admin import AdminEndpoints
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.story import VERSION, outcome_of, request_of
from local_cosmos.values import JsonObject


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a story, played again.

    Attributes:
        recorded: Status, substatus, ETag and manner of the reply.
        replayed: The same of the reply now.
    """

    line: int
    operation: str
    recorded: JsonObject
    replayed: JsonObject


class Replay:
    """A story that is played again.

    Attributes:
        emulator: What plays it: its history, its log and its faults tell what happened.

    Raises:
        ValueError: The file is not a story of this version.
    """

    def __init__(self, story: Path) -> None:
        beginning, *self._lines = story.read_text(encoding="utf-8").splitlines()
        header = json.loads(beginning)
        if header.get("story") != VERSION:
            raise ValueError(f"{story} is not a story of version {VERSION}.")
        self._now = 0.0
        settings = AccountSettings(**header["settings"])
        self.emulator = Emulator(settings, Clock(lambda: self._now), lambda: self._now)
        self._admin = AdminEndpoints(self.emulator)

    def steps(self) -> Iterator[Step]:
        """Play the next request, with what comes before it; each is played when it is asked for."""
        for number, text in enumerate(self._lines, start=2):
            line: dict[str, Any] = json.loads(text)
            self._now = line["at"]
            if "admin" in line:
                verb, _, path = line["admin"].partition(" ")
                self._admin.answer(verb, path.split("/"), {}, line["body"].encode())
                continue
            request = request_of(line["request"])
            outcome = self.emulator.serve(request, self._now)
            yield Step(number, request.operation, line["reply"], outcome_of(outcome.reply, outcome.manner))

    def differences(self) -> list[Step]:
        """Play all of it; returns the requests that were answered otherwise."""
        return [step for step in self.steps() if step.recorded != step.replayed]
