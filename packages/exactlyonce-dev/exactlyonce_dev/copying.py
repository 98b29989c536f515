"""Copies what happened, faults included, as a test of the app in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.calls import Api
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting import ExactlyOnce
from exactlyonce.testing.interruptions import STEPS
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef
from exactlyonce_dev.flow import LATER, Act, Flow, Row
from exactlyonce_dev.literals import Names, Source, identifier
from exactlyonce_dev.story import LOST

_LOSSES: Final = {
    "reply": "it is applied, and its reply is lost",
    "request": "its request is lost, and nothing is applied",
}
Steps = Sequence[tuple[Row, str]]
"""Steps in the order of time, each with the type of its entity."""


def copied(flow: Flow, once: ExactlyOnce, names: Names, states: Mapping[EntityRef, object]) -> str:
    """The source code of a test that plays a flow, and expects the states that it has led to.

    Args:
        flow: that happened.
        once: the application.
        names: of its objects.
        states: of the entities at present; None for one that is absent.

    Raises:
        ConfigurationError: a message was too large to be kept.
    """
    return _Copy(flow, once, names).text(states)


class _Copy:
    def __init__(self, flow: Flow, once: ExactlyOnce, names: Names) -> None:
        self._flow = flow
        self._once = once
        self._source = Source(names)
        self._types: dict[str, Entity[Any]] = {entity.name: entity for entity in once.entities}

    def text(self, states: Mapping[EntityRef, object]) -> str:
        source, acts = self._source, self._flow.acts()
        about = identifier(acts[0].row["entity"]["name"]) if acts else "nothing"
        source.lines.append(f"def test_what_happened_to_{about}() -> None:")
        source.imported("exactlyonce.testing", "App")
        source.call("app = App", self._application())
        minutes = 0
        for act in acts:
            source.lines.append("")
            if act.row["outcome"] == LATER:
                passed = max(self._minutes(act.row) - minutes, 1)
                source.lines.append("    # Time passes, until the sweeper publishes what was kept or owed.")
                source.lines.append(f"    app.advance(minutes={passed})")
                minutes += passed
            else:
                faults = list(self._faults(act))
                source.lines += faults
                self._play(act)
                if faults:
                    source.lines.append("    app.advance(minutes=1)  # It is tried again after a pause.")
        source.lines.append("")
        source.lines += self._expected(states)
        return str(source)

    def _application(self) -> Iterator[str]:
        """The arguments of `App`."""
        yield from map(self._entity, self._types)
        if listed := [self._source.name(one) or self._declared(one) for one in self._once.destinations]:
            yield f"destinations=({', '.join(listed)}{',' if len(listed) == 1 else ''})"
        leading = {one.name for one in self._once.destinations if isinstance(one, Destination) and one.to is not None}
        if taken := {
            name: type for name, type in self._flow.takers.items() if name not in leading and type in self._types
        }:
            yield f"queues={{{', '.join(f'{self._text(name)}: {self._entity(type)}' for name, type in taken.items())}}}"
        if apis := [one for one in self._once.destinations if isinstance(one, Api)]:
            answer = f"lambda _: {self._source.imported('exactlyonce.testing', 'Response')}()"
            yield f"apis={{{', '.join(f'{self._source.name(one) or identifier(one.name)}: {answer}' for one in apis)}}}"

    def _declared(self, one: Destination | Api) -> str:
        """A destination that no module names."""
        given = [self._text(one.name)]
        if isinstance(one, Destination) and one.receives:
            given.append(
                f"receives=({', '.join(self._source.name(model) or model.__name__ for model in one.receives)},)"
            )
        if isinstance(one, Destination) and isinstance(one.to, Entity):
            given.append(f"to={self._entity(one.to.name)}")
        return f"{self._source.imported('exactlyonce', 'Destination')}({', '.join(given)})"

    def _play(self, act: Act) -> None:
        source, row = self._source, act.row
        if act.of_output is not None:
            name, place = act.of_output
            source.lines.append("    # A copy of it arrives.")
            source.call("app.send_again", [self._text(name), str(place)])
            return
        if row["envelope"] is None:
            raise ConfigurationError(
                f"Message {row['message']} is too large to be kept, so its story cannot be copied."
            )
        envelope = Envelope.read(Json.of(row["envelope"]).text)
        _, message = self._types[row["entity"]["type"]].read(envelope)
        name = "key" if row["asked"] else "message_id"
        given = [f"{name}={self._text(envelope.id)}", f"source={self._text(envelope.source)}"]
        indent = 1
        if all(one["outcome"] == "failed" for one in act.rows if one["message"] == row["message"]):
            raises, error = source.imported("pytest", "raises"), source.imported("exactlyonce", "ExactlyOnceError")
            source.lines.append(f"    with {raises}({error}):  # Its handler raises.")
            indent = 2
        to = self._entity(row["entity"]["type"])
        source.call("app.ask" if row["asked"] else "app.send", [to, source.value(message), *given], indent)

    def _faults(self, act: Act) -> Iterator[str]:
        """What went wrong in all that followed from an act. Each fault counts the steps like its own from the beginning."""
        steps = [(step, row["entity"]["type"]) for row in act.rows for step in row["steps"]]
        steps.sort(key=lambda one: one[0]["number"])
        for step, type in steps:
            if (lost := step.get("lost")) is not None:
                skip = _earlier(steps, step["number"], type, None)
                yield f'    # "{step["title"]}": {_LOSSES[lost]}.'
                yield f"    app.lose({'None, ' * skip}{self._text(lost)}, of={self._entity(type)})"
        for row in act.rows:
            if row["outcome"] == LOST:
                yield from self._kill(row, steps)

    def _kill(self, row: Row, steps: Steps) -> Iterator[str]:
        type = row["entity"]["type"]
        when, effect, title, number = self._end(row)
        skip = _earlier(steps, number, type, effect)
        yield f'    # The process is killed {when} "{title}".'
        more = f", skip={skip}" if skip else ""
        yield f"    app.kill({self._text(when)}, {self._text(effect)}, of={self._entity(type)}{more})"

    def _end(self, row: Row) -> tuple[str, str, str, float]:
        """Where a process was killed: when, at which effect, its title, and the number of that step.

        Nobody chose a step for some kills; the process is known to have made the latest one that was told. Reads change
        nothing, so a kill at one is a kill before the commit.
        """
        last = row["steps"][-1]["number"] if row["steps"] else math.inf
        done = [step for step in row["steps"] if step["effect"] in STEPS]
        chosen = row.get("killed")
        if chosen is not None and chosen["effect"] in STEPS:
            return chosen["when"], chosen["effect"], chosen["title"], last + (chosen["when"] == "before")
        if done and chosen is None:
            return "after", done[-1]["effect"], done[-1]["title"], done[-1]["number"]
        commit = "SaveBatch" if self._types[row["entity"]["type"]].strategy.companions else "SaveEntity"
        return "before", commit, chosen["title"] if chosen else "its first write", last + 1

    def _expected(self, states: Mapping[EntityRef, object]) -> Iterator[str]:
        source = self._source
        for ref, state in states.items():
            key = self._text(ref.id)
            if ref.partition != (ref.id,):
                key = f"{source.imported('exactlyonce', 'EntityKey')}({key}, {source.value(ref.partition)})"
            found = f"    assert app.state({self._entity(ref.type)}, {key})"
            yield f"{found} is None" if state is None else f"{found} == {source.value(state)}"
        for name, messages in self._flow.sent.items():
            if name not in self._flow.takers and not any(row.get("destination") == name for row in self._flow.rows):
                yield f"    assert len(app.outputs({self._text(name)})) == {len(messages)}"
        if not any(row["outcome"] in ("parked", "failed") for row in self._flow.rows):
            yield "    assert app.parked() == ()"

    def _minutes(self, row: Row) -> int:
        """Minutes from the first delivery to this event, and one more, in which the sweeper comes."""
        first = datetime.fromisoformat(self._flow.rows[0]["at"])
        return math.ceil((datetime.fromisoformat(row["at"]) - first).total_seconds() / 60) + 1

    def _entity(self, type: str) -> str:
        return self._source.name(self._types[type]) or identifier(type)

    def _text(self, value: str) -> str:
        return self._source.value(value)


def _earlier(steps: Steps, number: float, type: str, effect: str | None) -> int:
    """How many steps came before one that `App` counts as like it: of that effect, or any write."""
    return sum(
        one.get("sends", 1)
        for one, other in steps
        if one["number"] < number
        and other == type
        and (one["effect"] == effect if effect is not None else one["kind"] == "write")
    )
