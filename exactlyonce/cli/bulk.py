"""Commands on many parked messages."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from exactlyonce.cli.command import DONE, NOT_DONE, NOT_POSSIBLE
from exactlyonce.cli.tables import evidence_lines, group_lines, parked_lines, plain, pretty
from exactlyonce.drivers.runtime import Clock, SystemClock
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

_REQUEUING: Final = "Nothing was sent. Say --yes to send them, in this order, under their own ids."
_DISCARDING: Final = """\
Discarded messages are gone for good, bodies and all. Copies that still come are processed like any other message; and read
models in order wait for numbers that they lack. Nothing was changed. Say --yes to go on."""
_SECONDS_BETWEEN: Final = 1.0
"""Least time between two lines of progress."""
_MOST_SHOWN: Final = 20
"""Most messages that the text output names as still parked. JSON names all."""


async def parked(once: ExactlyOnce, options: argparse.Namespace) -> int:
    """List parked messages, or count them by reason."""
    operator = await once.operator()
    messages = await _found(operator, options)
    if options.groups:
        groups = grouped(messages)
        if options.json:
            _print_json([asdict(group) for group in groups])
        else:
            _print(group_lines(groups))
    elif options.json:
        _print_json([await _item(operator, message, options) for message in messages])
    else:
        _print(parked_lines(messages) if messages else ["nothing is parked"])
        for message in messages:
            await _print_more(operator, message, options)
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


async def _print_more(operator: Operator, item: ListedMessage, options: argparse.Namespace) -> None:
    """Body and evidence of a parked message, if the arguments ask for them, below the table."""
    if options.bodies and (message := await operator.parked_message(item.entity, item.message)) is not None:
        _print(("", plain(item.message), pretty(message.envelope)))
    if options.evidence and (evidence := await operator.evidence(item.entity, item.message)) is not None:
        _print(("", *evidence_lines(evidence)))


async def requeue_all(once: ExactlyOnce, options: argparse.Namespace) -> int:
    """Send the selected messages again."""
    operator = await once.operator()
    return await _all(operator, options, requeuing(operator, options.to), _REQUEUING)


async def discard_all(once: ExactlyOnce, options: argparse.Namespace) -> int:
    """Delete the selected messages."""
    operator = await once.operator()
    return await _all(operator, options, discarding(operator), _DISCARDING)


async def _all(operator: Operator, options: argparse.Namespace, action: Action, risk: str) -> int:
    messages, clock = await _found(operator, options), SystemClock()
    if not options.yes:
        _print_selected(messages, risk, as_json=options.json)
        return NOT_POSSIBLE if messages else DONE
    results = await on_each(messages, action, clock, options.rate or RATE, _Progress(clock, len(messages)))
    if options.json:
        _print_json(_as_json(results))
    else:
        _print_results(results)
    return DONE if results.complete else NOT_DONE


async def _found(operator: Operator, options: argparse.Namespace) -> list[ListedMessage]:
    return await selected(operator, Selection(options.reason, options.type), options.limit)


def _print_selected(messages: Sequence[ListedMessage], risk: str, *, as_json: bool) -> None:
    groups = grouped(messages)
    if as_json:
        _print_json({"selected": len(messages), "groups": [asdict(group) for group in groups]})
    else:
        _print(group_lines(groups))
        _print(["", f"{len(messages)} messages. {risk}"] if messages else ["no parked message matches"])


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
        print(
            f"{tried} of {self._of}, {tried / seconds:.0f} in a second, {len(results.not_done)} not done",
            file=sys.stderr,
        )


def _print_results(results: Results) -> None:
    _print(f"{count} {text}" for text, count in results.counts.most_common())
    if results.left:
        _print([f"{results.left} not tried: the store or the queues did not answer; run the command again"])
    _print(f"{plain(item.entity)} {plain(item.message)}: {plain(why)}" for item, why in results.not_done[:_MOST_SHOWN])
    if (more := len(results.not_done) - _MOST_SHOWN) > 0:
        _print([f"and {more} more; --json names all"])


def _as_json(results: Results) -> dict[str, Any]:
    return {
        "outcomes": dict(results.counts),
        "not_done": [
            {"entity": item.entity, "message": item.message, "reason": reason} for item, reason in results.not_done
        ],
        "not_tried": results.left,
    }


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, default=str))  # Decimals, as their digits.
