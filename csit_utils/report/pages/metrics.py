"""How to read each metric."""

from collections.abc import Mapping

from csit_utils.report.explain import EXPLANATIONS
from csit_utils.report.report_context import Page, Shown


def _build(_shown: Shown) -> Mapping[str, object]:
    return {"explanations": list(EXPLANATIONS.values())}


PAGE = Page("metrics", "How to read", _build)
