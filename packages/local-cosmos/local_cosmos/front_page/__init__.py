"""The page that a browser sees at the emulator's address: what it holds and what it was asked. It changes nothing."""

from local_cosmos.front_page.page import HEADERS, is_wanted, page

__all__ = ["HEADERS", "is_wanted", "page"]
