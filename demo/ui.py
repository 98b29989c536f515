"""The console on the accounts of a demo: `make demo UI=on`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from demo.stack import ROOT, Stack
from demo.story import Story


@contextmanager
def running_console(stack: Stack, story: Story, *, wanted: bool) -> Iterator[None]:
    """Serve the console while the demo plays; at the end, on a terminal, until somebody presses Enter.

    Args:
        stack: whose accounts it shows. Its requests are counted with those of the game.
        story: says where it is.
        wanted: whether there is to be one.

    Raises:
        RuntimeError: it did not start.
    """
    if not wanted:
        yield
        return
    with (stack.logs / "console.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "exactlyonce_dev.account", "--app", "demo.app.function_app"],
            cwd=ROOT,
            env={**os.environ, **stack.environment},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None  # noqa: S101  # It was asked for.
        if not (address := process.stdout.readline().strip()):
            raise RuntimeError(f"The console did not start: {(stack.logs / 'console.log').read_text()[-2000:]}")
        story.add(f"Watch it in a browser of this machine: {address}")
        yield
        if sys.stdin.isatty():
            input("The console stays until you press Enter. ")
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
