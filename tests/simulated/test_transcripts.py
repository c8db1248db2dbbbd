"""What the pages of the documentation show is what their commands print."""

from pathlib import Path

import pytest

from resources.libraries.python.paths import PROJECT
from tests.how_to_pages import pages_with_transcripts, rewritten


@pytest.mark.parametrize("page", pages_with_transcripts(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_commands_of_a_page_print_what_it_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rewritten(text) == text, f"renew it: python -m tests.how_to_pages {page.relative_to(PROJECT)}"
