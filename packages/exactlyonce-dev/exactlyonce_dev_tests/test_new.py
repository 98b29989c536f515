"""A new app: written with the wheel of the library, tested by its own tests, and published without what is not the app's."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import zipfile
from importlib.metadata import PackagePath
from pathlib import Path

import pytest

from exactlyonce import ConfigurationError
from exactlyonce_dev import new
from exactlyonce_dev.new import main, pack, write_app


class Installed:
    """A distribution as pip installs it from its wheel."""

    version = "1.2"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files = [
            self._file("exactlyonce/__init__.py", "1"),
            self._file("exactlyonce/__pycache__/__init__.pyc", "2"),
            self._file("exactlyonce-1.2.dist-info/METADATA", "3"),
            self._file("exactlyonce-1.2.dist-info/RECORD", "4"),
            self._file("exactlyonce-1.2.dist-info/INSTALLER", "5"),
            self._file("../bin/exactlyonce", "6"),
        ]

    def _file(self, name: str, text: str) -> PackagePath:
        path = self._folder / "site-packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        file = PackagePath(name)
        file.dist = self  # type: ignore[assignment]
        return file

    def locate_file(self, file: PackagePath) -> Path:
        return self._folder / "site-packages" / file


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Installed:
    made = Installed(tmp_path_factory.mktemp("environment"))
    monkeypatch.setattr(new, "distribution", lambda _: made)
    return made


@pytest.mark.usefixtures("installed")
def test_a_wheel_holds_what_was_installed_from_one_and_its_record(tmp_path: Path) -> None:
    path = pack("exactlyonce", tmp_path)
    assert path.name == "exactlyonce-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path) as wheel:
        rows = list(csv.reader(wheel.read("exactlyonce-1.2.dist-info/RECORD").decode().splitlines()))
        assert [row[0] for row in rows] == wheel.namelist()
    assert rows[0] == ["exactlyonce/__init__.py", "sha256=a4ayc_80_OGda4BO_1o_V0etpOqiLx1JwB5S3beHW0s", "1"]
    assert [row[0] for row in rows[1:]] == ["exactlyonce-1.2.dist-info/METADATA", "exactlyonce-1.2.dist-info/RECORD"]


def test_a_library_without_a_wheel_is_refused_and_nothing_is_left(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed.files = installed.files[2:]
    with pytest.raises(ConfigurationError, match="'make dist'"):
        write_app(tmp_path, "shop")
    assert not (tmp_path / "shop").exists()
    monkeypatch.undo()
    with pytest.raises(ConfigurationError, match="is not installed from a wheel"):
        pack("no-such-distribution", tmp_path)


@pytest.mark.usefixtures("installed")
def test_the_command_writes_an_app_and_says_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tea-shop"]) == 0
    assert "cd tea-shop\n" in capsys.readouterr().out
    app = tmp_path / "tea-shop"
    assert {path.relative_to(app).as_posix() for path in app.rglob("*") if path.is_file()} == {
        *(
            ".funcignore",
            ".gitignore",
            "README.md",
            "azure.yaml",
            "function_app.py",
            "host.json",
            "local.settings.json",
        ),
        *("local.settings.json.example", "orders.py", "pyproject.toml", "requirements-dev.txt", "requirements.txt"),
        *("tests/test_infra.py", "tests/test_orders.py", "wheels/exactlyonce-1.2-py3-none-any.whl"),
        *("infra/main.bicep", "infra/main.parameters.json", "infra/bicepconfig.json"),
        *(f"infra/app/{part}.bicep" for part in ("cosmos", "function", "monitoring", "storage")),
    }
    assert json.loads((app / "local.settings.json").read_text())["Values"]["COSMOS__database"] == "tea-shop"
    parameters = json.loads((app / "infra" / "main.parameters.json").read_text())["parameters"]
    assert parameters["databaseName"] == {"value": "tea-shop"}
    assert "\n./wheels/exactlyonce-1.2-py3-none-any.whl[azure]\n" in (app / "requirements.txt").read_text()
    assert "local.settings.json\n" in (app / ".gitignore").read_text()
    assert main(["tea-shop"]) == 2
    assert "tea-shop exists already" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Shop", "a", "ab", "9ab", "shop_1", "shop-", "../shop", "x" * 41])
@pytest.mark.usefixtures("installed")
def test_a_name_that_azure_would_not_take_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([name]) == 2
    assert "cannot be the name of an app" in capsys.readouterr().err


@pytest.mark.usefixtures("installed")
def test_the_tests_of_a_new_app_pass(tmp_path: Path) -> None:
    write_app(tmp_path, "shop")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "shop",
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "5 passed" in run.stdout, run.stdout + run.stderr
