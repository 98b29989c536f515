"""The command `exactlyonce`: runs a command by name, and loads no other command.

Other distributions add commands as entry points of the group `exactlyonce.commands`. A command is a function without arguments
that reads `sys.argv` and returns its exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Final, NamedTuple

from exactlyonce import __version__

# Exit codes.


DONE: Final = 0
NOT_DONE: Final = 1
NOT_POSSIBLE: Final = 2
"""The command was not understood, or is not possible with the present settings."""


# Output to a closed pipe, as after `| head`.


def piped(run: Callable[[], int]) -> int:
    """Run a command and return its exit code: `NOT_DONE`, without a trace, once the reader has closed the pipe."""
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise the interpreter would try to write the rest, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_DONE
    return code


GROUP: Final = "exactlyonce.commands"


class Command(NamedTuple):
    """A command of this project.

    Attributes:
        help: the purpose, for the list of commands.
        place: `module:function`; None if another distribution adds the command.
        needs: an optional module that the command needs.
        cure: the distribution to install if the command or the module is missing.
    """

    help: str
    place: str | None = None
    needs: str | None = None
    cure: str = ""


_DEV: Final = "It is part of exactlyonce-dev: run 'make dist', and install the wheel of that distribution."
_SPARK: Final = "It needs Spark: install the wheel of exactlyonce with its extra 'spark', and Java 17."
COMMANDS: Final = {
    "new": Command("write a small app that runs, is tested, and deploys", cure=_DEV),
    "dev": Command("run the app of this folder with all that it needs", cure=_DEV),
    "console": Command("look at an application's account in a browser", cure=_DEV),
    "ops": Command("operate an application: parked messages, entities, retention", "exactlyonce.cli.__main__:main"),
    "doctor": Command("say what to change in an application's settings and accounts", "exactlyonce.cli.doctor:main"),
    "audit": Command("check the guarantee on stored documents", "spark_jobs.audit:main", "pyspark", _SPARK),
    "cleanup": Command("delete documents that no entity needs any more", "spark_jobs.cleanup:main", "pyspark", _SPARK),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in the first argument, with the arguments after it. Returns the exit code."""
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    added = {point.name: point for point in entry_points(group=GROUP)}
    match name:
        case "--version":
            print(f"exactlyonce {__version__}")
            return DONE
        case "--help" | "-h":
            print(_help(added))
            return DONE
    command = _command(name, added)
    if isinstance(command, str):
        print(command, file=sys.stderr)
        return NOT_POSSIBLE
    sys.argv[:] = [f"exactlyonce {name}", *rest]
    sys.path.insert(0, "")  # The app is in the present folder, but the path begins with the folder of the script.
    run: Callable[[], int] = command.load()
    return piped(run)


def _command(name: str, added: dict[str, EntryPoint]) -> EntryPoint | str:
    """The place of a command; a sentence for a command that cannot run."""
    if name in added:
        return added[name]
    if name not in COMMANDS:
        return f"There is no command {name!r}; there are: {', '.join(sorted({*COMMANDS, *added}))}."
    command = COMMANDS[name]
    if command.place is None or (command.needs is not None and find_spec(command.needs) is None):
        return f"'exactlyonce {name}' is not installed. {command.cure}"
    return EntryPoint(name, command.place, GROUP)


def _help(added: dict[str, EntryPoint]) -> str:
    own = {name: item.help for name, item in COMMANDS.items()}
    helps = {**{name: f"of {item.value.partition('.')[0]}" for name, item in added.items()}, **own}
    width = max(map(len, helps))
    lines = [f"  {name.ljust(width)}  {text}" for name, text in helps.items()]
    head = ["usage: exactlyonce [--version] COMMAND ...", "", "'exactlyonce COMMAND --help' explains a command.", ""]
    return "\n".join([*head, *lines])
