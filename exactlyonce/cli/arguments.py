"""The arguments of `exactlyonce ops`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias

from exactlyonce.values.lifetimes import duration

_KEY = 'its id; or, if its partition key is another, \'["<value>", ..., "<id>"]\''
_FOUND = "as in the list of 'parked'"
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # It has no public name.


def parser() -> argparse.ArgumentParser:
    """The parser of the arguments."""
    made = argparse.ArgumentParser(
        "exactlyonce ops",
        description="Operate an application, with its settings: those of the environment, then those of local.settings.json.",
    )
    made.add_argument(
        "--app",
        default="function_app",
        metavar="MODULE[:NAME]",
        help="module that makes the application (%(default)s), and its name there if there are several",
    )
    add_azure(made)
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _about_parked_messages(commands)
    _about_entities(commands)
    _about_the_application(commands)
    return made


def add_azure(command: argparse.ArgumentParser) -> None:
    """Add the option for an application that runs in Azure."""
    command.add_argument(
        "--azure",
        metavar="NAME",
        help="use the settings of this function app in Azure, read with the Azure CLI, and your own rights",
    )


def _add(
    commands: _Commands, name: str, help: str, *groups: Callable[[argparse.ArgumentParser], None]
) -> argparse.ArgumentParser:
    """Add a command with groups of arguments."""
    command = commands.add_parser(name, help=help)
    for group in groups:
        group(command)
    return command


def _about_parked_messages(commands: _Commands) -> None:
    parked = _add(commands, "parked", "list parked messages, with the reasons", _selection)
    parked.add_argument("--groups", action="store_true", help="count them by entity type and reason")
    parked.add_argument("--bodies", action="store_true", help="show the messages as well")
    parked.add_argument("--evidence", action="store_true", help="show whether their receivers have processed them")

    requeue_all = _add(commands, "requeue-all", "send many parked messages again", _selection, _pace)
    requeue_all.add_argument(
        "--to", metavar="DESTINATION", help="logical name of the queue (default: that of outputs never published)"
    )
    _add(commands, "discard-all", "delete many parked messages for good", _selection, _pace)

    help = "send a parked message again; one that is too old is refused"
    requeue = _add(commands, "requeue", help, _parked_message)
    requeue.add_argument(
        "--to",
        metavar="DESTINATION",
        help="logical name of the queue (default: that of an output that was never published)",
    )
    requeue.add_argument(
        "--as-new",
        action="store_true",
        help="under a new identity, if the present identity would be refused; shows the stored evidence",
    )
    _yes(requeue)
    _add(commands, "discard", "delete a parked message for good", _parked_message, _yes)


def _about_entities(commands: _Commands) -> None:
    inspect = _add(commands, "inspect", "show the stored documents of an entity", _entity)
    inspect.add_argument("--bodies", action="store_true", help="show its state as well")

    _add(commands, "books", "show the books that have not ended, and the open numbers there")

    sweep = _add(commands, "sweep", "publish outputs that have been owed for long, and tend read models with gaps")
    sweep.add_argument("--type", help="of the entities (all)")
    sweep.add_argument(
        "--older-than", type=float, metavar="SECONDS", help="owed for at least so long (default: the setting)"
    )
    sweep.add_argument("--limit", type=int, metavar="N", help="most entities (as many as fit into a minute)")

    _add(commands, "tend", "handle the gaps of a read model", _entity)

    replay = _add(commands, "replay", "send the outputs of a stream's versions again", _entity)
    replay.add_argument("first", type=int, metavar="FIRST", help="version")
    replay.add_argument("last", type=int, metavar="LAST", help="version")

    help = "begin fresh sequences for an entity that was restored from a backup"
    _add(commands, "renumber", help, _entity, _yes)
    _add(commands, "reset-token", "replace a session token that no replica will reach", _entity, _yes)


def _about_the_application(commands: _Commands) -> None:
    application = _add(commands, "application", "show the owner of the library's container", _yes)
    application.add_argument("--forget", metavar="TYPE", help="forget an entity type that is gone for good")

    retention = _add(commands, "retention", "change the retention", _yes)
    retention.add_argument("new", type=_duration, metavar="DURATION", help="such as P20D, or seconds")


def _selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("--reason", metavar="TEXT", help="only messages whose reason contains this text")
    command.add_argument("--type", help="only messages of this entity type")
    command.add_argument("--limit", type=_count, metavar="N", help="at most so many, the oldest first")
    command.add_argument("--json", action="store_true", help="print JSON")


def _pace(command: argparse.ArgumentParser) -> None:
    command.add_argument("--rate", type=_rate, metavar="N", help="at most N in a second (default: 50)")
    command.add_argument("--yes", action="store_true", help="do it; without, only show which messages match")


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("it has to be 1 or more")
    return count


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError("it has to be above 0")
    return rate


def _duration(text: str) -> timedelta:
    try:
        parsed = duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None
    if not parsed:
        raise argparse.ArgumentTypeError("it has to be above 0")
    return parsed


def _entity(command: argparse.ArgumentParser) -> None:
    command.add_argument("type", metavar="TYPE", help="of the entity")
    command.add_argument("key", metavar="KEY", help=_KEY)


def _parked_message(command: argparse.ArgumentParser) -> None:
    command.add_argument("entity", metavar="ENTITY", help=_FOUND)
    command.add_argument("message", metavar="MESSAGE", help=_FOUND)


def _yes(command: argparse.ArgumentParser) -> None:
    command.add_argument("--yes", action="store_true", help="do it; without, only the risk is explained")
