"""The model's handler for the outbox, and its judge. State and outputs contain the messages handled so far, in their order."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Before, Handled, Work
from exactlyonce.handling.runner import AgeCheck
from exactlyonce.protocols.outbox.due import RELEASE
from exactlyonce.records.ledger import Ledger, ReplyTo, hash_in, split
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
from verification.world.store import Entity, Library, Store, entity_ref, history_of, is_removed, ledger_of, token_at
from verification.world.writes import Commit, Committed, Judge

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
    return replace(envelope_of(number), time=time)


@cache
def sent_again(output: Output) -> str | None:
    """The key of the message that this is, if it is one that is sent again, and not what a handler sent."""
    sent = output.envelope.value
    return message_key(sent["source"], sent["id"]) if sent.get("type") == "test" else None


@cache
def key_of_number(number: int, request: Request | None = None) -> str:
    return key_of(envelope_of(number, request=request))


def keys_in(scenario: Scenario) -> tuple[str, ...]:
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
    return message_key("out", f"{RELEASE}{key}")


def hash_of_release(key: str) -> str:
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
        deletes: key of the message that deletes the entity; None if none does.
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
    sent = output.envelope.value
    sent = sent.get("data", sent)
    return sent["message"], sent["on"]


def aged(work: Work, messages: tuple[int, ...], ages: Ages, *, heard: bool = True, tick: int = 0) -> Work:
    """The work where messages have an age: they carry their time, and are judged by it.

    Args:
        heard: whether the process that does it has heard of the last change of the retention.
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
    stable = ((STABLE_TIME, stable_text(milliseconds(time))),) if timed else ()
    return replace(envelope, time=time, extensions=(*envelope.extensions, *stable))


ENTITY = entity_ref(0)
OVERWRITTEN = "serial_execution: a commit was overwritten by one that did not know of it"


