"""Finding the app: as the Functions worker does for the v2 programming model."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from azure.functions.decorators.function_app import FunctionRegister

from .app_settings import AppSettings
from .brief import brief
from .errors import AppError
from .functions import Function, describe_function

_MODULE = "function_app"


def load_app(directory: Path) -> FunctionRegister:
    """Import `function_app.py` of a directory, with this directory first on the path, and return its app.

    Raises:
        AppError: no such file, an import that fails, no app in it, or several.
    """
    source = directory / f"{_MODULE}.py"
    if not source.is_file():
        raise AppError(f"{source} is missing: name the directory of a Python v2 function app.")
    sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(_MODULE)
    except Exception as error:
        raise AppError(f"{source.name} cannot be imported: {brief(error, directory)}") from error
    return find_app(module)


def find_app(module: ModuleType) -> FunctionRegister:
    """The one app among a module's top-level names.

    Raises:
        AppError: there is none, or more than one.
    """
    apps = {id(value): value for value in vars(module).values() if isinstance(value, FunctionRegister)}
    if not apps:
        raise AppError(f"{module.__name__} has no app: add 'app = func.FunctionApp()' at its top level.")
    if len(apps) > 1:
        raise AppError(f"{module.__name__} has {len(apps)} apps: keep one and register the others as blueprints.")
    return next(iter(apps.values()))


def describe_functions(app: FunctionRegister, settings: AppSettings) -> tuple[Function, ...]:
    """The app's functions, sorted by name.

    `get_functions` may be called once in an app's life, hence so may this. As on the real host, a function is left out
    when the setting `AzureWebJobs.<name>.Disabled` is true: so several hosts can share the functions of one app.

    Raises:
        AppError: the app declares nothing, a name twice, or something this host does not serve.
        SettingsError: a setting which a binding needs is missing.
    """
    try:
        declared = app.get_functions()
    except ValueError as error:
        raise AppError(f"The app's functions cannot be read: {error} Hand a new app to each host.") from error
    if not declared:
        raise AppError("The app has no functions: decorate some, such as with @app.queue_trigger.")
    enabled = [function for function in declared if not _is_disabled(function.get_function_name() or "", settings)]
    functions = [describe_function(function, settings) for function in enabled]
    return tuple(sorted(functions, key=lambda function: function.name))


def _is_disabled(name: str, settings: AppSettings) -> bool:
    return (settings.get(f"AzureWebJobs.{name}.Disabled") or "").lower() in {"true", "1"}
