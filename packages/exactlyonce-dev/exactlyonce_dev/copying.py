"""Copies what happened, faults included, as a test of the app in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

import exactlyonce
from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.calls import Api
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting import ExactlyOnce
from exactlyonce.hosting.caller import FIRST_DELAY, LONGEST_DELAY, content_of
from exactlyonce.testing.interruptions import STEPS
from exactlyonce.transports.http import Received
from exactlyonce.values.envelope import EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from exactlyonce_dev.flow import LATER, Act, Flow, Row, time_of
from exactlyonce_dev.literals import Names, Source, identifier
from exactlyonce_dev.story import LOST

_LOSSES: Final = {
    "reply": "it is applied, and its reply is lost",
    "request": "its request is lost, and nothing is applied",
}
_REFUSED_CONNECTION: Final = ("Connector", "Refused", "DNS")
_MINUTE: Final = 60
_LEAST_PAUSE: Final = 1.0
"""Seconds after the last act that make a pause: less is the time that messages take, which is none in memory."""
Steps = Sequence[tuple[Row, str]]
"""Steps in the order of time, each with the type of its entity."""


@dataclass(frozen=True)
class Style:
    """What a test says of a flow.

    Attributes:
        timed: whether it has the clock of the flow, and its pauses.
        slow: whether messages take the time that they took, and so come in that order.
        brief: whether it names only those entity types and destinations that the flow came to.
        expects: whether it expects anything.
        end: by entity the body to expect in place of what the flow led to, where only times differ.
        answers: whether it expects the bodies of answers, too.
    """

    timed: bool = True
    slow: bool = False
    brief: bool = False
    expects: bool = True
    end: Mapping[EntityRef, Any] | None = None
    answers: bool = True


def copied(flow: Flow, once: ExactlyOnce, names: Names, style: Style) -> str:
    """The source code of a test that plays a flow, and expects the answers and the states that it has led to.

    Raises:
        ConfigurationError: a message was too large to be kept.
    """
    return _Copy(flow, once, names, style).text()


class _Copy:
    def __init__(self, flow: Flow, once: ExactlyOnce, names: Names, style: Style) -> None:
        self._flow = flow
        self._once = once
        self._style = style
        self._source = Source(names)
        self._types: dict[str, Entity[Any]] = {entity.name: entity for entity in once.entities}
        self._apis = {
            destination.name: destination for destination in once.destinations if isinstance(destination, Api)
        }
        self._acts = flow.acts()
        self._start = self._started()
        self._seconds = 0.0  # Since the start, by the clock of the test.
        self._order = {row["id"]: place for place, row in enumerate(flow.rows)}
        # Of each act the place of its last row, and when that surely came by the clock of the test.
        self._over: list[tuple[int, float]] = []
        # Of each delivery that fails while time passes its place, and its error.
        self._failing: list[tuple[int, str]] = []

    def text(self) -> str:
        source = self._source
        chosen = next((item.row for item in self._acts if item.row["message"] in self._flow.own), None)
        about = identifier((chosen or self._flow.rows[0])["entity"]["name"])
        source.lines.append(f"def test_what_happened_to_{about}() -> None:")
        source.imported("exactlyonce.testing", "App")
        if len(self._replies) > 1:
            source.lines.append("    replies = {  # By the idempotency keys of the calls.")
            source.lines += [f"        {self._text(id)}: {reply}," for id, reply in self._replies.items()]
            source.lines.append("    }")
        source.call("app = App", self._application())
        for ref, body in self._flow.beginning.items():
            if body is not None:
                source.call("app.given", [self._entity(ref.type), self._key(ref), self._state(ref, body)])
        for name, delays in self._transits().items():
            destination = next(item for item in self._once.destinations if item.name == name)
            source.call("app.slow", [source.name(destination) or self._text(name), *map(self._span, delays)])
        for act in self._acts:
            source.lines.append("")
            self._pass_until(act)
            if act.row["outcome"] != LATER:
                faults = list(self._faults(act))
                source.lines += faults
                self._play(act)
                needed = (_MINUTE if any("app.trouble" not in line for line in faults) else 0) + self._backoff(act)
                self._over.append((self._order[act.rows[-1]["id"]], self._seconds + needed))
        self._pass_at_last()
        if self._style.expects:
            source.lines.append("")
            source.lines += self._expected()
        return str(source)

    # The application

    def _application(self) -> Iterator[str]:
        """The arguments of `App`."""
        flow, source = self._flow, self._source
        reached: set[str | None] | None = None
        if self._style.brief:
            reached = {place for row in flow.rows for place in (row.get("destination"), row["entity"].get("type"))}
            reached |= flow.sent.keys()
        yield from (self._entity(name) for name in self._types if reached is None or name in reached)
        shown = [
            destination for destination in self._once.destinations if reached is None or destination.name in reached
        ]
        if listed := [source.name(item) or self._declared(item) for item in shown]:
            yield f"destinations=({', '.join(listed)}{',' if len(listed) == 1 else ''})"
        leading = {item.name for item in shown if isinstance(item, Destination) and item.to is not None}
        if taken := {name: type for name, type in flow.takers.items() if name not in leading and type in self._types}:
            yield f"queues={{{', '.join(f'{self._text(name)}: {self._entity(type)}' for name, type in taken.items())}}}"
        if apis := [item for item in shown if isinstance(item, Api)]:
            yield f"apis={{{', '.join(f'{self._api(api)}: {self._stand_in()}' for api in apis)}}}"
        if self._style.timed:
            yield f"now={source.value(self._start)}"

    def _declared(self, destination: Destination | Api) -> str:
        """A destination that no module names."""
        given = [self._text(destination.name)]
        if isinstance(destination, Destination) and destination.receives:
            models = (self._source.name(model) or model.__name__ for model in destination.receives)
            given.append(f"receives=({', '.join(models)},)")
        if isinstance(destination, Destination) and isinstance(destination.to, Entity):
            given.append(f"to={self._entity(destination.to.name)}")
        return f"{self._source.imported('exactlyonce', 'Destination')}({', '.join(given)})"

    # Calls

    def _stand_in(self) -> str:
        """The function in the place of a service: it answers as the service was seen to answer."""
        replies = list(self._replies.values())
        if len(replies) > 1:
            return "lambda request: replies[request.key]"
        return f"lambda _: {replies[0] if replies else self._source.imported('exactlyonce.testing', 'Response') + '()'}"

    @cached_property
    def _replies(self) -> dict[str, str]:
        """By the id of a call its final answer, as an expression."""
        replies = {}
        for id, api in self._calls.items():
            final = [item for item in self._flow.tries.get(id, ()) if _is_final(item)]
            if final:
                replies[id] = self._response(content_of(_as_received(final[-1]), api.headers))
        for row in self._flow.rows:
            envelope = row.get("envelope") or {}
            content = envelope.get("data") or {}
            call = envelope.get("replyto")
            if call in self._calls and call not in replies and content.get("outcome") == "answered":
                replies[call] = self._response(content)
        return replies if len(set(replies.values())) > 1 else dict(list(replies.items())[:1])

    @cached_property
    def _calls(self) -> dict[str, Api]:
        """The calls of the flow, by id."""
        return {
            output["id"]: self._apis[output["destination"]]
            for row in self._flow.rows
            for output in row["outputs"]
            if output["destination"] in self._apis
        }

    def _response(self, content: Mapping[str, Any]) -> str:
        """An answer of a service, as an expression."""
        given = [repr(content["status"])]
        if content["body"] is not None:
            given.append(self._source.value(content["body"]))
        headers = {
            name: value
            for name, value in content["headers"].items()
            if name.lower() != "content-type" or not value.startswith("application/json")
        }
        if headers:
            given.append(("headers=" if len(given) == 1 else "") + self._source.value(headers))
        return f"{self._source.imported('exactlyonce.testing', 'Response')}({', '.join(given)})"

    def _tried(self, act: Act) -> dict[str, list[Mapping[str, Any]]]:
        """By the service what came of the tries of all calls that followed from an act, in order."""
        tried: dict[str, list[Mapping[str, Any]]] = {}
        for id in dict.fromkeys(output["id"] for row in act.rows for output in row["outputs"]):
            if id in self._calls:
                tried.setdefault(self._calls[id].name, []).extend(self._flow.tries.get(id, ()))
        return {name: sorted(tries, key=lambda item: item.get("number", 0)) for name, tries in tried.items()}

    def _troubles(self, act: Act) -> Iterator[str]:
        """What went wrong with calls that followed from an act."""
        for name, tries in self._tried(act).items():
            while tries and _is_final(tries[-1]):
                tries.pop()
            if tries:
                api = self._api(self._apis[name])
                yield f"    app.trouble({', '.join([api, *(self._trouble(api, item) for item in tries)])})"

    def _trouble(self, api: str, mapping: Mapping[str, Any]) -> str:
        if _is_final(mapping):
            return f"{self._source.imported('datetime', 'timedelta')}(0)"
        if (failed := mapping.get("failed")) is None:
            headers = {name.title(): value for name, value in mapping["headers"].items() if name == "retry-after"}
            return self._response({"status": mapping["status"], "body": None, "headers": headers})
        if "Timeout" in failed:
            return f"2 * {api}.timeout"
        return self._text("down" if any(part in failed for part in _REFUSED_CONNECTION) else "lost")

    def _backoff(self, act: Act) -> float:
        """Seconds in which all tries of the calls of an act are surely made."""
        needed = 0.0
        for name, tries in self._tried(act).items():
            for place, one in enumerate([item for item in tries if not _is_final(item)]):
                asked = one.get("headers", {}).get("retry-after", "")
                late = self._apis[name].timeout.total_seconds() if "Timeout" in one.get("failed", "") else 0
                longest = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(place, 10))
                needed += late + max(longest, float(asked) if asked.isdigit() else 0.0)
        return math.ceil(needed)

    # Acts

    def _play(self, act: Act) -> None:
        source, row = self._source, act.row
        errors = self._errors(act)
        if act.of_output is not None:
            name, place = act.of_output
            source.lines.append("    # A copy of it arrives.")
            source.call("app.send_again", [self._text(name), str(place)], self._raising(errors, "Its handler raises."))
            return
        if row["envelope"] is None:
            raise ConfigurationError(
                f"Message {row['message']} is too large to be kept, so its story cannot be copied."
            )
        envelope = Envelope.read(Json.of(row["envelope"]).text)
        _, message = self._types[row["entity"]["type"]].read(envelope)
        name = "key" if row["asked"] else "message_id"
        given = [f"{name}={self._text(envelope.id)}", f"source={self._text(envelope.source)}"]
        arguments = [self._entity(row["entity"]["type"]), source.value(message), *given]
        if not row["asked"]:
            source.call("app.send", arguments, self._raising(errors, "Its handler raises."))
        elif "refused" in row:
            source.call("app.ask", arguments, self._raising([row["refused"]], "Another request had its key."))
        elif errors or not self._style.expects or "answer" not in row:
            source.call("app.ask", arguments, self._raising(errors, "A handler raises."))
        else:
            answer = row["answer"]
            source.call("answered = app.ask", arguments)
            status, body = repr(answer["status"]), source.value(answer["body"])
            if self._style.answers:
                source.call("assert (answered.status, answered.body) == ", [status, body])
            else:
                source.lines.append(f"    assert answered.status == {status}")

    def _errors(self, act: Act) -> list[str]:
        """The errors that an act raises at once; those of what takes time are kept until it has passed."""
        failing = [row for row in act.rows if self._flow.fails(row)]
        late = [item for item in failing if self._takes_time(item, act)]
        self._failing += [(self._order[item["id"]], _error_of(item)) for item in late]
        return [_error_of(item) for item in failing if item not in late]

    def _takes_time(self, row: Row, act: Act) -> bool:
        """Whether in memory time passes between an act and a delivery that followed from it."""
        cause = None if row["message"] == act.row["message"] else self._flow.cause(row)
        if cause is None or act.row["outcome"] == LATER:
            return False
        return self._style.slow or not all(map(_is_final, self._tries_before(row))) or self._takes_time(cause, act)

    def _tries_before(self, row: Row) -> Sequence[Mapping[str, Any]]:
        """The tries of the call that a message replies to; none for another message."""
        return self._flow.tries.get((row.get("envelope") or {}).get("replyto", ""), ())

    def _raising(self, errors: Sequence[str], why: str) -> int:
        """Expect the first of some errors, if there is any; return how deep what raises it stands."""
        if not errors:
            return 1
        raises = self._source.imported("pytest", "raises")
        module = "exactlyonce" if hasattr(exactlyonce, errors[0]) else "exactlyonce.errors"
        error = self._source.imported(module, errors[0])
        self._source.lines.append(f"    with {raises}({error}):  # {why}")
        return 2

    def _faults(self, act: Act) -> Iterator[str]:
        """What went wrong in all that followed from an act. Each fault counts the steps like its own from the beginning."""
        steps = [(step, row["entity"]["type"]) for row in act.rows for step in row["steps"]]
        steps.sort(key=lambda item: item[0]["number"])
        for step, type in steps:
            if (lost := step.get("lost")) is not None:
                skip = _earlier(steps, step["number"], type, None)
                yield f'    # "{step["title"]}": {_LOSSES[lost]}.'
                yield f"    app.lose({'None, ' * skip}{self._text(lost)}, of={self._entity(type)})"
        for row in act.rows:
            if row["outcome"] == LOST:
                yield from self._kill(row, steps)
        yield from self._troubles(act)

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

    # Time

    def _started(self) -> datetime:
        """The time at the start: that of the first act, or somewhat before, so that the sweeper comes when it came."""
        first = time_of(self._acts[0].row if self._acts else self._flow.rows[0])
        released = next((self._came(act.row) for act in self._acts if act.row["outcome"] == LATER), first)
        phase = (released - first).total_seconds() % _MINUTE
        return first - timedelta(seconds=_MINUTE - phase) if phase and self._style.timed else first

    def _transits(self) -> dict[str, list[float]]:
        """By destination how many seconds each message took to come there, in the order in which they were sent."""
        sent: list[tuple[datetime, int, str, float]] = []
        begun = {id(act.row) for act in self._acts}
        later = {item["message"] for act in self._acts if act.row["outcome"] == LATER for item in act.row["outputs"]}
        came: set[str] = set()
        for row in self._flow.rows if self._style.slow else ():
            again = row["message"] in came and id(row) not in begun  # It is the same copy.
            came.add(row["message"])
            if not again and row.get("destination") and row.get("envelope") and not row["asked"]:
                cause = None if id(row) in begun or row["message"] in later else self._flow.cause(row)
                sender = cause or row
                delays = (item.get("delay", 0.0) for item in sender["outputs"] if item["message"] == row["message"])
                # In memory an answer takes no time, but tries that went wrong do.
                is_sent_at_once = all(map(_is_final, self._tries_before(row)))
                at = time_of(sender) if is_sent_at_once else datetime.fromisoformat(row["envelope"]["time"])
                seconds = (time_of(row) - at).total_seconds() - next(delays, 0.0)
                sent.append((at, self._order[sender["id"]], row["destination"], seconds))
        transits: dict[str, list[float]] = {}
        for *_, name, seconds in sorted(sent, key=lambda item: item[:2]):
            transits.setdefault(name, []).append(max(seconds, 0.0))
        return {name: transit for name, transit in transits.items() if any(transit)}

    def _span(self, seconds: float) -> str:
        shown = _digits(seconds)
        return f"{self._source.imported('datetime', 'timedelta')}({'' if shown == '0' else f'seconds={shown}'})"

    def _came(self, later: Row) -> datetime:
        """When a message was handled that was published later."""
        ids = {item["message"] for item in later["outputs"]}
        return next((time_of(row) for row in self._flow.rows if row["message"] in ids), time_of(later))

    def _pass_until(self, act: Act) -> None:
        """Let time pass until an act."""
        if act.row["outcome"] == LATER:
            due = self._until(self._came(act.row)) + self._seconds
            sweeps = math.ceil(round(due / _MINUTE, 6)) + (not self._style.timed)
            # It may have to try again. Without the clock of the flow there is a minute for that.
            pause = sweeps * _MINUTE - self._seconds + self._style.timed
            self._failing += [(-1, error) for error in self._errors(act)]
            self._advance(max(pause, self._needed(act)), act, "  # Until the sweeper publishes what is due.")
        else:
            pause = self._until(time_of(act.row)) if self._style.timed else 0.0
            self._advance(max(pause, self._needed(act)), act)

    def _until(self, at: datetime) -> float:
        """Seconds until a time of the flow, by the clock of the test."""
        return (at - self._start).total_seconds() - self._seconds

    def _place(self, act: Act | None) -> float:
        return math.inf if act is None else self._order[act.row["id"]]

    def _needed(self, act: Act | None = None) -> float:
        """Seconds that have to pass before an act, or at last: what came before it is over, what came after it need not be."""
        ready = (ready for place, ready in self._over if place < self._place(act))
        return max(ready, default=0.0) - self._seconds

    def _pass_at_last(self) -> None:
        """Let time pass until all has happened that followed."""
        pause = self._until(max(map(time_of, self._flow.rows))) if self._style.timed else 0.0
        needed = self._needed()
        if needed > 0 or pause >= _LEAST_PAUSE or (pause > 0 and self._style.slow):
            self._source.lines.append("")
            self._advance(max(math.ceil(pause), needed))

    def _advance(self, seconds: float, act: Act | None = None, why: str = "") -> None:
        """Let seconds pass until an act, or at last."""
        seconds = round(seconds, 6)
        if seconds <= 0:
            return
        self._seconds += seconds
        spelled = f"minutes={seconds // _MINUTE:.0f}" if seconds % _MINUTE == 0 else f"seconds={_digits(seconds)}"
        errors = [error for place, error in self._failing if place < self._place(act)]
        self._failing = [item for item in self._failing if item[0] >= self._place(act)]
        depth = self._raising(errors, "A handler raises.")
        self._source.lines.append(f"{'    ' * depth}app.advance({spelled}){why}")

    # The end

    def _expected(self) -> Iterator[str]:
        flow, other = self._flow, self._style.end or {}
        for ref, body in flow.end.items():
            present = f"    assert app.state({self._entity(ref.type)}, {self._key(ref)})"
            if ref in other:
                yield "    # Its times are those of the test: in memory messages take no time, and retries come at other times."
                body = other[ref]  # noqa: PLW2901
            yield f"{present} is None" if body is None else f"{present} == {self._state(ref, body)}"
        for name, messages in flow.sent.items():
            if name not in flow.takers and not any(row.get("destination") == name for row in flow.rows):
                yield f"    assert len(app.outputs({self._text(name)})) == {len(messages)}"
        failed = dict.fromkeys(
            row["message"]
            for row in flow.rows
            if not row.get("asked") and "type" in row["entity"] and row["outcome"] != LATER and flow.fails(row)
        )
        parked = {row["message"] for row in flow.rows if row["outcome"] == "parked"}
        if not failed:
            yield "    assert app.parked() == ()"
        elif parked >= failed.keys():
            yield f"    assert [one.id for one in app.parked()] == {self._source.value(list(failed))}"

    # Names and values

    def _state(self, ref: EntityRef, body: Any) -> str:
        return self._source.value(self._types[ref.type].shape.read(ref, Json.of(body)))

    def _key(self, ref: EntityRef) -> str:
        key = self._text(ref.id)
        if ref.partition == (ref.id,):
            return key
        return f"{self._source.imported('exactlyonce', 'EntityKey')}({key}, {self._source.value(ref.partition)})"

    def _entity(self, type: str) -> str:
        return self._source.name(self._types[type]) or identifier(type)

    def _api(self, api: Api) -> str:
        return self._source.name(api) or identifier(api.name)

    def _text(self, value: str) -> str:
        return self._source.value(value)


def _digits(seconds: float) -> str:
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def _error_of(row: Row) -> str:
    """The class of the error with which a delivery failed."""
    return str(row["reason"]).partition(":")[0]


def _as_received(mapping: Mapping[str, Any]) -> Received:
    body = mapping["body"]
    return Received(mapping["status"], mapping["headers"], None if body is None else body.encode())


def _is_final(mapping: Mapping[str, Any]) -> bool:
    return "failed" not in mapping and _as_received(mapping).is_final


def _earlier(steps: Steps, number: float, type: str, effect: str | None) -> int:
    """How many steps came before one that `App` counts as like it: of that effect, or any write."""
    return sum(
        item.get("sends", 1)
        for item, other in steps
        if item["number"] < number
        and other == type
        and (item["effect"] == effect if effect is not None else item["kind"] == "write")
    )
