"""Nothing brings a container's rows to the driver: only `capped` brings any."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import spark_jobs

PACKAGE = Path(spark_jobs.__file__).parent
ALLOWED = PACKAGE / "spark" / "frames.py"
FORBIDDEN = {"collect", "toPandas", "toLocalIterator", "take", "head", "first", "show", "tail", "collectAsMap"}


def forbidden(source: str) -> Iterator[str]:
    """Calls of methods that bring rows to the driver."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        # The first row of a frame is asked for without arguments; another `first`, such as the aggregate, has some.
        if node.func.attr in FORBIDDEN and not (node.func.attr == "first" and node.args):
            yield f"line {node.lineno}: {node.func.attr}"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_job_collects_rows_but_for_the_capped_ones(path: Path) -> None:
    found = [call.split()[-1] for call in forbidden(path.read_text(encoding="utf-8"))]
    assert found == (["collect"] if path == ALLOWED else [])


def test_it_finds_what_is_forbidden() -> None:
    assert list(forbidden("x = 1\nframe.where(y).collect()\nF.first('a')\nframe.first()")) == [
        "line 2: collect",
        "line 4: first",
    ]
