"""The command `exactlyonce doctor`: examines an application and its accounts, and changes nothing."""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Final

from exactlyonce import __version__
from exactlyonce.cli.arguments import add_azure
from exactlyonce.cli.command import DONE, NOT_DONE, NOT_POSSIBLE
from exactlyonce.cli.commands import application_in
from exactlyonce.cli.tables import plain
from exactlyonce.drivers.runtime import SystemClock
from exactlyonce.errors import ConfigurationError
from exactlyonce.hosting.application import ExactlyOnce
from exactlyonce.hosting.doctor import Finding, Level, examined

_HEADS: Final[dict[Level, str]] = {
    "wrong": "Change this",
    "unknown": "Could not be looked at",
    "advice": "Better",
    "cost": "At rest, by list prices",
    "fine": "Fine",
}
_PACKAGES: Final = ("azure-cosmos", "azure-functions", "azure-storage-queue", "azure-servicebus", "pydantic")


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine an application.

    Returns 0 if nothing has to be changed, 1 for a fault or a part that could not be examined, 2 if the application cannot
    start.
    """
    parser = argparse.ArgumentParser(
        "exactlyonce doctor",
        description="Look at an application, its host.json and its accounts, and say what to change. It changes nothing.",
    )
    parser.add_argument("--app", default="function_app", metavar="MODULE[:NAME]", help="as for 'exactlyonce ops'")
    add_azure(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        once = application_in(options.app, options.azure)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return NOT_POSSIBLE
    findings = asyncio.run(_examined(once, sys.modules[options.app.partition(":")[0]]))
    if options.json:
        print(
            json.dumps({"versions": dict(_versions()), "findings": [asdict(finding) for finding in findings]}, indent=2)
        )
    else:
        print("\n".join(_lines(findings)))
    return NOT_DONE if any(finding.level in ("wrong", "unknown") for finding in findings) else DONE


async def _examined(once: ExactlyOnce, module: ModuleType) -> list[Finding]:
    try:
        return await examined(once, module, Path.cwd(), SystemClock().now)
    finally:
        await once.close()


def _versions() -> Iterator[tuple[str, str]]:
    yield "exactlyonce", __version__
    yield "Python", platform.python_version()
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):  # The package is optional.
            yield name, version(name)


def _lines(findings: Iterable[Finding]) -> Iterator[str]:
    yield ", ".join(f"{name} {number}" for name, number in _versions())
    findings = list(findings)
    for level, head in _HEADS.items():
        chosen = [finding for finding in findings if finding.level == level]
        if chosen:
            yield f"\n{head}:"
        yield from (f"- {plain(item.subject)}: {plain(item.text)}" for item in chosen)
    if not any(finding.level in ("wrong", "unknown") for finding in findings):
        yield "\nNothing has to be changed."
