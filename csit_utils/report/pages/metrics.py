"""Explanations of metrics."""

from collections.abc import Mapping

from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.studies.registry import explanations


def _build(_shown: ReportContents) -> Mapping[str, object]:
    return {"explanations": list(explanations().values())}


PAGE = Page("metrics", "How to read", _build)