class OutboxJudge(Judge):
    """Judges what happens in one scenario of the outbox. `committed` has the history that each message was handled on."""

    @cached_property
    def _by_hash(self) -> Mapping[str, str]:
        released = ((hash_of_release(key), release_of(key)) for key in self._keepers)
        return dict([*((message_hash(key), key) for key in self.keys), *released])

    @cached_property
    def _keepers(self) -> frozenset[str]:
        return keepers(self.scenario)

    @cached_property
    def _cancellers(self) -> Mapping[str, str]:
        """By the key of each message that cancels a kept output, the key of the message that keeps it."""
        return cancellers(self.scenario)

    @property
    def _deletes(self) -> str | None:
        """Key of the message that deletes the entity; None if none does."""
        return self.keys[-1] if self.scenario.deletes else None

    def outputs(self, outputs: tuple[Output, ...], store: Store) -> str | None:
        for output in outputs:
            key, history = content_of(output)
            released = release_of(key)
            if key in self._keepers and (released, history) not in store.committed:
                return f"no_ghost_output: the kept output of {key} is published, but was never released"
            if (key, history) in store.committed:
                if output.place is not None and not history.endswith(f"#{output.place.number}"):
                    return f"in_sequence: the output of {key} is sent with number {output.place.number}"
                continue
            if any(key == committed for committed, _ in store.committed):
                return f"consistent_state_and_output: another output of {key} is published than was committed"
            return f"no_ghost_output: {key} is published, but was never committed"
        return None

    def lost(self, key: str, store: Store) -> str | None:
        if key in store.parked:
            return None
        if not any(key == committed for committed, _ in store.committed):
            return f"nothing_lost: {key} is acknowledged, but was never committed"
        if key not in store.published | store.overdue | self._keepers:
            return f"nothing_lost: {key} is acknowledged, but its output was never published"
        return None

    def left_undone(self, store: Store, but: Container[str] = ()) -> str | None:
        """The violation if nobody is at work any more: a message that is lost, or staged outputs that no entry names."""
        committed = {key for key, _ in store.committed}
        numbered = zip(self.keys, self.scenario.copies, strict=True)
        waits = not self.scenario.requests
        told = store.emptied or any(map(is_removed, store.entities, store.libraries))
        forgiven = set(self.keys) if told else store.undone - committed
        expected = (
            key
            for key, copies in numbered
            if ((copies and waits) or key in committed) and key not in but and key not in forgiven
        )
        undone = self.first_lost(expected, store)
        if (
            undone is None
            and self.scenario.budget.cleanings
            and any(map(_has_garbage, store.entities, store.libraries))
        ):
            undone = "no_garbage: all is done, and staged outputs are left that no entry names"
        return undone or self._awaited(store) or self._kept(store)

    def _awaited(self, store: Store) -> str | None:
        """The violation if a reply is awaited that does not lie parked: nobody is at work, so it will not come."""
        replies = enumerate(self.scenario.replies)
        parked = {
            call_of(item.call) for number, item in replies if item is not None and self.keys[number] in store.parked
        }
        awaited = (call for entity in store.entities for call in entity.ledger.calls if call not in parked)
        return next((f"nothing_lost: the reply to {call} is awaited, and none is left" for call in awaited), None)

    def _kept(self, store: Store) -> str | None:
        """The violation if a message is still kept, or was released and not published: a sweep is to come."""
        kept = [item.id for entity in store.entities for item in entity.ledger.kept]
        released = (released_by(key) for key, _ in store.committed)
        kept += [key for key in released if key is not None and key not in store.published]
        return next((f"nothing_lost: {item} is due, and was not published" for item in kept), None)

    def commit(self, write: Commit, before: Entity, after: Entity, store: Store) -> tuple[Committed, str | None]:
        """What is committed once a write has taken effect, and the violation."""
        committed, violation = self._committed(write, before, store)
        return committed, violation or self._dropped(before.ledger, after.ledger, store)

    def _committed(self, write: Commit, entity: Entity, store: Store) -> tuple[Committed, str | None]:
        before, after = entity.ledger, ledger_of(write.document)
        old, marks = _hashes(before), _hashes(after)
        new = [self._by_hash.get(mark, mark) for mark in marks if mark not in old]
        written = history_of(write.document)
        if after.version == before.version:
            unchanged = written == history_of(entity.truth.document) or entity.truth.document is None
            unchanged = unchanged and before.kept == after.kept and not new
            return store.committed, None if unchanged else OVERWRITTEN
        if not written.startswith(entity.history):
            return store.committed, OVERWRITTEN
        handled = [f"web/{id}" for id in written.removeprefix(entity.history).split(">") if id]
        renewed = {message_hash(key): key for key in handled}
        new = [renewed.get(item, item) for item in new]
        made = _Made(entity.history, {item.id for item in before.kept}, dict(store.committed))
        violation = self._released(after, [item for item in new if released_by(item) is not None], made)
        for key in handled:
            violation = violation or self._handled(key, after, made, store)
        if violation is None and sorted(new) != sorted(
            (*handled, *(item for item in new if released_by(item) is not None))
        ):
            violation = "serial_execution: the marks of a commit are not those of its messages"
        if violation is None and after.version != before.version + len(new):
            violation = f"serial_execution: {len(new)} messages make version {after.version} of {before.version}"
        if made.kept != {item.id for item in after.kept}:
            violation = violation or "nothing_lost: a kept message was dropped, or comes back"
        deleted = self._deletes in handled if handled else before.deleted
        if deleted != after.deleted:
            violation = violation or "serial_execution: a deletion was lost or made up"
        return frozenset(made.committed.items()), violation

    def _released(self, after: Ledger, released: list[str], made: _Made) -> str | None:
        violation = None
        for release in released:
            keeper = released_by(release) or ""
            said = made.committed.get(keeper, "")
            if release in made.committed:
                violation = violation or f"released_once: the output of {keeper} is released a second time"
            elif f"out:{keeper}" not in made.kept:
                violation = violation or (
                    f"cancelled_is_never_released: the output of {keeper} is released, but was cancelled, or never kept"
                )
            elif self._says(after, hash_of_release(keeper)) not in (None, said):
                violation = violation or (
                    f"consistent_state_and_output: another output of {keeper} is released than was kept"
                )
            made.committed[release] = said
            made.kept.discard(f"out:{keeper}")
        return violation

    def _handled(self, key: str, after: Ledger, made: _Made, store: Store) -> str | None:
        if key in made.committed:
            return f"at_most_one_state_change: {key} is committed a second time"
        cancelled = made.kept & {f"out:{self._cancellers.get(key)}"}
        made.kept -= cancelled
        hash = message_hash(key)
        asked = next((answer.answer.asked for answer in after.answers if answer.cause == hash), None)
        entry = next((item for item in after.outbox if item.cause == hash), None)
        if asked is None and entry is not None and entry.answer is not None:
            asked = entry.answer.asked
        said = f"{said_on(made.history, asked)}{CANCELLED if cancelled else ''}"
        if key in self._keepers:
            made.kept.add(f"out:{key}")
        if self.scenario.numbers:
            said = f"{said}#{sum(not item.startswith('out/') for item in made.committed) + 1}"
        made.committed[key] = said
        made.history = "" if key == self._deletes else grown(made.history, key)
        if key in self.alone(store) & store.parked:
            return f"parked_is_unprocessed: {key} is committed, but it lies parked"
        if self._says(after, hash) not in (None, said):
            return f"serial_execution: {key} was not handled on the state it follows"
        return None

    @staticmethod
    def _says(ledger: Ledger, hash: str) -> str | None:
        """What the output that an outbox owes for a message says; None if it owes none."""
        entries = (item for item in ledger.outbox if item.cause == hash)
        outputs = (output for entry in entries for output in entry.owed_outputs(ENTITY, ledger.to, ledger.sequences))
        return next((content_of(output)[1] for output in outputs), None)

    def _dropped(self, before: Ledger, after: Ledger, store: Store) -> str | None:
        owing = {entry.tx for entry in after.outbox}
        for entry in before.outbox:
            if entry.tx in owing:
                continue
            document = store.libraries[0].now.get(f"request:{entry.request}")
            if document is not None and document.answer is None:
                return f"one_answer: the outbox drops the answer to {entry.request}, which was never kept"
            if not entry.outputs:
                continue
            key, _ = content_of(next(entry.owed_outputs(ENTITY, before.to, before.sequences)))
            if key not in store.published | store.overdue:
                return f"nothing_lost: the outbox drops {key}, but its output was never published"
        return None


@dataclass
class _Made:
    """What the messages of a commit made so far."""

    history: str
    kept: set[str]
    committed: dict[str, str]


def _hashes(ledger: Ledger) -> frozenset[str]:
    return frozenset(map(hash_in, split(ledger.marks)))


def _has_garbage(entity: Entity, library: Library) -> bool:
    named = entity.ledger.transactions
    staged = (id.removeprefix("staged:") for id in library.now if id.startswith("staged:"))
    return any(tx not in named for tx in staged)
