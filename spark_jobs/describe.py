"""Writes the job file of an application: `python -m spark_jobs.describe function_app --database shooting-range`.

The entities, their containers and protocols are those of the application's module, and so are the consumers of destinations, as
their `to=` says. A destination that does not say it is given: `--consumer leader-board=board`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from exactlyonce import Destination, Entity
from exactlyonce.environment import use_local_settings
from exactlyonce.errors import ConfigurationError
from spark_jobs.job.configuration import Job
from spark_jobs.job.exits import Exit, ending


def entities_of(module: ModuleType) -> tuple[Entity[Any], ...]:
    """The entities at the top level of a module, in its order.

    Raises:
        ConfigurationError: it has none.
    """
    found = [value for value in vars(module).values() if isinstance(value, Entity)]
    if not found:
        raise ConfigurationError(f"The module {module.__name__} has no entities at its top level.")
    return tuple({id(item): item for item in found}.values())


def consumers_of(module: ModuleType, entities: tuple[Entity[Any], ...]) -> dict[str, str]:
    """By name the type of these entities that a destination leads to, of the destinations at the top level of a module."""
    values = [value for value in vars(module).values() if isinstance(value, (Destination, tuple, list))]
    several = (item for value in values if not isinstance(value, Destination) for item in value)
    found = (item for item in (*values, *several) if isinstance(item, Destination))
    names = {item.name: item.to if isinstance(item.to, str) else getattr(item.to, "name", "") for item in found}
    types = {entity.name for entity in entities}
    return {name: type for name, type in sorted(names.items()) if type in types}


def main(arguments: Sequence[str] | None = None) -> Exit:
    """Write a job file to the standard output.

    Raises:
        ConfigurationError: the module cannot be imported, or has no entities that fit together; or its `local.settings.json`
            cannot be read.
    """
    parser = argparse.ArgumentParser(
        prog="python -m spark_jobs.describe", description="Write an application's job file."
    )
    parser.add_argument("module", help="module that declares the entities, such as function_app")
    parser.add_argument("--database", required=True, help="database of their containers")
    parser.add_argument("--endpoint", help="address of the account, unless the environment of the job gives it")
    parser.add_argument("--library", default="exactlyonce", help="the library's container")
    parser.add_argument(
        "--consumer",
        action="append",
        default=[],
        metavar="DESTINATION=TYPE",
        help="entity type that consumes a destination, if its to= does not say so; may be given several times",
    )
    given = parser.parse_args(arguments)
    more = dict(_consumer(item) for item in given.consumer)
    use_local_settings(Path.cwd(), os.environ)
    try:
        module = import_module(given.module)
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"The module {given.module} cannot be imported: {error}.") from None
    where = {"endpoint": given.endpoint} if given.endpoint else {}
    entities = entities_of(module)
    consumers = consumers_of(module, entities) | more
    job = Job.of(entities, database=given.database, library=given.library, consumers=consumers, **where)
    sys.stdout.write(job.text())
    return Exit.DONE


def _consumer(text: str) -> tuple[str, str]:
    destination, sign, type = text.partition("=")
    if not (destination and sign and type):
        raise ConfigurationError(f"--consumer {text} has to be DESTINATION=TYPE, such as leader-board=board.")
    return destination, type


if __name__ == "__main__":
    sys.exit(ending(main))
