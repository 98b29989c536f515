"""The examples on the package's pages, as tests read and run them."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Final

from local_cosmos.inprocess import RunningEmulator

PACKAGE: Final = Path(__file__).resolve().parents[1]


def blocks(page: str, language: str) -> list[str]:
    """The blocks of code in a language on a page, whose path is from the package's folder."""
    text = (PACKAGE / page).read_text(encoding="utf-8")
    return re.findall(f"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def is_part_of(example: str, file: str, indent: str) -> bool:
    """Whether a test of another language has the example in it, indented so."""
    text = (PACKAGE / "local_cosmos_tests" / file).read_text(encoding="utf-8")
    return textwrap.indent(example, indent, lambda line: bool(line.strip())) in text


def account(emulator: RunningEmulator) -> dict[str, str]:
    """The environment of a program that asks an emulator."""
    return {**os.environ, "COSMOS_ENDPOINT": emulator.endpoint, "COSMOS_KEY": emulator.key}


def run_javascript(program: str, environment: dict[str, str]) -> str:
    """What a program prints.

    Raises:
        AssertionError: It fails; the text is what it says of that.
    """
    file = Path(__file__).parent / "javascript" / f".page-{os.getpid()}.mjs"  # Where Node finds the client.
    file.write_text(program, encoding="utf-8")
    try:
        ran = subprocess.run(
            ["node", str(file)],  # noqa: S607
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        file.unlink()
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
