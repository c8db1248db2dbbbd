"""The overview: what each service type carries, how many services fit, studies, changes and failures."""

from collections.abc import Mapping

from csit_utils.report.facts import facts
from csit_utils.report.links import CellNames
from csit_utils.report.pages.trend import sparkline
from csit_utils.report.report_context import ReportContents, runs_shown
from csit_utils.report.study import Page
from csit_utils.studies.density.fits import fits_view
from csit_utils.studies.density.headlines import testbed_views
from csit_utils.studies.registry import record_kinds


def _build(shown: ReportContents) -> Mapping[str, object]:
    blocks = (block for view in shown.systems if not view.published for block in view.blocks)
    question = next((block.tables.questions[-1].question for block in blocks if block.tables.questions), None)
    changed = {line.href for line in shown.changes}
    followed = ((f"#{CellNames.address(trend.cell)}", trend) for trend in shown.trends) if changed else ()
    return {
        "tally": shown.tally,
        "testbeds": testbed_views(shown.systems, shown.trends_by_cell),
        "fits": fits_view(question, shown.evidence) if question else None,
        "systems": shown.systems,
        "runs": runs_shown(shown),
        "changes": shown.changes,
        "sparks": {href: sparkline(trend.values) for href, trend in followed if href in changed},
        "compared": shown.has_earlier_runs,
        "oversubscribed": sum(bool(row.oversubscribed) for row in shown.latest),
        "problems": shown.contents.problems,
        "characterizations": shown.characterizations,
        "kinds": {kind.kind: kind.name for kind in record_kinds().values()},
        "facts": facts(shown.contents),
    }


PAGE = Page("overview", "Overview", _build)
