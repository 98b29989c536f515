"""File systems: those that classic Spark knows, and, for clients of Spark Connect, the client's own.

Paths are texts, as Spark's readers and writers take them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Final, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.spark.session import is_connect

_SCHEME: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):(//(?=/))?", re.IGNORECASE)


class Files(Protocol):
    """A file system."""

    def path(self, place: str) -> str:
        """The whole path of a place, which may be relative."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        ...

    def names(self, path: str) -> list[str]:
        """Names of all files and folders in a folder."""
        ...

    def read(self, path: str) -> bytes:
        """The content of a file."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write a file, and the folders above it. A reader may see a part of it."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder. The new name must be free. Raises `OSError` if that is not possible."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all its content, if it is there."""
        ...

    def make(self, path: str) -> None:
        """Create a folder, and those above it. Raises `ConfigurationError` if that is not possible."""
        ...


def files_of(spark: SparkSession, place: str) -> Files:
    """The file system of a place.

    Args:
        spark: knows the file systems, unless it is a session of Spark Connect.
        place: path or URI.

    Raises:
        ConfigurationError: there is no such file system.
    """
    return PlainFiles() if is_connect() else HadoopFiles(spark, place)


class HadoopFiles:
    """A file system that classic Spark knows.

    Args:
        spark: the session.
        place: a path or URI in it.

    Raises:
        ConfigurationError: Spark knows no such file system.
    """

    def __init__(self, spark: SparkSession, place: str) -> None:
        context: Any = spark.sparkContext
        self._hadoop = context._jvm.org.apache.hadoop.fs  # noqa: SLF001  # There is no other way to its file systems.
        try:
            self._files = self._hadoop.Path(place).getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        except Py4JJavaError as error:
            raise ConfigurationError(f"{place} is no folder that can be written to: {_reason(error)}.") from None
        if self._files.getScheme() == "file":
            self._files = self._files.getRawFileSystem()  # It writes no .crc files.

    def path(self, place: str) -> str:
        return str(self._files.makeQualified(self._hadoop.Path(place)).toString())

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(self._hadoop.Path(path)))

    def names(self, path: str) -> list[str]:
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._hadoop.Path(path))]

    def read(self, path: str) -> bytes:
        stream = self._files.open(self._hadoop.Path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        stream = self._files.create(self._hadoop.Path(path), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def rename(self, old: str, new: str) -> None:
        try:
            renamed = self._files.rename(self._hadoop.Path(old), self._hadoop.Path(new))
        except Py4JJavaError as error:
            raise OSError(f"{old} cannot be renamed to {new}: {_reason(error)}.") from None
        if not renamed:
            raise OSError(f"{old} cannot be renamed to {new}.")

    def delete(self, path: str) -> None:
        self._files.delete(self._hadoop.Path(path), True)

    def make(self, path: str) -> None:
        try:
            made = self._files.mkdirs(self._hadoop.Path(path))
        except Py4JJavaError as error:
            raise ConfigurationError(f"{path} cannot be written: {_reason(error)}.") from None
        if not made:
            raise ConfigurationError(f"{path} cannot be created: name a folder that can be written.")


class PlainFiles:
    """The file system of this process. Spark has to find it under the same paths, as it does with volumes of Unity Catalog."""

    def path(self, place: str) -> str:
        found = _SCHEME.match(place)
        if found and found["scheme"].lower() != "file":
            raise ConfigurationError(
                f"{place} is no folder that a client of Spark Connect can write to: name a path that this machine and Spark "
                "have in common, such as /Volumes/catalog/schema/volume/audit."
            )
        return str(Path(place[found.end() :] if found else place).absolute())

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def names(self, path: str) -> list[str]:
        return [item.name for item in Path(path).iterdir()]

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)

    def rename(self, old: str, new: str) -> None:
        Path(old).rename(new)

    def delete(self, path: str) -> None:
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def make(self, path: str) -> None:
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be created: {error.strerror}.") from None


def _reason(error: Py4JJavaError) -> str:
    """Java's message, without its trace."""
    return str(error.java_exception.getMessage()).splitlines()[0]
