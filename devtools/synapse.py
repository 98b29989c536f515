"""Deploys the Spark jobs to the Synapse workspace of `infra`: code and job file to the data lake, definitions to the workspace.

    python -m devtools.synapse [--dry-run]

It reads the names from the environment of azd (`azd env get-values`), and acts with the Azure CLI as who is signed in: an
administrator of the workspace with *Storage Blob Data Contributor* on the data lake. Triggers stay stopped. Running it twice
changes nothing.
Source of the requests: the REST API of Synapse's development endpoint, version 2020-12-01.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "infra" / "synapse"
JOB: Final = "shooting-range.json"
KINDS: Final = {"sparkJobDefinition": "sparkJobDefinitions", "pipeline": "pipelines", "trigger": "triggers"}
"""By folder, what the workspace calls it; what others refer to comes first."""
_EXAMPLE: Final = "EXAMPLE"
_CODE: Final = ("spark_jobs", "exactlyonce")
_AUDIENCE: Final = "https://dev.azuresynapse.net"
_VERSION: Final = "2020-12-01"
_LONG: Final = 200
_LOOKS: Final = 30
_PAUSE_SECONDS: Final = 2.0

Run = Callable[[Sequence[str]], tuple[int, str]]
"""Runs a command; its exit code, and what it printed."""


@dataclass(frozen=True)
class Place:
    """Where the jobs go.

    Attributes:
        workspace: name of the Synapse workspace.
        lake: name of the storage account of its data lake.
        endpoint: of Cosmos DB.
    """

    workspace: str
    lake: str
    endpoint: str

    @classmethod
    def of_azd(cls, printed: str) -> Place:
        """The place in what `azd env get-values` prints. Raises `SystemExit` with what is missing."""
        values = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
        names = ("SYNAPSE_WORKSPACE", "SYNAPSE_DATA_LAKE", "COSMOS_ACCOUNT_ENDPOINT")
        found = [values.get(name, "").strip('"') for name in names]
        if not all(found):
            raise SystemExit(
                "This environment of azd has no workspace: azd env set DEPLOY_SPARK true, and azd provision."
            )
        return cls(*found)


def write_files(place: Place, folder: Path) -> None:
    """Write what goes to the data lake: the code, as one archive, the two entries, and the job file."""
    with zipfile.ZipFile(folder / "spark_jobs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (path for package in _CODE for path in sorted((ROOT / package).rglob("*"))):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(ROOT))
    for name in ("audit.py", "cleanup.py"):
        shutil.copy(FOLDER / name, folder)
    job = {**json.loads((FOLDER / JOB).read_text()), "endpoint": place.endpoint}
    (folder / JOB).write_text(json.dumps(job, indent=2))


def uploads(place: Place, folder: Path) -> Iterator[list[str]]:
    """The commands that upload what a folder holds."""
    for path in sorted(folder.iterdir()):
        yield [
            *("az", "storage", "fs", "file", "upload", "--account-name", place.lake, "--file-system", "jobs"),
            *(
                "--source",
                str(path),
                "--path",
                f"exactlyonce/{path.name}",
                "--overwrite",
                "true",
                "--auth-mode",
                "login",
            ),
        ]


def definitions(place: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    """Address and content of every definition, in the order in which they refer to each other."""
    for folder, kind in KINDS.items():
        for path in sorted((FOLDER / folder).glob("*.json")):
            address = f"https://{place.workspace}.dev.azuresynapse.net/{kind}/{path.stem}?api-version={_VERSION}"
            yield address, json.loads(path.read_text().replace(_EXAMPLE, place.lake))


def deploy(place: Place, run: Run, pause: Callable[[float], None]) -> None:
    """Upload the code, then define jobs, pipelines and triggers, each when what it refers to is there.

    Args:
        place: where to.
        run: runs a command of the Azure CLI.
        pause: waits for seconds.

    Raises:
        SystemExit: a command failed, or a definition did not appear.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_files(place, folder)
        for command in uploads(place, folder):
            _required(run, command)
    for address, content in definitions(place):
        rest = ("az", "rest", "--resource", _AUDIENCE, "--url", address)
        _required(run, [*rest, "--method", "put", "--body", json.dumps(content)])
        for _ in range(_LOOKS):  # The workspace takes a definition before it has it.
            if run([*rest, "--method", "get"])[0] == 0:
                break
            pause(_PAUSE_SECONDS)
        else:
            raise SystemExit(
                f"The workspace took {content['name']}, but does not show it: look at it in Synapse Studio."
            )


def _required(run: Run, command: Sequence[str]) -> str:
    code, printed = run(command)
    if code:
        raise SystemExit(
            f"'{' '.join(command[:5])} …' failed. It said: {(printed.strip().splitlines() or ['nothing'])[-1]}"
        )
    return printed


def _run(command: Sequence[str]) -> tuple[int, str]:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr if ran.returncode else ran.stdout


def _shown(command: Sequence[str]) -> tuple[int, str]:
    print(" ".join(part if len(part) < _LONG else f"{part[:60]}…" for part in command))
    return 0, ""


def main() -> int:
    """Deploy."""
    parser = argparse.ArgumentParser("python -m devtools.synapse", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and run none of them")
    given = parser.parse_args()
    place = Place.of_azd(_required(_run, ["azd", "env", "get-values"]))
    deploy(place, _shown if given.dry_run else _run, time.sleep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
