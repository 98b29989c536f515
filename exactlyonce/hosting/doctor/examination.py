"""The examination: everything that the doctor looks at, in the order in which a person would."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from types import ModuleType

from exactlyonce.handling.calls import Api
from exactlyonce.hosting.application import ExactlyOnce
from exactlyonce.hosting.config.checks import receiver_of, unheard_by
from exactlyonce.hosting.doctor.accounts import of_cosmos, of_queues, verified
from exactlyonce.hosting.doctor.finding import Finding
from exactlyonce.hosting.doctor.functions import function_app_of, of_host_json, of_triggers, queues_of, triggers_of


async def examined(once: ExactlyOnce, module: ModuleType, folder: Path, now: Callable[[], datetime]) -> list[Finding]:
    """Everything that can be said of an application. It reads, and changes nothing.

    Args:
        once: the application.
        module: that makes it, with its function app.
        folder: of the app, with `host.json`.
        now: this machine's time of day.
    """
    app = function_app_of(module)
    triggers = [] if app is None else triggers_of(app)
    found = [*of_host_json(folder, len(queues_of(triggers)))]
    if app is None:
        found.append(Finding("unknown", "functions", "the module has no FunctionApp at its top level"))
    else:
        swept = any(one.strategy.unfinished for one in once.entities)
        found += of_triggers(triggers, _leading_to(once), swept=swept)
    found += [Finding("advice", "announcements", text) for text in unheard_by(once.entities, once.routes.subscribers)]
    found += await verified(once)
    found += await of_cosmos(once, now)
    settings, connections = once.configuration
    if connections.storage is not None and settings.transport == "storage":
        found += await of_queues(connections.storage, _distinct((*queues_of(triggers), *once.needs.queues)))
    return found


def _leading_to(once: ExactlyOnce) -> list[str]:
    """The queues and topics whose messages come to an application."""
    settings, _ = once.configuration
    leading = (one for one in once.destinations if isinstance(one, Api) or receiver_of(one, once.entities) is not None)
    return [settings.destinations.get(one.name, one.name) for one in leading]


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
