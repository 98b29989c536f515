"""A plugin for pytest that puts a mutant in the place of a module, before anybody imports it.

So nothing of the library may be imported here.
"""

from __future__ import annotations

import resource
import sys
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from os import environ
from pathlib import Path
from types import ModuleType
from typing import Any, Final

MODULE: Final = "EXACTLYONCE_MUTANT_MODULE"
SOURCE: Final = "EXACTLYONCE_MUTANT_SOURCE"
"""Variables that name the module, and the file with the source that takes its place."""
LIMIT: Final = "EXACTLYONCE_MUTANT_SECONDS"
"""Variable with the most processor time: the kernel ends a process that takes more with SIGXCPU."""
NOT_RUN: Final = 77
"""Exit code if the tests never imported the module, so that they say nothing about the mutant."""


class _Mutant(MetaPathFinder, InspectLoader):
    """Finds one module, and loads it from elsewhere."""

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> ModuleSpec | None:
        """The module, if it is the one."""
        return spec_from_loader(fullname, self) if fullname == environ[MODULE] else None

    def exec_module(self, module: ModuleType) -> None:
        """Run it. Mutants name the replies that they make up."""
        module.__dict__["effects"] = import_module("verification.twins.all_effects").effects
        super().exec_module(module)

    def get_source(self, _fullname: str) -> str:
        return Path(environ[SOURCE]).read_text(encoding="utf-8")


def pytest_configure(config: Any) -> None:
    del config
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(environ[LIMIT]), most))
    if environ[MODULE] in sys.modules:
        raise RuntimeError(f"{environ[MODULE]} was imported before its mutant could take its place.")
    sys.meta_path.insert(0, _Mutant())


def pytest_sessionfinish(session: Any) -> None:
    """Tests that never came to the module are no proof."""
    if environ[MODULE] not in sys.modules:
        session.exitstatus = NOT_RUN
