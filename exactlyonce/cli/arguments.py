"""The arguments of `exactlyonce ops`."""

from __future__ import annotations

import argparse
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
    _about_many_parked_messages(commands)
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


def _about_many_parked_messages(commands: _Commands) -> None:
    parked = commands.add_parser("parked", help="list parked messages, with the reasons")
    _selection(parked)
    parked.add_argument("--groups", action="store_true", help="count them by entity type and reason")
    parked.add_argument("--bodies", action="store_true", help="show the messages as well")
    parked.add_argument("--evidence", action="store_true", help="show whether their receivers have processed them")

    requeue = commands.add_parser("requeue-all", help="send many parked messages again")
    _selection(requeue)
    _pace(requeue)
    requeue.add_argument(
        "--to", metavar="DESTINATION", help="logical name of the queue (default: that of outputs never published)"
    )

    discard = commands.add_parser("discard-all", help="delete many parked messages for good")
    _selection(discard)
    _pace(discard)


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


def _about_parked_messages(commands: _Commands) -> None:
    requeue = commands.add_parser("requeue", help="send a parked message again; one that is too old is refused")
    _parked_message(requeue)
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

    discard = commands.add_parser("discard", help="delete a parked message for good")
    _parked_message(discard)
    _yes(discard)


def _about_entities(commands: _Commands) -> None:
    inspect = commands.add_parser("inspect", help="show the stored documents of an entity")
    _entity(inspect)
    inspect.add_argument("--bodies", action="store_true", help="show its state as well")

    commands.add_parser("books", help="show the books that have not ended, and the open numbers there")

    sweep = commands.add_parser(
        "sweep", help="publish outputs that have been owed for long, and tend read models with gaps"
    )
    sweep.add_argument("--type", help="of the entities (all)")
    sweep.add_argument(
        "--older-than", type=float, metavar="SECONDS", help="owed for at least so long (default: the setting)"
    )
    sweep.add_argument("--limit", type=int, metavar="N", help="most entities (as many as fit into a minute)")

    _entity(commands.add_parser("tend", help="handle the gaps of a read model"))

    replay = commands.add_parser("replay", help="send the outputs of a stream's versions again")
    _entity(replay)
    replay.add_argument("first", type=int, metavar="FIRST", help="version")
    replay.add_argument("last", type=int, metavar="LAST", help="version")

    renumber = commands.add_parser(
        "renumber", help="begin fresh sequences for an entity that was restored from a backup"
    )
    _entity(renumber)
    _yes(renumber)

    reset = commands.add_parser("reset-token", help="replace a session token that no replica will reach")
    _entity(reset)
    _yes(reset)


def _about_the_application(commands: _Commands) -> None:
    application = commands.add_parser("application", help="show the owner of the library's container")
    application.add_argument("--forget", metavar="TYPE", help="forget an entity type that is gone for good")
    _yes(application)

    retention = commands.add_parser("retention", help="change the retention")
    retention.add_argument("new", type=_duration, metavar="DURATION", help="such as P20D, or seconds")
    _yes(retention)


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
