"""The end of a command whose output nobody reads any more."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
from exactlyonce.cli.command import piped

def run():
    for line in range({lines}):
        print("a line of a long list")
    return 0

sys.exit(piped(run))
"""


def ended(lines: int) -> tuple[int, bytes]:
    """Exit code and errors of a command that prints so many lines to a reader that has gone."""
    command = [sys.executable, "-c", _PROGRAM.format(lines=lines)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        return process.wait(), process.stderr.read()


def test_a_command_whose_reader_has_gone_ends_without_a_trace() -> None:
    assert ended(lines=100_000) == (1, b"")


def test_nor_does_one_complain_whose_few_lines_are_written_at_its_end() -> None:
    assert ended(lines=1) == (1, b"")


def test_a_command_that_is_read_to_its_end_keeps_its_exit_code() -> None:
    command = [sys.executable, "-c", _PROGRAM.format(lines=2)]
    assert subprocess.run(command, capture_output=True, check=True).stdout.count(b"\n") == 2
