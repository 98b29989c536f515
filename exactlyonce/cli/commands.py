"""The commands. Exit codes: 0 done, 1 not done, 2 not understood, or not possible with the present settings."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from exactlyonce.cli.command import DONE, NOT_DONE, NOT_POSSIBLE
from exactlyonce.cli.tables import (
    application_lines,
    book_lines,
    discarding_lines,
    evidence_lines,
    group_lines,
    inspected_lines,
    parked_lines,
    plain,
    pretty,
    sequence_lines,
)
from exactlyonce.drivers.runtime import Clock, SystemClock
from exactlyonce.environment import use_local_settings
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import EntityKey
from exactlyonce.hosting.application import ExactlyOnce
from exactlyonce.hosting.upkeep.operator import (
    RATE,
    Action,
    Operator,
    Results,
    Selection,
    discarding,
    grouped,
    on_each,
    requeuing,
    selected,
)
from exactlyonce.protocols.outbox.judge import Proof
from exactlyonce.stores.port import ListedMessage
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import read_json
from exactlyonce.values.lifetimes import SETTLING_IN, Retention

# Commands on the whole application: the owner of the library's container, and the retention.


_NONE: Final = "the library's container has no owner yet: the application has never started"
_CHANGED: Final = "the application was changed by another command just now; nothing was done. Look at it again"
_GONE: Final = """\
The library's container keeps pages and documents by the name of the type. If a type {type} is declared again, in any
container, an entity that has such pages and no document is refused. Go on only if the type is gone for good, or if its
documents were moved unchanged, with their companions.
Nothing was changed. Say --yes to go on."""


async def _application(once: ExactlyOnce, options: argparse.Namespace) -> int:
    ownership = await once.ownership()
    stored = await ownership.stored()
    if stored is None:
        return _say(NOT_DONE, _NONE)
    if options.forget is None:
        return _say(DONE, *application_lines(stored))
    if not options.yes:
        return _say(NOT_POSSIBLE, _GONE.format(type=plain(options.forget)))
    return _say(DONE, "forgotten") if await ownership.forget(options.forget, stored) else _say(NOT_DONE, _CHANGED)


async def _retention(once: ExactlyOnce, options: argparse.Namespace) -> int:
    ownership = await once.ownership()
    stored = await ownership.stored()
    if stored is None:
        return _say(NOT_DONE, _NONE)
    present = stored.application.retention
    if not present.settled(stored.now):
        return _say(NOT_DONE, *application_lines(stored), "A change is under way; nothing was changed.")
    if options.new == present.current:
        return _say(DONE, f"it is {present.current} already")
    if not options.yes:
        return _say(NOT_POSSIBLE, *_effects(present, options.new), "Nothing was changed. Say --yes to go on.")
    if not await ownership.change_retention(options.new, stored):
        return _say(NOT_DONE, _CHANGED)
    return _say(DONE, "changed", *_effects(present, options.new))


def _effects(present: Retention, new: timedelta) -> Iterator[str]:
    """The effects of a change of the retention, and their times."""
    yield f"retention   {present.current}, then {new}"
    if new < present.current:
        yield "judged by   the new retention, in every process within an hour; older messages are parked from then on"
        yield f"kept for    the old retention for {SETTLING_IN} more, then the new retention"
    else:
        filled = SETTLING_IN + new - present.current
        grows = f"then growing with the time that passes, to the new retention after {filled}"
        yield f"judged by   the old retention for {SETTLING_IN} more, {grows}"
        yield "kept for    the new retention, by clean-ups that begin from now on"
    yield "Another change has to wait until then. EXACTLYONCE__retention, if set, has to be the new retention by then."


def _say(code: int, *lines: str) -> int:
    """Print lines, and return the exit code."""
    for line in lines:
        print(line)
    return code


# Settings of a function app in Azure, read by the app's name with the Azure CLI and its signed-in user.


_IDENTITY: Final = ("__clientId", "__credential")
"""Settings of the app's managed identity, which exists in Azure only. Here commands run as the signed-in user."""
_OF_THE_HOST: Final = ("APPLICATIONINSIGHTS_", "AzureFunctionsJobHost__", "FUNCTIONS_", "PYTHON_", "WEBSITE_")
"""Settings of the host and the worker: with them a command here would send telemetry in the name of the app."""
_REFERENCE: Final = "@Microsoft."
"""Beginning of a value that Azure takes from Key Vault or App Configuration."""


