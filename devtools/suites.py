"""Which tests have verdicts, and what tests read besides what they import: the table of `devtools.verdicts`.

A test file runs with every change if it takes less than two seconds of the processor, or if nothing else would catch a broken
commit in its room: so each suite below has a few that are quick. All others are slow, and have verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class Suite(NamedTuple):
    """What is said of the tests in a folder or file, besides what is said of the folders above it.

    Attributes:
        reads: files and folders that they, or processes that they start, read and do not import; "" is the whole repository.
        tools: programs that they use, besides Python.
        slow: whether they have verdicts; where nothing is said, it is as in the folder above.
    """

    reads: Sequence[str] = ()
    tools: Sequence[str] = ()
    slow: bool | None = None


_SLOW: Final = Suite(slow=True)
_QUICK: Final = Suite(slow=False)
_PACKAGES: Final = tuple(
    f"packages/{name}/{name.replace('-', '_')}"
    for name in ("exactlyonce-dev", "function-host", "local-cosmos", "local-service-bus", "yieldcheck")
)
_NODE: Final = ("package.json", "package-lock.json")
"""Azurite, and clients for Node."""
_HOSTED: Final = ("exactlyonce", "handlers", "function_app.py", "host.json", *_PACKAGES, *_NODE)
"""What runs where tests start hosts."""
_MUTANTS: Final = "tests/model/mutants"
_COSMOS: Final = "packages/local-cosmos/local_cosmos_tests"
_BUS: Final = "packages/local-service-bus/local_service_bus_tests"
_DEV: Final = "packages/exactlyonce-dev/exactlyonce_dev_tests"


def _tests(folder: str, names: str, suite: Suite) -> dict[str, Suite]:
    return {f"{folder}/test_{name}.py": suite for name in names.split()}


SUITES: Final[Mapping[str, Suite]] = {
    "": Suite(["conftest.py", "locks"]),
    "tests/packaging": Suite([""]),
    "tests/infra": Suite([""], ["node"]),
    "tests/contract": Suite(_NODE, ["node"]),
    "tests/contract/test_suites_for_azure.py": Suite(["tests/azure"], slow=True),
    "tests/contract/test_cosmos_faults.py": _SLOW,
    "tests/unit/drivers/test_books_are_right.py": _SLOW,
    "tests/unit/hosting/test_payments.py": _SLOW,
    "tests/unit/protocols/resequencer/test_resequencing_room.py": _SLOW,
    "tests/unit/testing/test_explore_is_right.py": _SLOW,
    # The model
    "tests/model": _SLOW,
    **_tests("tests/model", "smallest_worlds mutant_keys alterations", _QUICK),
    "tests/model/test_reporting.py": Suite(
        ["exactlyonce", "verification", "packages/yieldcheck/yieldcheck"], slow=False
    ),
    **_tests("tests/model", "mutant_tables hosting_mutants", Suite(["tests/unit", _MUTANTS], slow=False)),
    "tests/model/test_published_algorithm.py": Suite(["docs/protocols"], slow=False),
    "tests/model/test_mutants.py": Suite([_MUTANTS]),
    "tests/simulation/test_episodes.py": Suite(["verification/simulation"], slow=True),
    "tests/restores": _SLOW,
    # Spark
    "tests/spark": Suite(["tests/spark/connector", "tests/spark/source/documented_options.json"], ["java"], slow=True),
    "tests/spark/test_smallest_jobs.py": _QUICK,
    "tests/spark/test_describe.py": _QUICK,
    "tests/spark/job": Suite(["infra/synapse"], slow=False),
    "tests/spark/synapse": Suite(["infra/synapse", "pyproject.toml"], slow=False),
    "tests/spark/connect": Suite(slow=False),  # All its tests are those of `make test-spark4`.
    "tests/spark/transforms/test_nothing_is_collected.py": Suite(["spark_jobs"]),
    # Demos, and other processes
    "tests/acceptance": Suite(_HOSTED, ["node"], slow=True),
    **_tests("tests/acceptance", "demo commands_run", Suite(["Makefile", "demo", "spark_jobs"], ["java"])),
    "tests/acceptance/test_service_bus.py": Suite(["Makefile", "demo"]),
    "tests/acceptance/test_smallest_demo.py": Suite(["Makefile", "demo"], slow=False),
    **_tests("tests/acceptance", "outage upgrade", Suite(["demo"])),
    "tests/acceptance/test_sample_app.py": _QUICK,
    "tests/acceptance/test_outage.py": Suite([".funcignore", "LICENSE", "requirements.txt"]),
    "tests/acceptance/test_console_walk.py": Suite([_DEV], slow=False),
    "tests/acceptance/test_quickstart.py": Suite(["docs/quickstart.md"], slow=False),
    "tests/acceptance/test_readme_commands.py": Suite(["README.md"], slow=False),
    **_tests("tests/acceptance", "answering answering_replies", Suite(["tests/acceptance/answering_app"])),
    "tests/acceptance/test_calling_services.py": Suite(
        ["tests/acceptance/answering_app", "tests/acceptance/calling_app"]
    ),
    "tests/acceptance/test_planted_bug.py": Suite(["examples"]),
    "tests/acceptance/test_publish_archive.py": Suite(
        [
            "demo",
            "devtools",
            "packages/function-host/function_host_tests",
            "requirements.txt",
            ".funcignore",
            "pyproject.toml",
        ],
        slow=False,
    ),
    "tests/benchmarks": Suite([*_PACKAGES, *_NODE, "host.json", "benchmarks/peers"], ["node"]),
    **_tests("tests/benchmarks", "cost growth latency", _SLOW),
    "tests/benchmarks/test_peers.py": Suite(["exactlyonce", "docs/peers.md", "benchmarks/results"], slow=True),
    # The stand-ins
    "packages/local-cosmos": Suite(["packages/local-cosmos/local_cosmos"]),
    "packages/local-service-bus": Suite(["packages/local-service-bus/local_service_bus"]),
    "packages/function-host": Suite(["packages/function-host/function_host", *_NODE], ["node"]),
    "packages/exactlyonce-dev": Suite(["exactlyonce", *_PACKAGES, *_NODE, _DEV], ["node"]),
    **_tests(_COSMOS, "model fuzz concurrency durability query_answers robustness", _SLOW),
    f"{_COSMOS}/test_javascript_client.py": Suite([f"{_COSMOS}/javascript", *_NODE], ["node"], slow=True),
    f"{_COSMOS}/test_go_client.py": Suite([f"{_COSMOS}/go"], ["go"], slow=True),
    f"{_COSMOS}/test_java_client.py": Suite([f"{_COSMOS}/java"], ["java"], slow=True),
    f"{_COSMOS}/test_connect_page.py": Suite(
        ["packages/local-cosmos/docs", f"{_COSMOS}/go", f"{_COSMOS}/java", *_NODE], ["go", "node"], slow=True
    ),
    f"{_BUS}/test_sdk_model.py": _SLOW,
    **_tests(_BUS, "javascript_client second_client", Suite([f"{_BUS}/javascript", *_NODE], ["node"], slow=True)),
    f"{_BUS}/test_go_client.py": Suite([f"{_BUS}/go"], ["go"], slow=True),
    f"{_BUS}/test_java_client.py": Suite([f"{_BUS}/java"], ["java"], slow=True),
    **_tests(_DEV, "dev blobs_and_service_bus loopback trial", _SLOW),
    "packages/function-host/function_host_tests/test_command.py": _SLOW,
}
"""By folder or file; "" holds all tests."""
