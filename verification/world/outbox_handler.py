"""The model's handler for the outbox: its state and outputs contain the messages that were handled, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

from exactlyonce import Outbox
from exactlyonce.attempt import Before, Handled, Work
from exactlyonce.handling.runner import AgeCheck
from exactlyonce.protocols.outbox.due import RELEASE
from exactlyonce.records.ledger import ReplyTo
from exactlyonce.records.outbox import LARGE, Answer, Output, numbered
from exactlyonce.values.envelope import (
    STABLE_TIME,
    Envelope,
    key_of,
    message_hash,
    message_key,
    milliseconds,
    stable_text,
)
from exactlyonce.values.frozen_json import Json
from verification.world.scenario import AT, TICK, Ages, Request, Scenario
from verification.world.store import entity_ref, token_at

LARGE_BODY: Final = "large"
"""Of a request whose answer is large."""
PADDING: Final = (("X-Padding", "x" * LARGE),)
CHANNEL: Final = "sent1"
"""The channel of outputs that have numbers. What ships begins another one in each attempt."""
_RECEIVER: Final = "reader/r"
CANCELLED: Final = "!"
"""What the output of a message says besides if its handler was told that it cancelled a kept one."""


@cache
def envelope_of(
    number: int, since: datetime | None = None, request: Request | None = None, reply: ReplyTo | None = None
) -> Envelope:
    """The message with this number in the scenario; timed if `since` is given."""
    extensions = () if reply is None else reply.extensions
    if since is not None:
        extensions = (*extensions, (STABLE_TIME, stable_text(milliseconds(since))))
    if request is None:
        return Envelope("web", f"m{number}", "test", Json("{}"), extensions=extensions)
    opened = token_at(request.key + 1) if request.opened else None
    id = f"m{request.key}"
    return Envelope("web", id, "test", Json("{}"), extensions=extensions, asked=request.body, opened=opened)


def envelope_in(scenario: Scenario, number: int) -> Envelope:
    """A message of a scenario, as it is sent."""
    answered = scenario.replies[number] if scenario.replies else None
    reply = None
    if answered is not None:
        reply = ReplyTo(call_of(answered.call), answered.version, entity_ref(scenario.target(number)).source)
    untimed = reply is not None or ((request := scenario.request(number)) is not None and request.opened)
    since = None if untimed or scenario.ages is not None else since_of(scenario, number)
    return envelope_of(number, since, scenario.request(number), reply)


def since_of(scenario: Scenario, number: int) -> datetime | None:
    """The time that all copies of a message have; None of an untimed one."""
    minutes = scenario.since[number] if scenario.since else 0
    return None if minutes is None else AT + timedelta(minutes=minutes)


@cache
def dated(number: int, time: datetime) -> Envelope:
    """The message with this number, which came about at this time."""
    return replace(envelope_of(number), time=time)


@cache
def sent_again(output: Output) -> str | None:
    """The key of the message that this is, if it is one that is sent again, and not what a handler sent."""
    sent = output.envelope.value
    return message_key(sent["source"], sent["id"]) if sent.get("type") == "test" else None


@cache
def key_of_number(number: int, request: Request | None = None) -> str:
    """Its key."""
    return key_of(envelope_of(number, request=request))


def keys_in(scenario: Scenario) -> tuple[str, ...]:
    """The keys of the messages of a scenario."""
    return tuple(key_of_number(number, scenario.request(number)) for number in range(len(scenario.copies)))


@cache
def call_of(number: int) -> str:
    """The id of the call that the handler of a message makes."""
    return output_of(key_of_number(number), "").id


def callers(scenario: Scenario) -> frozenset[str]:
    """The keys of the messages whose handlers make calls."""
    return frozenset(key_of_number(reply.call) for reply in scenario.replies if reply is not None)


def keepers(scenario: Scenario) -> frozenset[str]:
    """The keys of the messages whose output is kept."""
    return frozenset(map(key_of_number, scenario.keeps))


def cancellers(scenario: Scenario) -> dict[str, str]:
    """By the key of each message that cancels a kept output, the key of the message that keeps it."""
    numbered = enumerate(scenario.cancels)
    return {key_of_number(number): key_of_number(kept) for number, kept in numbered if kept is not None}


def sends(scenario: Scenario) -> dict[str, Any]:
    """What handlers of a scenario do with outputs, as arguments of `handle`."""
    return {"calls": callers(scenario), "keeps": keepers(scenario), "cancels": cancellers(scenario)}


def release_of(key: str) -> str:
    """The key of the release of what a message keeps."""
    return message_key("out", f"{RELEASE}{key}")


def hash_of_release(key: str) -> str:
    """The hash of that release."""
    return message_hash(message_key("out", f"{RELEASE}{key}"))


def released_by(key: str) -> str | None:
    """The key of the message whose kept output a release sends; None if the key is of no release."""
    source, _, id = key.partition("/")
    return unquote(id).removeprefix(RELEASE) if source == "out" else None


def brought(scenario: Scenario, number: int, output: Output) -> tuple[int, ...]:
    """The messages that an output of a message brings: what it is for another entity, and replies if it is a call."""
    fed = scenario.fed(number)
    version = output.envelope.value.get("version", 0)
    return (*scenario.replying(number, version), *(() if fed is None else (fed,)))


def handle(
    before: Before,
    envelope: Envelope,
    *,
    deletes: str | None,
    entity: str,
    dates: bool = False,
    numbers: bool = False,
    calls: frozenset[str] = frozenset(),
    keeps: frozenset[str] = frozenset(),
    cancels: Mapping[str, str] = MappingProxyType({}),
) -> Handled:
    """Append the message to the history, and send the history on which it was handled.

    Args:
        before, envelope: as for every handler.
        deletes: key of the message that deletes the entity; None if none does.
        entity: id of the entity.
        dates: whether outputs carry their time.
        numbers: whether outputs have numbers.
        calls: keys of the messages whose outputs are calls.
        keeps: keys of the messages whose outputs are kept.
        cancels: by the key of a message that of the one whose kept output it cancels.
    """
    history = before.body.value["history"] if before.body is not None else ""
    key = key_of(envelope)
    state = Json.of({"id": entity, "history": grown(history, key)})
    cancelled = (before.kept or frozenset()) & {f"out:{cancels.get(key)}"}
    said = f"{said_on(history, envelope.asked)}{CANCELLED if cancelled else ''}"
    if key in keeps:
        kept = ((AT, output_of(key, said, AT)),)
        return Handled(state, deleted=key == deletes, sequences=before.sequences, kept=kept)
    is_call = key in calls
    output = output_of(key, said, before.at if dates else None, before.version if is_call else None)
    if not numbers:
        headers = PADDING if envelope.asked == LARGE_BODY else ()
        answer = None if envelope.asked is None else Answer(200, headers, said, envelope.asked)
        made = (output.id,) if is_call else ()
        return Handled(
            state,
            (output,),
            deleted=key == deletes,
            sequences=before.sequences,
            answer=answer,
            calls=made,
            cancelled=cancelled,
        )
    sequences, place = numbered(before.sequences, output.destination, _RECEIVER, CHANNEL)
    output = replace(output_of(key, f"{said}#{place.number}"), place=place)
    return Handled(state, (output,), deleted=key == deletes, sequences=sequences)


def release(before: Before, kept: Output, *, absent: Json) -> Handled:
    """Send a kept output. The state stays; so does a tombstone, with this document."""
    deleted = before.body is None
    return Handled(before.body or absent, (kept,), deleted, before.sequences, cancelled=frozenset({kept.id}))


def grown(history: str, key: str) -> str:
    """The history with one more message."""
    return f"{history}>{key.partition('/')[2]}"


def said_on(history: str, body: str | None) -> str:
    """What output and answer say that a message was handled on: the history, and the body of its request if it came by one."""
    return history if body is None else f"{history}?{body}"


@cache
def output_of(key: str, history: str, time: datetime | None = None, version: int | None = None) -> Output:
    """What the handler sends for a message it handled on this history, at this time if outputs carry theirs.

    A call carries the version that its commit produces.
    """
    data = Json.of({"message": key, "on": history} | ({} if version is None else {"version": version}))
    if time is None:
        return Output(f"out:{key}", "out", data)
    return Output(f"out:{key}", "out", Envelope("out", key, "out", data, time).to_json())


@cache
def content_of(output: Output) -> tuple[str, str]:
    """Message and history that an output names."""
    sent = output.envelope.value
    sent = sent.get("data", sent)
    return sent["message"], sent["on"]


def aged(work: Work, messages: tuple[int, ...], ages: Ages, *, heard: bool = True, tick: int = 0) -> Work:
    """The work where messages have an age: they carry their time, and are judged by it.

    Args:
        work: to be done.
        messages: their numbers.
        ages: of the scenario.
        heard: whether the process that does it has heard of the last change of the retention.
        tick: at which it begins.
    """
    lifetimes = ages.known(heard=heard)
    return replace(
        work,
        messages=tuple(
            _at(envelope, AT + (tick if ages.arriving else ages.times[number]) * TICK, timed=number not in ages.untimed)
            for number, envelope in zip(messages, work.messages, strict=True)
        ),
        handle=AgeCheck(work.handle, work.entity, lifetimes, Outbox().forgets) if ages.judges else work.handle,
        retention=lifetimes.retention.kept(AT + tick * TICK) if ages.trimmed is None else ages.trimmed * TICK,
        refusal=lifetimes.refusal,
        send_limit=lifetimes.send_limit(AT + tick * TICK),
        page_lifetime=lifetimes.retention.kept(AT + tick * TICK),
    )


def _at(envelope: Envelope, time: datetime, *, timed: bool) -> Envelope:
    """The message as it was sent at a time."""
    stable = ((STABLE_TIME, stable_text(milliseconds(time))),) if timed else ()
    return replace(envelope, time=time, extensions=(*envelope.extensions, *stable))
