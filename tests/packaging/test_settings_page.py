"""The page of settings names every setting."""

from __future__ import annotations

import re

from exactlyonce.hosting.config.settings import Settings
from tests.packaging.sources import ROOT


def test_every_setting_is_on_the_page_of_settings_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    table, _, _ = page.partition("\nA connection is ")
    written = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(written) == sorted(str(field.validation_alias) for field in Settings.model_fields.values())
