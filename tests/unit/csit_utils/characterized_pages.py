"""Pages made of records of characterizations, and what a reader sees of them."""

import re

from csit_utils.report.figures import Figure
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import RenderedPage, render
from csit_utils.report.study import Page
from resources.libraries.python.model.record import Record
from tests.unit.csit_utils.characterization_records import dataset_of
from tests.unit.csit_utils.in_memory import InMemory


def shown(*records: Record) -> ReportContents:
    return ReportContents(InMemory(dataset_of(*records)))


def made(page: Page, *records: Record) -> RenderedPage:
    found = render(page, shown(*records))
    assert found is not None
    return found


def words(page: RenderedPage) -> str:
    """Of a page, without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", str(page.html)))


def drawn(page: Page, end: str, *records: Record) -> Figure | None:
    """Return the figure of a page whose identity ends with a word; None without one."""
    return next((one for one in made(page, *records).figures if one.identity.endswith(f"-{end}")), None)
