"""Fixtures that several files of tests share."""

from collections.abc import Iterator

import pytest

from tests.integration.browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of pages; what it said before a test is forgotten by `browser.events.clear()`."""
    with Browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started
