"""Folders of any file system that Spark knows. Files and folders are replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError

_UNFINISHED: Final = ".unfinished-"


class Folder:
    """A folder, which may be absent.

    Args:
        spark: knows the file systems.
        place: path or URI, such as `reports/audit` or `abfss://reports@account.dfs.core.windows.net/audit`.

    Raises:
        ConfigurationError: Spark knows no such file system.
    """

    def __init__(self, spark: SparkSession, place: str) -> None:
        self._spark = spark
        context: Any = spark.sparkContext
        self._hadoop = context._jvm.org.apache.hadoop.fs  # noqa: SLF001  # There is no other way to its file systems.
        try:
            path = self._hadoop.Path(place)
            self._files = path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        except Py4JJavaError as error:
            raise ConfigurationError(f"{place} is no folder that can be written to: {_reason(error)}.") from None
        self._path = self._files.makeQualified(path)
        if self._files.getScheme() == "file":
            self._files = self._files.getRawFileSystem()  # Without files of checksums beside ours.

    def __str__(self) -> str:
        return str(self._path.toString()).removeprefix("file:")

    def place(self, name: str) -> str:
        """Path of a name in this folder, as Spark's readers and writers take it."""
        return f"{self._path.toString()}/{name}"

    def names(self) -> list[str]:
        """Names of all files and folders in it, sorted; none if the folder is absent."""
        if not self._files.exists(self._path):
            return []
        return sorted(str(status.getPath().getName()) for status in self._files.listStatus(self._path))

    def read(self, name: str) -> str:
        """The text of a file."""
        stream = self._files.open(self._inside(name))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file, as a whole or not at all."""
        unfinished = f"{_UNFINISHED}{uuid4().hex}"
        stream = self._files.create(self._inside(unfinished), True)
        try:
            stream.write(bytearray(text.encode("utf-8", "backslashreplace")))  # A lone surrogate is no reason to fail.
        finally:
            stream.close()
        self.delete(name)
        self.rename(unfinished, name)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder in this folder."""
        if not self._files.rename(self._inside(old), self._inside(new)):
            raise OSError(f"{self.place(old)} cannot be renamed to {new}.")

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with all its content, if it is there."""
        self._files.delete(self._inside(name), True)

    def inside(self, name: str) -> Folder:
        """The folder of this name in this one."""
        return Folder(self._spark, self.place(name))

    @contextmanager
    def replaced(self) -> Iterator[Folder]:
        """A new folder that takes the place of this one at the end of the `with` block, unless the block raises."""
        unfinished, former = self._neighbour(), self._neighbour()
        try:
            yield unfinished
            if self._files.exists(self._path):
                self._move(self, former)
            self._move(unfinished, self)
            former.discard()
        except BaseException:
            unfinished.discard()
            raise

    def make(self) -> None:
        """Create the folder. Raises `ConfigurationError` if that is not possible."""
        try:
            made = self._files.mkdirs(self._path)
        except Py4JJavaError as error:
            raise ConfigurationError(f"{self} cannot be written: {_reason(error)}.") from None
        if not made:
            raise ConfigurationError(f"{self} cannot be created: name a folder that can be written.")

    def _neighbour(self) -> Folder:
        """A folder with a name of its own next to this one; not created yet."""
        return Folder(self._spark, f"{self._path.toString()}{_UNFINISHED}{uuid4().hex}")

    def discard(self) -> None:
        """Delete the folder with all its content."""
        self._files.delete(self._path, True)

    def _move(self, old: Folder, new: Folder) -> None:
        if not self._files.rename(old._path, new._path):
            raise OSError(f"{old} cannot be renamed to {new}.")

    def _inside(self, name: str) -> Any:
        return self._hadoop.Path(self._path, name)


def results_folder(spark: SparkSession, place: str, job: str, files: set[str]) -> Folder:
    """The folder of a job's results, created if it is absent.

    Args:
        spark: knows the file systems.
        place: path or URI.
        job: its name for an error, such as "an audit".
        files: names that every folder of its results has.

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


def _reason(error: Py4JJavaError) -> str:
    """Java's message, without its trace."""
    return str(error.java_exception.getMessage()).splitlines()[0]
