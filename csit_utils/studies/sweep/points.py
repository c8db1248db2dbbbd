"""Loads of a sweep in the units of a profile, for plots."""

from dataclasses import dataclass

from csit_utils.report.figures import Json
from resources.libraries.python.model.cell import Frame
from resources.libraries.python.model.result import l2_bps
from resources.libraries.python.studies.sweep.analysis.points import GIGA
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS
from resources.libraries.python.studies.sweep.model.profile import ProfileMetric
from resources.libraries.python.studies.sweep.model.record import SweepPoint, SweepSample

LINEAR, LOGARITHMIC = "linear", "logarithmic"
SCALES = (LINEAR, LOGARITHMIC)
NAMES = {
    ProfileMetric.THROUGHPUT: "throughput",
    ProfileMetric.DELAY: "one-way delay",
    ProfileMetric.LOSS: "loss",
}
FIRST_SCALE = {ProfileMetric.THROUGHPUT: LINEAR, ProfileMetric.DELAY: LOGARITHMIC, ProfileMetric.LOSS: LINEAR}
"""In which a metric shows itself best."""


@dataclass(frozen=True)
class PlotPosition:
    """Where a load is in plots: what was really sent, and what came of it. None where it was not measured."""

    rate: float
    """Gbit/s, one way, L2."""
    input_pps: float
    output_pps: float
    values: dict[ProfileMetric, float | None]

    def text(self, metric: ProfileMetric) -> str:
        """For hovering."""
        value = self.values[metric]
        found = "not measured" if value is None else f"{value:.4g} {UNITS[metric]}"
        return f"input {self.rate:.4g} Gbit/s ({self.input_pps:,.0f} pps)<br>{NAMES[metric]} {found}"


def place(row: SweepPoint | SweepSample, frame: Frame) -> PlotPosition:
    """Return the position of a load, or of one of its seconds."""
    return PlotPosition(
        rate=l2_bps(row.input_pps, frame) / GIGA,
        input_pps=row.input_pps,
        output_pps=row.output_pps,
        values={
            ProfileMetric.THROUGHPUT: l2_bps(row.output_pps, frame) / GIGA,
            ProfileMetric.DELAY: None if row.delay_s is None else 1e3 * row.delay_s,
            ProfileMetric.LOSS: None if row.loss_ratio is None else 100 * row.loss_ratio,
        },
    )


def axes(metric: ProfileMetric, scale: str) -> Json:
    """Axes of a metric against the input rate."""
    vertical: Json = {"type": "log", "dtick": 1} if scale == LOGARITHMIC else {"rangemode": "tozero"}
    return {
        "xaxis": {"title": {"text": "input rate, Gbit/s"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": f"{NAMES[metric]}, {UNITS[metric]}"}, **vertical},
    }


def shown(value: float | None, scale: str) -> float | None:
    """A value as a plot takes it: a logarithmic axis has no zero."""
    return None if value is None or (scale == LOGARITHMIC and value <= 0) else float(f"{value:.6g}")
