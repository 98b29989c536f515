"""What the Functions host gets of an application: host.json, and the triggers of its functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import azure.functions as func

from exactlyonce.hosting.doctor.finding import Finding

POISON: Final = "-poison"
_SPAN: Final = re.compile(r"(?:(\d+)\.)?(\d+):(\d\d):(\d\d)(?:\.\d+)?")
_MONTH: Final = 30.4 * 24 * 3600
_USD_PER_POLL: Final = 0.004 / 10_000
"""List price of an operation on a queue."""
_HOST: Final = "host.json"
_FEWEST_DELIVERIES: Final = 5
_SHORTEST_OUTAGE: Final = 120.0
_LONGEST_INTERVAL: Final = 10.0
"""Seconds."""


def function_app_of(module: ModuleType) -> func.FunctionApp | None:
    """The function app at the top level of a module; None if there is none."""
    return next((one for one in vars(module).values() if isinstance(one, func.FunctionApp)), None)


def triggers_of(app: func.FunctionApp) -> list[dict[str, Any]]:
    """The triggers of an app's functions, as the host gets them."""
    found = (function.get_trigger() for function in app.get_functions())
    return [dict(one.get_dict_repr()) for one in found if one is not None]


def queues_of(triggers: Iterable[dict[str, Any]]) -> list[str]:
    """The storage queues that have a function."""
    return [str(one["queueName"]) for one in triggers if one.get("type") == "queueTrigger"]


def of_triggers(triggers: list[dict[str, Any]], leading: Iterable[str] = (), *, swept: bool) -> Iterator[Finding]:
    """Whether every queue that leads to the app has a function and a poison function, and something sweeps.

    Args:
        triggers: of the app.
        leading: queues and topics that lead to the app. If a trigger has its queue from a setting, none is looked for.
        swept: whether a strategy of the app can owe outputs.
    """
    queues = queues_of(triggers)
    read = {str(one.get("queueName") or one.get("topicName")) for one in triggers}
    for queue in leading:
        if queue not in read and not any("%" in name for name in read):
            yield Finding("wrong", f"queue {queue!r}", "no function takes its messages. Add once.serve_on(app).")
    for queue in queues:
        if not queue.endswith(POISON) and f"{queue}{POISON}" not in queues:
            yield Finding(
                "wrong",
                f"queue {queue!r}",
                f"it has no poison function: messages that the host gives up on expire after 7 days, undecided. Add "
                f"once.serve_on(app), or a function on {queue + POISON!r} that awaits once.settle(…).",
            )
    if swept and not any(one.get("type") == "timerTrigger" for one in triggers):
        yield Finding(
            "wrong",
            "functions",
            "no function has a timer, so nothing sweeps: outputs of a process that died wait for the next message of their "
            "entity. Add once.serve_on(app), once.sweep_on(app), or a timer that awaits once.sweep().",
        )


def of_host_json(folder: Path, queues: int) -> Iterator[Finding]:
    """Whether `host.json` suits the library, and what polling costs at rest.

    Args:
        folder: of the app.
        queues: how many storage queues have a function.
    """
    try:
        given = json.loads((folder / _HOST).read_text("utf-8-sig"))
        options = given.get("extensions", {}).get("queues", {})
        most, visible, interval, encoding = (
            int(options.get("maxDequeueCount", 5)),
            _seconds(options.get("visibilityTimeout", "00:00:00")),
            _seconds(options.get("maxPollingInterval", "00:01:00")),
            str(options.get("messageEncoding", "base64")),
        )
    except FileNotFoundError:
        yield Finding("wrong", _HOST, "there is none in this folder: run this in the folder of the function app.")
        return
    except (OSError, ValueError, TypeError, AttributeError) as error:
        yield Finding(
            "wrong", _HOST, f"it cannot be read ({type(error).__name__}): correct it; the host refuses it, too."
        )
        return
    if not queues:
        return
    yield from _of_options(most, visible, interval, encoding)
    yield Finding(
        "cost",
        "polling of empty queues",
        f"{queues} queues, each asked every {interval:g} s by an idle instance: about "
        f"{queues * _MONTH / interval * _USD_PER_POLL:.2f} USD a month while one runs.",
    )


def _of_options(most: int, visible: float, interval: float, encoding: str) -> Iterator[Finding]:
    if encoding.lower() != "base64":
        yield Finding(
            "wrong", _HOST, f'messageEncoding is {encoding!r}, and the library sends base64: set it to "base64".'
        )
    if most < _FEWEST_DELIVERIES:
        yield Finding(
            "advice",
            _HOST,
            f"maxDequeueCount is {most}: set it to {_FEWEST_DELIVERIES} or more, since a poison function that fails so often "
            "loses its message to the host, too.",
        )
    if most * visible < _SHORTEST_OUTAGE:
        yield Finding(
            "advice",
            _HOST,
            f"a message is given up on after failing for {most * visible:g} s (maxDequeueCount x visibilityTimeout): set "
            'visibilityTimeout to "00:00:30", so that a short outage does not send every message through its poison queue.',
        )
    if interval > _LONGEST_INTERVAL:
        yield Finding(
            "advice",
            _HOST,
            f"an empty queue is asked only every {interval:g} s, which is how late a message may start, once for every queue "
            'it crosses: set maxPollingInterval to "00:00:02".',
        )


def _seconds(span: str) -> float:
    found = _SPAN.fullmatch(span)
    if found is None:
        raise ValueError(span)
    days, hours, minutes, seconds = (int(one or 0) for one in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