def use_azure_settings(name: str, environment: MutableMapping[str, str] = os.environ) -> None:
    """Add the settings of a function app in Azure to the environment.

    Args:
        name: name of the function app, in the present subscription of the Azure CLI.
        environment: takes the settings.

    Raises:
        ConfigurationError: the Azure CLI is missing or refuses; there is no such app, or several; the environment has a
            different value for a setting; or a setting of the library is a reference.
    """
    settings = dict(_settings(name))
    other = sorted(item for item, value in settings.items() if environment.get(item, value) != value)
    if other:
        raise ConfigurationError(
            f"The environment sets {', '.join(other)} to other values than the function app {name!r}: remove them from the "
            "environment, since a mixture could send messages to the queues of another application."
        )
    environment.update(settings)


def _settings(name: str) -> Iterator[tuple[str, str]]:
    ids = _az("resource", "list", "--name", name, "--resource-type", "Microsoft.Web/sites", "--query", "[].id")
    if len(ids) != 1:
        raise ConfigurationError(
            f"The subscription has {len(ids) or 'no'} function apps of the name {name!r}: correct the name, or choose another "
            "subscription with 'az account set'."
        )
    for item in _az("functionapp", "config", "appsettings", "list", "--ids", ids[0]):
        setting, value = str(item["name"]), str(item["value"])
        if setting.endswith(_IDENTITY) or setting.startswith(_OF_THE_HOST):
            continue
        if not value.startswith(_REFERENCE):
            yield setting, value
        elif setting.startswith(("COSMOS__", "EXACTLYONCE__")):
            raise ConfigurationError(
                f"{setting} of {name!r} is a reference: set it in the environment, and run this without --azure."
            )


