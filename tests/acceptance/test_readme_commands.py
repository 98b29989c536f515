"""Every command that README names is run by the tests to its end, or the table says why it is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Final

from tests.acceptance import test_demo, test_service_bus
from tests.acceptance.test_demo import ROOT

HERE: Final = ("make help", "make demo SHOTS=200 FAULTS=off")
"""Run by `test_commands_run.py`, as they stand."""
JOBS: Final = (
    "python -m spark_jobs.audit --config job.json --out reports/audit",
    "python -m spark_jobs.cleanup --config job.json",
    "python -m spark_jobs.cleanup --config job.json --delete",
)
"""Run by `test_commands_run.py`, as they stand, one after the other, in a folder of their own."""
ELSEWHERE: Final = {
    # With fewer shots, by SHOTS and GAMES. The last acts of two strategies are left out, by AUDIT: the audits of their games
    # are tests/spark/auditor's.
    **{
        f"make demo STRATEGY={strategy}": test_demo.test_every_shot_takes_place_once_whatever_happens
        for strategy in test_demo.RECOVERED
    },
    "make demo STRATEGY=naive": test_demo.test_the_naive_handler_does_not_come_through,
    "make demo": test_demo.test_every_shot_takes_place_once_whatever_happens,  # Its strategy is outbox.
    "make demo TRANSPORT=servicebus": test_service_bus.test_every_shot_takes_place_once_whatever_happens_on_service_bus,
}
"""What runs them."""
NOT_HERE: Final = {
    "make test": "it is what runs this",
    "make test-azure": "it needs accounts in Azure",
    "func start": "a tool of Microsoft's, which is not installed; the function host and tests/packaging stand in for it",
    "func azure functionapp publish": "it needs an account; test_publish_archive.py makes what it sends",
    "make demo UI=on": "it waits for somebody to look; tests/acceptance/test_console_walk.py opens the same page",
    "azd up": "it needs an account; tests/infra reads what it deploys",
}
"""Why nothing runs them."""


def commands(text: str) -> Iterator[str]:
    """What a page has people type, in the order in which it stands there; `A|B` is two commands. Comments are no part of it.

    An option by itself belongs to the command before it.
    """
    prose = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    last = ""
    for code in re.findall(r"`([^`]+)`", prose):
        words = code.split()
        if words[0] in ("make", "python", "func", "azd", "pip", "npm"):
            last = " ".join(words)
        elif words[0].startswith("--") and last:
            words = [*last.split(), *words]
        else:
            continue
        yield from map(" ".join, product(*(_alternatives(word) for word in words)))


def _alternatives(word: str) -> list[str]:
    name, equals, values = word.rpartition("=")
    return [name + equals + value for value in values.split("|")]


def test_every_command_of_readme_is_run_or_the_table_says_why_not() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(commands(readme)) == {*HERE, *JOBS, *ELSEWHERE, *NOT_HERE}


def test_commands_are_found_in_prose_wherever_a_line_ends() -> None:
    page = (
        "`make demo A=x|y` and `make demo\nB=1`; `job.py`.\n"
        "```python\n`make no`\n```\n<!-- `make no` -->\n"
        "`python -m a --b`, `--c` too"
    )
    found = ["make demo A=x", "make demo A=y", "make demo B=1", "python -m a --b", "python -m a --b --c"]
    assert list(commands(page)) == found
