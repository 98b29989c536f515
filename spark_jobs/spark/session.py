"""The Spark session of a job: the session of the pool, or a small local session."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.utils import is_remote

from exactlyonce.errors import ConfigurationError
from spark_jobs.spark.frames import capped

_HERE: Final = Path(__file__).resolve().parent
_OLDEST_JAVA: Final = 17
_NEWEST_JAVA: Final = 21
"""Spark 3.5 supports Java 8, 11 and 17. It works with 21; later versions were not tried."""
_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # The default of Spark 4 refuses an index that an array does not have. The jobs mean null, as with Spark 3.5.
    "spark.sql.ansi.enabled": "false",
}
_COLLECTOR: Final = "-XX:+UseParallelGC"
"""With few cores, short pauses cost less than a collector that runs concurrently with the job."""
_OPTIONS_OF_JAVA: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_GIVEN: Final = frozenset({"PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"})
"""Settings that name a Spark to use: `spark-submit` sets the one, an operator sets the other for Spark Connect."""
_MANY: Final = 100_000
"""Rows enough for a part on every core."""
_NAMED_OFTEN: Final = ("functions", "PythonUtils", "PythonSQLUtils")


def session(name: str) -> SparkSession:
    """The active session under `spark-submit`, on Synapse, in notebooks and with Spark Connect; else a new local one.

    Args:
        name: of the application, as Spark shows it.

    Raises:
        ConfigurationError: there is no Java for a local session.
    """
    found = SparkSession.getActiveSession()
    if found is None:
        if not _GIVEN & os.environ.keys():
            return local_session(name)
        found = SparkSession.builder.appName(name).getOrCreate()
    for setting, value in _SETTINGS.items():
        found.conf.set(setting, value)
    return found if is_connect() else _acquainted(found)


def is_connect() -> bool:
    """Whether this process is a client of Spark Connect, without the JVM and without RDDs."""
    return is_remote()


def parallelism(spark: SparkSession) -> int:
    """Number of tasks that run at a time: `spark.default.parallelism`, or the default of Spark."""
    given = spark.conf.get("spark.default.parallelism", None)
    if given is not None:
        return int(given)
    parts = spark.range(_MANY).select(F.spark_partition_id().alias("part"))
    ((last,),), _ = capped(parts.agg(F.max("part")), 1)
    return int(last) + 1


def local_session(
    name: str, *, cores: int = 2, shuffle_partitions: int = 4, attempts: int = 4, java: str = ""
) -> SparkSession:
    """Start Spark inside this process, without its web page, and with warnings only in its log.

    Args:
        cores: number of tasks that run at a time.
        shuffle_partitions: number of parts of joins and groupings.
        attempts: runs of a task before the job fails; plain `local[n]` allows one, a pool four.
        java: more options of Java, separated by spaces.

    Raises:
        ConfigurationError: there is no Java, or none that Spark 3.5 runs on.
    """
    require_java()
    # Workers run the interpreter of the driver, and find this package wherever the driver found it.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    paths = [str(_HERE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    log = f"-Dlog4j2.configurationFile={(_HERE / 'log4j2.properties').as_uri()}"
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_SETTINGS,
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.default.parallelism": str(cores),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{log} {java} {collector(java)}",
        "spark.python.daemon.module": "spark_jobs.daemon",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(paths),
    }
    builder = SparkSession.builder.appName(name).master(f"local[{cores},{attempts}]")
    for option, value in options.items():
        builder = builder.config(option, value)
    return _acquainted(builder.getOrCreate())


def collector(given: str, environment: Mapping[str, str] = os.environ) -> str:
    """The option for the collector of garbage; empty where one is chosen: of two, Java starts with none.

    Args:
        given: options of Java.
        environment: may hold more of them.
    """
    chosen = " ".join((given, *(environment.get(name, "") for name in _OPTIONS_OF_JAVA)))
    return "" if re.search(r"-XX:\+Use\w+GC", chosen) else _COLLECTOR


def _acquainted(spark: SparkSession) -> SparkSession:
    """The session, with the Java classes that PySpark looks up for every plan looked up once.

    For a simple name Java searches every jar for each possible package: a fifth of the time to plan an audit.
    """
    java: Any = spark.sparkContext._jvm  # noqa: SLF001  # PySpark finds them there, too.
    for name in _NAMED_OFTEN:
        setattr(java, name, getattr(java, name))
    return spark


def require_java(environment: Mapping[str, str] = os.environ) -> int:
    """The version of the Java that Spark would start.

    Raises:
        ConfigurationError: there is none, or none that Spark 3.5 runs on.
    """
    home = environment.get("JAVA_HOME")
    place = Path(home, "bin", "java") if home else shutil.which("java", path=environment.get("PATH", ""))
    advice = f"Install Java {_OLDEST_JAVA}, and set JAVA_HOME to it if it is not the one on the PATH."
    if place is None:
        raise ConfigurationError(f"Spark needs Java, and there is none on the PATH. {advice}")
    try:
        output = subprocess.run([place, "-version"], capture_output=True, text=True, timeout=300, check=True).stderr  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        raise ConfigurationError(f"Spark needs Java, and {place} does not start. {advice}") from None
    version = re.search(r'version "(\d+)', output)
    if version is None or not _OLDEST_JAVA <= int(version[1]) <= _NEWEST_JAVA:
        first = output.partition("\n")[0]
        raise ConfigurationError(f"Spark 3.5 needs Java {_OLDEST_JAVA}; {place} calls itself {first!r}. {advice}")
    return int(version[1])
