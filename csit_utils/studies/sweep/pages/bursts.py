"""Bursts: what happens second by second when a load comes and goes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csit_utils.report.characterizations import keys_of_page, warnings
from csit_utils.report.figures import Figure
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.studies.sweep.burst_figures import burst_figures
from resources.libraries.python.studies.sweep.model.record import SweepSample


@dataclass(frozen=True)
class Burst:
    """A test on the page."""

    view: View
    figures: tuple[Figure, ...]
    samples: tuple[SweepSample, ...]
    vnfs: tuple[str, ...]
    warnings: Sequence[str]


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = [view for view in shown.characterizations if view.record.kind == "bursts"]
    return keys_of_page("bursts", found, [_burst(view) for view in found]) if found else None


def _burst(view: View) -> Burst:
    sweep = view.record.sweep
    return Burst(
        view,
        tuple(burst_figures(view.anchor, view.record)),
        sweep.samples if sweep else (),
        tuple(vnf.name for vnf in sweep.vnfs) if sweep else (),
        warnings(view.record),
    )


PAGE = Page("bursts", "Bursts", _build)
"""Shown where there are bursts."""
