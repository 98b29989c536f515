"""A wheel of an installed distribution, so that an app can take along what is on no registry."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from pathlib import Path

from exactlyonce.errors import ConfigurationError


def pack(name: str, folder: Path) -> Path:
    """Write the wheel of a distribution, from the files that its installation has left. Returns its path.

    Args:
        name: of a distribution in pure Python.
        folder: an existing one.

    Raises:
        ConfigurationError: the distribution is not installed from a wheel.
    """
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        installed = None
    found = [path for path in (installed.files or () if installed else ()) if _belongs(path)]
    if installed is None or not any(item.name == "__init__.py" for item in found):
        raise ConfigurationError(f"{name} is not installed from a wheel: build one by 'make dist', and install that.")
    stem = f"{name.replace('-', '_')}-{installed.version}"
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        records = []
        for item in found:
            content = Path(str(item.locate())).read_bytes()
            packed.writestr(item.as_posix(), content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{item.as_posix()},sha256={digest},{len(content)}")
        record = f"{stem}.dist-info/RECORD"
        packed.writestr(record, "\n".join([*records, f"{record},,", ""]))
    return wheel


def _belongs(file: PackagePath) -> bool:
    """Whether a file was in the wheel: not written by the installation, and no command outside of the packages."""
    made = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    return file.parts[0] != ".." and "__pycache__" not in file.parts and file.name not in made
