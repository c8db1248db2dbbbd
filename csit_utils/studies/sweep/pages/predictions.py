"""Chains of VNFs: what was predicted from VNFs alone, against what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from csit_utils.report.characterizations import keys_of_page
from csit_utils.report.figures import Figure
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.studies.sweep.pages.profiles import profile_anchor
from csit_utils.studies.sweep.prediction_figures import PartMeasurements, chain_figures
from csit_utils.studies.sweep.words import MODELS, chain_words, error_text, kind_words
from resources.libraries.python.studies.sweep.analysis.chain_prediction import trust
from resources.libraries.python.studies.sweep.analysis.sentences import trust_in_words
from resources.libraries.python.studies.sweep.model.profile import Prediction, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepRecord


@dataclass(frozen=True)
class Predicted:
    """A line of the table of errors."""

    prediction: Prediction
    model: str

    def error(self, metric: ProfileMetric) -> str:
        """For people."""
        return error_text(metric, self.prediction.errors.get(metric))

    @property
    def trusted(self) -> str:
        """Up to which load, by metric."""
        return "; ".join(f"{each.metric} {trust_in_words(each)}" for each in trust(self.prediction))

    @property
    def summed(self) -> float | None:
        """Error of the plain sum of delays; where no path was measured, that is the error of the delay."""
        found = self.prediction
        return found.errors.get(ProfileMetric.DELAY) if found.path is None else found.summed_delay_error

    @property
    def summed_text(self) -> str:
        """For people."""
        return error_text(ProfileMetric.DELAY, self.summed)


@dataclass(frozen=True)
class Chained:
    """A chain on the page."""

    view: View
    way: str
    """Direction of its packets."""
    profile: str
    """Link to its own profile."""
    figures: tuple[Figure, ...]
    predicted: tuple[Predicted, ...]
    notes: Sequence[str]
    """Of its predictions."""


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    chains = [view for view in shown.characterizations if view.record.kind == "chain"]
    if not chains:
        return None
    chained = [_chained(view, shown.characterizations) for view in chains]
    return {**keys_of_page("chained", chains, chained), "metrics": list(ProfileMetric)}


def _chained(view: View, every: Sequence[View]) -> Chained:
    record = view.record
    alone = _alone(view, every)
    notes = (note for prediction in record.predictions for note in prediction.notes)
    return Chained(
        view,
        chain_words(record.sweep.cell) if record.sweep else "",
        f"#{profile_anchor(view)}",
        tuple(chain_figures(view.anchor, record, alone)),
        tuple(Predicted(prediction, MODELS[prediction.model]) for prediction in record.predictions),
        [note for note in dict.fromkeys(notes) if note not in view.warnings],
    )


def _alone(view: View, every: Sequence[View]) -> PartMeasurements:
    """Sweeps of single VNFs and of the path, with the frame, the size and the state of SMT that the chain has."""
    chain = view.record.sweep
    found: dict[str, Sweep] = {}
    path: Sweep | None = None
    for other in every:
        sweep = other.record.sweep if isinstance(other.record, SweepRecord) else None
        if chain is None or sweep is None or len(sweep.vnfs) > 1 or not sweep.points:
            continue
        own, its = view.record, other.record
        alike = (its.testbed, its.simulated, its.smt_off, sweep.spec.frame, sweep.cell.nf_sizes) == (
            own.testbed,
            own.simulated,
            own.smt_off,
            chain.spec.frame,
            chain.cell.nf_sizes,
        )
        if alike and sweep.vnfs:
            found.setdefault(kind_words(sweep.vnfs[0]), sweep)
        elif alike:
            path = path or sweep
    return PartMeasurements(found, path)


PAGE = Page("chains", "Chains", _build)
"""Shown where there is a chain."""
