"""`python -m verification.specification`: write the pages of `docs/protocols`."""

from __future__ import annotations

from verification.specification.pages import FOLDER, pages

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