def _az(*arguments: str) -> list[Any]:
    """The list that a command of the Azure CLI prints."""
    az = shutil.which("az")
    if az is None:
        raise ConfigurationError("--azure needs the Azure CLI: install it, and run 'az login'.")
    ran = subprocess.run([az, *arguments, "--output", "json"], capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode:
        said = (ran.stderr.strip().splitlines() or ["nothing"])[-1]
        raise ConfigurationError(f"The Azure CLI refused 'az {' '.join(arguments[:2])}'. It said: {said}")
    try:
        printed = json.loads(ran.stdout)
    except ValueError:
        printed = None
    if not isinstance(printed, list):
        raise ConfigurationError(f"The Azure CLI printed no list for 'az {' '.join(arguments[:2])}': update it.")
    return printed


# Commands on many parked messages.


_REQUEUING_ALL: Final = "Nothing was sent. Say --yes to send them, in this order, under their own ids."
_DISCARDING_ALL: Final = """\
Discarded messages are gone for good, bodies and all. Copies that still come are processed like any other message; and read
models in order wait for numbers that they lack. Nothing was changed. Say --yes to go on."""
_SECONDS_BETWEEN: Final = 1.0
"""Least time between two lines of progress."""
_MOST_SHOWN: Final = 20
"""Most messages that the text output names as still parked. JSON names all."""


async def _parked(once: ExactlyOnce, options: argparse.Namespace) -> int:
    operator = await once.operator()
    messages = await _selected(operator, options)
    if options.groups:
        groups = grouped(messages)
        return _say_json([asdict(group) for group in groups]) if options.json else _say(DONE, *group_lines(groups))
    if options.json:
        return _say_json([await _item(operator, message, options) for message in messages])
    _say(DONE, *(parked_lines(messages) if messages else ["nothing is parked"]))
    for item in messages:
        if options.bodies and (message := await operator.parked_message(item.entity, item.message)) is not None:
            _say(DONE, "", plain(item.message), pretty(message.envelope))
        if options.evidence and (evidence := await operator.evidence(item.entity, item.message)) is not None:
            _say(DONE, "", *evidence_lines(evidence))
    return DONE


async def _item(operator: Operator, entry: ListedMessage, options: argparse.Namespace) -> dict[str, Any]:
    """A parked message for JSON, with body and evidence if the arguments ask for them."""
    item = asdict(entry)
    if options.bodies and (message := await operator.parked_message(entry.entity, entry.message)) is not None:
        item["envelope"] = message.envelope.value
    if options.evidence and (evidence := await operator.evidence(entry.entity, entry.message)) is not None:
        item["hash"] = evidence.hash
        item["processed"] = {
            ref.key: proof._asdict() if isinstance(proof, Proof) else proof for ref, proof in evidence.receivers
        }
    return item


async def _requeue_all(once: ExactlyOnce, options: argparse.Namespace) -> int:
    operator = await once.operator()
    return await _all(operator, options, requeuing(operator, options.to), _REQUEUING_ALL)


async def _discard_all(once: ExactlyOnce, options: argparse.Namespace) -> int:
    operator = await once.operator()
    return await _all(operator, options, discarding(operator), _DISCARDING_ALL)


async def _all(operator: Operator, options: argparse.Namespace, action: Action, risk: str) -> int:
    messages, clock = await _selected(operator, options), SystemClock()
    if not options.yes:
        _say_selected(messages, risk, as_json=options.json)
        return NOT_POSSIBLE if messages else DONE
    results = await on_each(messages, action, clock, options.rate or RATE, _Progress(clock, len(messages)))
    if options.json:
        _say_json(_as_json(results))
    else:
        _say_results(results)
    return DONE if results.complete else NOT_DONE


async def _selected(operator: Operator, options: argparse.Namespace) -> list[ListedMessage]:
    return await selected(operator, Selection(options.reason, options.type), options.limit)


def _say_selected(messages: Sequence[ListedMessage], risk: str, *, as_json: bool) -> None:
    groups = grouped(messages)
    if as_json:
        _say_json({"selected": len(messages), "groups": [asdict(group) for group in groups]})
    elif messages:
        _say(DONE, *group_lines(groups), "", f"{len(messages)} messages. {risk}")
    else:
        _say(DONE, "no parked message matches")


class _Progress:
    """Prints progress to stderr, at most a line in a second."""

    def __init__(self, clock: Clock, of: int) -> None:
        self._clock = clock
        self._of = of
        self._began = self._shown = clock.now()

    def __call__(self, results: Results) -> None:
        now = self._clock.now()
        if (now - self._shown).total_seconds() < _SECONDS_BETWEEN:
            return
        self._shown = now
        tried, seconds = self._of - results.left, (now - self._began).total_seconds()
        text = f"{tried} of {self._of}, {tried / seconds:.0f} in a second, {len(results.not_done)} not done"
        print(text, file=sys.stderr)


def _say_results(results: Results) -> None:
    _say(DONE, *(f"{count} {text}" for text, count in results.counts.most_common()))
    if results.left:
        _say(DONE, f"{results.left} not tried: the store or the queues did not answer; run the command again")
    for item, why in results.not_done[:_MOST_SHOWN]:
        _say(DONE, f"{plain(item.entity)} {plain(item.message)}: {plain(why)}")
    if (more := len(results.not_done) - _MOST_SHOWN) > 0:
        _say(DONE, f"and {more} more; --json names all")


def _as_json(results: Results) -> dict[str, Any]:
    not_done = [{"entity": item.entity, "message": item.message, "reason": why} for item, why in results.not_done]
    return {"outcomes": dict(results.counts), "not_done": not_done, "not_tried": results.left}


def _say_json(value: object) -> int:
    return _say(DONE, json.dumps(value, indent=2, default=str))  # Decimals, as their digits.


# Commands on a parked message, and on an entity.


_RISK: Final = """\
After a failover that lost writes, or after a container was restored, the session token in an entity's ledger may be ahead of
the account. Then no message to the entity can be finished. This command replaces the token by the token of a write made now, if
no replica answers at the old token.
The command cannot restore lost pages. If the newest page of the entity is gone, messages that only a page would know are
refused until the page would have expired. If older pages are gone, a copy of a message marked there is processed again: look
for old messages in the queues and poison queues first. The command lists the kept messages that were lost.
Nothing was changed. Say --yes to go on."""
_RISK_OF_RENEWING: Final = """\
Under a new identity the message is applied even if it was processed before: its copies are no longer recognized. Nothing was
changed. If the message certainly was not processed, say --yes to go on; otherwise discard it."""
_RISK_OF_DISCARDING: Final = """\
A discarded message is gone for good, body and all. Copies that still come are processed like any other message; and a read
model in order waits for a number that it lacks. Nothing was changed. Say --yes to go on."""
_RISK_OF_RENUMBERING: Final = """\
The entity forgets these sequences, in which it numbers messages to receivers that take them in order, and begins fresh
sequences. Renumber an entity that was restored from a backup, so that no number is given out twice: such receivers refuse or
drop these messages. Between an old sequence and a fresh one no order holds, so a read model in order may apply
later messages first. Nothing was changed. Say --yes to go on."""
_NOT_PARKED: Final = "there is no such parked message: compare ENTITY and MESSAGE with the output of 'parked'"
_REFUSED: Final = {
    "too old": "the message is too old to be sent under its present identity",
    "undated": "the message has no time",
    "ahead": "the message's time is more than a day ahead",
}
_AS_NEW: Final = """\
its receiver could not recognize a copy. --as-new shows the stored evidence"""


def run(options: argparse.Namespace) -> int:
    """Run a command and return its exit code. Output goes to stdout, errors to stderr."""
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    try:
        return asyncio.run(_run(application_in(options.app, options.azure), options))
    except ExactlyOnceError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return NOT_POSSIBLE if isinstance(error, ConfigurationError) else NOT_DONE


async def _run(once: ExactlyOnce, options: argparse.Namespace) -> int:
    try:
        code: int = await _COMMANDS[options.command](once, options)
        return code
    finally:
        await once.close()


async def _requeue(once: ExactlyOnce, options: argparse.Namespace) -> int:
    operator, place = await once.operator(), _place(options.entity)
    if options.as_new and (code := await _renewed(operator, options, place)) != DONE:
        return code
    requeued = await operator.requeue(place, options.message, options.to)
    match requeued.outcome:
        case "sent":
            return _say(DONE, f"sent as {plain(requeued.sent)}")
        case "not parked":
            return _say(NOT_DONE, _NOT_PARKED)
        case refused:
            return _say(NOT_DONE, f"{_REFUSED[refused]}, so it stays parked: {_AS_NEW}")


async def _renewed(operator: Operator, options: argparse.Namespace, place: str) -> int:
    """Show the evidence about a parked message, and give it a new identity. `DONE` if the message can be sent now."""
    evidence = await operator.evidence(place, options.message)
    if evidence is None:
        return _say(NOT_DONE, _NOT_PARKED)
    _say(DONE, *evidence_lines(evidence))
    if not options.yes:
        return _say(NOT_POSSIBLE, "", _RISK_OF_RENEWING)
    renewed = await operator.renew(place, options.message)
    if renewed.outcome == "not needed":
        return _say(
            NOT_DONE, "", "the receiver takes the message under its present identity: requeue it without --as-new"
        )
    return DONE


async def _discard(once: ExactlyOnce, options: argparse.Namespace) -> int:
    operator, place = await once.operator(), _place(options.entity)
    parked = await operator.parked_message(place, options.message)
    if parked is None:
        return _say(NOT_DONE, _NOT_PARKED)
    if not options.yes:
        return _say(NOT_POSSIBLE, *discarding_lines(parked), "", _RISK_OF_DISCARDING)
    there = await operator.discard(place, options.message)
    return _say(DONE, "discarded") if there else _say(NOT_DONE, _NOT_PARKED)


async def _inspect(once: ExactlyOnce, options: argparse.Namespace) -> int:
    _, ref = _entity(once, options)
    inspected = await (await once.operator()).inspect(ref)
    return _say(DONE, *inspected_lines(ref, inspected, bodies=options.bodies))


async def _books(once: ExactlyOnce, _: argparse.Namespace) -> int:
    books = [item async for page in (await once.operator()).books() for item in page]
    return _say(DONE, *(book_lines(books) if books else ["all books have ended"]))


async def _sweep(once: ExactlyOnce, options: argparse.Namespace) -> int:
    entity = None if options.type is None else _type(once, options.type)
    older_than = None if options.older_than is None else timedelta(seconds=options.older_than)
    swept = await once.sweep(entity, older_than, options.limit)
    _say(DONE, f"{swept.swept} swept, {len(swept.failed)} failed, {swept.left} left")
    _say(DONE, *(f"{plain(what)}: {plain(reason)}" for what, reason in swept.failed))
    return NOT_DONE if swept.failed or swept.left else DONE


async def _tend(once: ExactlyOnce, options: argparse.Namespace) -> int:
    entity, ref = _entity(once, options)
    await once.tend(entity, EntityKey(ref.id, ref.partition))
    return _say(DONE, "done; 'inspect' shows what is still held")


async def _replay(once: ExactlyOnce, options: argparse.Namespace) -> int:
    entity, ref = _entity(once, options)
    sent = await once.replay(entity, EntityKey(ref.id, ref.partition), options.first, options.last)
    return _say(DONE, f"{sent} messages sent again")


async def _renumber(once: ExactlyOnce, options: argparse.Namespace) -> int:
    entity, ref = _entity(once, options)
    operator = await once.operator()
    if not options.yes:
        ledger = (await operator.inspect(ref)).ledger
        lines = sequence_lines(() if ledger is None else ledger.sequences)
        return _say(NOT_POSSIBLE, *lines, "", _RISK_OF_RENUMBERING)
    forgotten = await operator.renumber(entity, ref)
    return _say(DONE, *sequence_lines(forgotten), f"{len(forgotten)} sequences forgotten")


async def _reset_token(once: ExactlyOnce, options: argparse.Namespace) -> int:
    entity, ref = _entity(once, options)
    if not options.yes:
        return _say(NOT_POSSIBLE, _RISK)
    reset = await (await once.operator()).reset_token(entity, ref)
    match reset.outcome:
        case "reset":
            lost = (f"the kept message {plain(item)} was lost, and will not be sent" for item in reset.kept)
            return _say(DONE, "reset", *lost)
        case "no token":
            return _say(NOT_DONE, "there is no session token to replace")
        case "not ahead":
            text = "a replica answers at the token, so it is not ahead of the account; nothing was changed"
            return _say(NOT_DONE, text)


_COMMANDS: Final = {
    "application": _application,
    "retention": _retention,
    "parked": _parked,
    "requeue": _requeue,
    "requeue-all": _requeue_all,
    "discard": _discard,
    "discard-all": _discard_all,
    "inspect": _inspect,
    "books": _books,
    "sweep": _sweep,
    "tend": _tend,
    "replay": _replay,
    "renumber": _renumber,
    "reset-token": _reset_token,
}


def application_in(name: str, azure: str | None = None) -> ExactlyOnce:
    """The application in a module.

    Args:
        name: `module`, or `module:name` for a module with several applications.
        azure: name of a function app in Azure, whose settings are used; None for the settings of this machine.

    Raises:
        ConfigurationError: the settings cannot be read, or there is no application, or more than one.
    """
    module_name, _, attribute = name.partition(":")
    if azure is not None:
        use_azure_settings(azure)
    # The file is a developer's. Mixed with settings of another account, it would send messages to the wrong queues.
    if not any(item.startswith("COSMOS__") for item in os.environ):
        use_local_settings(Path.cwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"There is no module {error.name!r}. Run this in the folder of the function app, with its packages installed."
        ) from None
    applications = {name: item for name, item in vars(module).items() if isinstance(item, ExactlyOnce)}
    chosen = [item for name, item in applications.items() if attribute in ("", name)]
    if len({id(item) for item in chosen}) != 1:
        raise ConfigurationError(
            f"{module_name} has {', '.join(sorted(applications)) or 'no application'} at its top level. Name one application, "
            f"such as --app {module_name}:once."
        )
    return chosen[0]


def _type(once: ExactlyOnce, name: str) -> Entity[Any]:
    by_name = {entity.name: entity for entity in once.entities}
    if name not in by_name:
        raise ConfigurationError(f"There is no entity type {name!r}; there are: {', '.join(by_name) or 'none'}.")
    return by_name[name]


def _entity(once: ExactlyOnce, options: argparse.Namespace) -> tuple[Entity[Any], EntityRef]:
    """The entity that TYPE and KEY name."""
    entity = _type(once, options.type)
    parts = _array(options.key)
    return entity, entity.ref(options.key if parts is None else EntityKey(parts[-1], tuple(parts[:-1])))


def _place(text: str) -> str:
    """The key of an entity as the library writes it: a copy from the output of 'parked' may have other blanks."""
    parts = _array(text)
    if parts is None or not isinstance(parts[0], str) or not isinstance(parts[-1], str):
        raise ConfigurationError(
            f'{text!r} is not an ENTITY as \'parked\' lists them, such as \'["range","g-1","g-1"]\'.'
        )
    return EntityRef(parts[0], tuple(parts[1:-1]), parts[-1]).key


def _array(text: str) -> list[Any] | None:
    """A JSON array of two values or more; None for any other text."""
    try:
        value = read_json(text) if text.startswith("[") else None
    except ValueError:
        return None
    return value if isinstance(value, list) and len(value) > 1 else None
