"""Runs the query cases of vercel's cosmosdb-query against the emulator: `python -m local_cosmos_tests.suites.vercel_query`.

They are TypeScript, so the command needs Git and Node with npm. It clones the repository, and gives each case a container with
its items. Each failure has its cause in `vercel_query.json`. The command writes `docs/vercel-query.md`, and fails for a failure
without a cause.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final

from local_cosmos.semantics.requests import Reply
from local_cosmos.values import parse
from local_cosmos_tests.accounts import LocalAccount
from local_cosmos_tests.suites.judging import DOCS, judge, outcomes_in

REPOSITORY: Final = "https://github.com/vercel/cosmosdb-query"
COMMIT: Final = "515088a"
PAGE: Final = DOCS / "vercel-query.md"
CAUSES: Final = Path(__file__).with_suffix(".json")
_JAVASCRIPT: Final = Path(__file__).parent / "javascript"
_HEAD: Final = """# The query cases of cosmosdb-query

[cosmosdb-query](https://github.com/vercel/cosmosdb-query) is the engine of vercel's emulator.
`python -m local_cosmos_tests.suites.vercel_query` runs the cases of its commit {commit} here: {passed} of {all} give what they
expect. Each that fails has its cause below; `local_cosmos_tests/suites/vercel_query.json` names them."""

_COMPILER: Final = "sucrase@3.35.1"
_OF_ITS_PLANNER: Final = "partition-keys.ts"
"""Cases of a function of the library that asks no query."""


class RefusedError(Exception):
    """The emulator does not answer a query; the text says why."""


def answer(asked: dict[str, Any]) -> list[Any]:
    """The results of a query over the items of a case."""
    composite = asked.get("compositeIndexes")
    policy: dict[str, Any] = {"indexingPolicy": {"compositeIndexes": composite}} if composite else {}
    account = LocalAccount(partitionKey={"paths": ["/made"], "kind": "Hash", "version": 2}, **policy)
    ids = {str(item.get("id", f"made-{number}")): item for number, item in enumerate(asked["items"])}
    for made, item in ids.items():
        _answered(account.ask("create", {**item, "id": made, "made": "p"}, "p"))
    pages = account.pages({"query": asked["query"], "parameters": asked.get("parameters") or []}, "p")
    return [_as_it_came(entry, ids) for page in pages for entry in _answered(page)["Documents"]]


def _answered(reply: Reply) -> Any:
    content = parse(reply.body)
    if reply.status not in (200, 201):
        raise RefusedError(content["message"])
    return content


def _as_it_came(value: Any, ids: Mapping[str, dict[str, Any]]) -> Any:
    """A result without what the account adds to items."""
    if isinstance(value, list):
        return [_as_it_came(item, ids) for item in value]
    if not isinstance(value, dict):
        return value
    if "_self" not in value:
        return {name: _as_it_came(item, ids) for name, item in value.items()}
    original = ids[value["id"]]
    return {name: original[name] for name in original if name in value}


class _Cases(BaseHTTPRequestHandler):
    """Answers the queries of the cases."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            said: dict[str, Any] = {"result": answer(asked)}
        except RefusedError as refused:
            said = {"refused": str(refused)}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what failed is in the outcome of its case."""


@contextmanager
def _answering() -> Iterator[str]:
    """The address at which queries are answered."""
    with HTTPServer(("127.0.0.1", 0), _Cases) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def main() -> int:
    """Run the cases and write the page; 1 if a failure has no cause."""
    parser = argparse.ArgumentParser(prog="python -m local_cosmos_tests.suites.vercel_query", description=__doc__)
    parser.add_argument("--repository", default=REPOSITORY, help="where Git finds it (default: %(default)s)")
    with tempfile.TemporaryDirectory() as folder:
        outcomes = outcomes_in(run(parser.parse_args().repository, Path(folder)))
    passed = sum(outcome.outcome == "passed" for outcome in outcomes)
    head = _HEAD.format(commit=COMMIT, passed=passed, all=len(outcomes))
    return judge(outcomes, CAUSES, PAGE, iter([head]))


def run(repository: str, folder: Path) -> str:
    """The outcomes of all cases, one a line.

    Args:
        repository: Where Git finds the cases.
        folder: For all files.
    """
    clone, built, compiler = folder / "cosmosdb-query", folder / "built", folder / "node_modules" / ".bin" / "sucrase"
    _do("git", "clone", "-q", repository, clone)
    _do("git", "-C", clone, "checkout", "-q", COMMIT)
    (clone / "test" / _OF_ITS_PLANNER).unlink()
    _do("npm", "install", "--silent", "--prefix", folder, _COMPILER)
    (built / "lib").mkdir(parents=True)
    _do(compiler, clone / "test", "-d", built / "test", "--transforms", "typescript,imports", "-q")
    shutil.copy(_JAVASCRIPT / "library.cjs", built / "lib" / "index.js")
    shutil.copy(_JAVASCRIPT / "expectation.cjs", built / "test" / "utils" / "test-query.js")
    with _answering() as address:
        return _do("node", _JAVASCRIPT / "cases.cjs", built / "test", CASES_ACCOUNT=address)


def _do(*command: str | Path, **environment: str) -> str:
    """What a command prints."""
    ran = subprocess.run(command, env=os.environ | environment, check=True, stdout=subprocess.PIPE, text=True)
    return str(ran.stdout)


if __name__ == "__main__":
    sys.exit(main())
