"""Folders of any file system that the job can write to. Files and folders are replaced as a whole.

Classic Spark knows many file systems; a client of Spark Connect has its own only. Paths are texts, as Spark's readers and
writers take them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.spark.session import is_connect

_SCHEME: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):(//(?=/))?", re.IGNORECASE)


class HadoopFiles:
    """The file system of a path or URI, as classic Spark knows it. Raises `ConfigurationError` if Spark knows none."""

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
        """The whole path of a place, which may be relative."""
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
        """Write a file, and the folders above it. A reader may see a part of it."""
        stream = self._files.create(self._hadoop.Path(path), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder. The new name must be free. Raises `OSError` if that is not possible."""
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
    """The file system of this process. Spark has to know the same paths, as with volumes of Unity Catalog."""

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


Files = HadoopFiles | PlainFiles


def _reason(error: Py4JJavaError) -> str:
    """Java's message, without its trace."""
    return str(error.java_exception.getMessage()).splitlines()[0]


_UNFINISHED: Final = ".unfinished-"


class Folder:
    """A folder, which may be absent.

    Args:
        place: path or URI, such as `reports/audit` or `abfss://reports@account.dfs.core.windows.net/audit`.
        files: the file system of the place; found by default.

    Raises:
        ConfigurationError: Spark knows no such file system.
    """

    def __init__(self, spark: SparkSession, place: str, files: Files | None = None) -> None:
        self._spark = spark
        self._files = files or (PlainFiles() if is_connect() else HadoopFiles(spark, place))
        self._path = self._files.path(place)

    def __str__(self) -> str:
        return self._path.removeprefix("file:")

    def place(self, name: str) -> str:
        """Path of a name in this folder, as Spark's readers and writers take it."""
        return f"{self._path}/{name}"

    def names(self) -> list[str]:
        """Names of all files and folders in it, sorted; none if the folder is absent."""
        return sorted(self._files.names(self._path)) if self._files.exists(self._path) else []

    def read(self, name: str) -> str:
        """The text of a file."""
        return self._files.read(self.place(name)).decode()

    def write(self, name: str, text: str) -> None:
        """Write a file, as a whole or not at all."""
        unfinished = f"{_UNFINISHED}{uuid4().hex}"
        content = text.encode("utf-8", "backslashreplace")  # A lone surrogate is no reason to fail.
        self._files.write(self.place(unfinished), content)
        self.delete(name)
        self.rename(unfinished, name)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder in this folder."""
        self._files.rename(self.place(old), self.place(new))

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with all its content, if it is there."""
        self._files.delete(self.place(name))

    def inside(self, name: str) -> Folder:
        """The folder of this name in this one."""
        return Folder(self._spark, self.place(name), self._files)

    @contextmanager
    def replaced(self) -> Iterator[Folder]:
        """A new folder, which replaces this folder at the end of the `with` block, unless the block raises."""
        unfinished, former = (f"{self._path}{_UNFINISHED}{uuid4().hex}" for _ in range(2))
        try:
            yield Folder(self._spark, unfinished, self._files)
            if self._files.exists(self._path):
                self._files.rename(self._path, former)
            self._files.rename(unfinished, self._path)
            self._files.delete(former)
        except BaseException:
            self._files.delete(unfinished)
            raise

    def make(self) -> None:
        """Create the folder. Raises `ConfigurationError` if that is not possible."""
        self._files.make(self._path)


def results_folder(spark: SparkSession, place: str, job: str, files: set[str]) -> Folder:
    """The folder of a job's results, created if it is absent.

    Args:
        job: name of the job for an error, such as "an audit".
        files: names in every folder of results of the job.

    Raises:
        ConfigurationError: the folder holds other files, or cannot be written.
    """
    folder = Folder(spark, place)
    names = set(folder.names())
    if names and not names >= files:
        raise ConfigurationError(
            f"{folder} holds something else than results of {job}, which would be deleted: name another folder with --out."
        )
    folder.make()
    return folder
