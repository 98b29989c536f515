"""A double of azure-cosmos-spark: a small data source of our own, in Java, on the Java SDK that the connector stands on.

The connector's jar cannot be had in development or CI. The double has its names and makes its calls, so that jobs with
`"source": "connector"` run in the tests as they are. What it leaves out is in the comment of `CosmosItemsDataSource.java`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zipfile import ZipFile

import pyspark
from pyspark.sql import SparkSession

NAME: Final = "azure-cosmos-spark_3-5_2-12-double.jar"
"""Of the jar; the connector's ends with its version."""

_HERE: Final = Path(__file__).resolve().parent
_PROJECT: Final = _HERE / "java"
_SOURCES: Final = _PROJECT / "src"
_OPTIONS: Final = _HERE.parent / "source" / "documented_options.json"
_MADE: Final = _HERE.parents[2] / ".make" / "connector-double"
_SPARK: Final = Path(pyspark.__file__).with_name("jars")
_SERVICE: Final = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
_CLASS: Final = "com.azure.cosmos.spark.CosmosItemsDataSource"
_LIST: Final = "sdk.txt"
"""Within the jar: the paths of the SDK's jars."""

_BRIEF: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Java for seconds: to compile what it runs any better takes longer."""


def load_into(spark: SparkSession) -> Path:
    """Put the double on the class path of a session that runs already. Returns its jar."""
    made = jar()
    java: Any = spark._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(java.java.net.URL(made.as_uri()))
    return made


def jar() -> Path:
    """The jar, built unless it is there for the same sources."""
    inputs = [*sorted(_SOURCES.rglob("*.java")), _PROJECT / "pom.xml", _OPTIONS, Path(__file__)]
    digest = hashlib.sha256(pyspark.__version__.encode())
    for path in inputs:
        digest.update(path.read_bytes())
    made = _MADE / digest.hexdigest()[:16] / NAME
    if not _is_whole(made):
        for tool in ("mvn", "javac"):
            assert shutil.which(tool), f"{tool} is needed for these tests, and is not installed (Java 17, Maven 3.8)."
        made.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=_MADE) as folder:
            _built(Path(folder)).replace(made)
    return made


def _is_whole(made: Path) -> bool:
    """Whether the jar is there, and all that Maven downloaded for it."""
    if not made.exists():
        return False
    with ZipFile(made) as archive:
        return all(Path(line).exists() for line in archive.read(_LIST).decode().splitlines())


def _built(folder: Path) -> Path:
    sdk = _sdk(folder / _LIST)
    path, classes = os.pathsep.join([*sdk, str(_SPARK / "*")]), folder / "classes"
    options = [*(f"-J{item}" for item in _BRIEF), "--release", "17", "-proc:none", "-Xlint:none", "-cp", path]
    compiled = _run(["javac", *options, "-d", str(classes), *map(str, sorted(_SOURCES.rglob("*.java")))])
    assert compiled.returncode == 0, compiled.stdout
    with ZipFile(folder / NAME, "w") as archive:
        for item in sorted(classes.rglob("*.class")):
            archive.write(item, item.relative_to(classes).as_posix())
        archive.write(_OPTIONS, _OPTIONS.name)
        archive.writestr(_LIST, "\n".join(sdk))
        archive.writestr(_SERVICE, _CLASS)
    return folder / NAME


def _sdk(output: Path) -> list[str]:
    """The jars of the Java SDK, with what it needs. Only when something is not there yet, it is downloaded."""
    manners = ["--quiet", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never"]
    command = ["mvn", *manners, f"--file={_PROJECT}", "dependency:build-classpath", f"-Dmdep.outputFile={output}"]
    done = _run([*command, "--offline"])
    if done.returncode:
        done = _run(command)
    assert done.returncode == 0, done.stdout
    return output.read_text().strip().split(os.pathsep)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**os.environ, "MAVEN_OPTS": " ".join(_BRIEF)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
