"""Pages of a report as a test reads them."""

import re
from html.parser import HTMLParser

from resources.libraries.python.studies.density.model import DensityRecord
from tests.unit.csit_utils.datasets import dataset_of, html_of


class Page(HTMLParser):
    """The tags, texts and ids of a page without its scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self._skip = False
        self.feed(html)
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self._skip = tag in ("script", "style")
        if attributes.get("id"):
            self.ids.append(str(attributes["id"]))

    def handle_endtag(self, tag: str) -> None:
        self._skip = False if tag in ("script", "style") else self._skip

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.words.append(data)

    def tips(self) -> list[str]:
        """All texts that show up on hovering."""
        return [str(attributes["data-tip"]) for _, attributes in self.tags if "data-tip" in attributes]


def page_of(*results: DensityRecord) -> Page:
    """The page of these results."""
    return Page(html_of(dataset_of(*results)))
