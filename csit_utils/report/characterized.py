"""Characterizations for readers: which ones are shown, what they are called, and each in one sentence."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csit_utils.dataset.items import Characterized
from csit_utils.report import study_sentences
from csit_utils.report.capsule import rerun_command
from csit_utils.report.units import DASH, bandwidth, digits3, percent, rate
from resources.libraries.python.model.cell import Cell
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.studies.sizing.model.spec import Sized, Sizing
from resources.libraries.python.studies.sweep.analysis.points import GIGA
from resources.libraries.python.studies.sweep.model.profile import Metric, Prediction
from resources.libraries.python.studies.sweep.model.record import Sweep, Vnf

_ENDS = {"failed": "a size could not be measured"}
MODELS = {"hungriest": "by the hungriest VNF", "shared_cpus": "with shared CPUs"}
"""Names of models of predictions."""
KINDS = {
    "sweep": "Sweep",
    "chain": "Chain",
    "bursts": "Bursts",
    "sizing": "Sizing",
    "chain_study": "Chain study",
    "interference": "Interference",
}


@dataclass(frozen=True)
class View:
    """One characterization on its page."""

    item: Characterized
    title: str
    """The service, and what sets it apart from others on the page."""
    headline: str
    older: int
    """Runs of the same before this one, which are not shown."""

    @property
    def anchor(self) -> str:
        """Id of its section."""
        return self.item.anchor

    @property
    def record(self) -> Characterization:
        """All of it."""
        return self.item.record

    @property
    def passed(self) -> bool:
        """Whether the test passed."""
        return self.item.status == "PASS"

    @property
    def simulated(self) -> bool:
        """Whether it came from a model."""
        return self.record.simulated

    @property
    def oversubscribed(self) -> bool:
        """Whether data threads shared cores because there were too few."""
        plan = self.record.plan
        return plan is not None and plan.cores.oversubscribed

    @property
    def command(self) -> str | None:
        """What runs the test again; None where nobody knows."""
        rerun = self.record.rerun
        # A chain is predicted from tests of the same suite that come before it.
        name = None if self.record.kind == "chain" else self.record.test_name
        return None if rerun is None else shlex.join(rerun_command(rerun, name))

    @property
    def facts(self) -> tuple[str, ...]:
        """Where, when and by what it was measured."""
        record = self.record
        drivers = ", ".join(f"{role} {name}" for role, name in sorted(record.drivers.items()))
        started = record.started_at[:16].replace("T", " ")
        parts = (f"testbed {record.testbed}", drivers, f"{started} UTC")
        return tuple(part for part in parts if part)


def views(items: Iterable[Characterized]) -> list[View]:
    """The newest of each, measured ones first; in the order of kinds."""
    by_key: dict[tuple[object, ...], list[Characterized]] = {}
    for item in sorted(items, key=lambda item: item.record.started_at):
        by_key.setdefault(_key(item.record), []).append(item)
    newest = [(own[-1], len(own) - 1) for own in by_key.values()]
    newest.sort(key=lambda pair: (pair[0].record.simulated, list(KINDS).index(pair[0].record.kind)))
    return [View(item, title(item.record), headline(item), older) for item, older in newest]


def _key(record: Characterization) -> tuple[object, ...]:
    """What is measured where: a later record with the same is a repetition.

    Loads are no part of it: tests choose them anew each time by what the service carries.
    """
    asked: object = None
    if record.sweep is not None:
        spec = record.sweep.spec
        asked = (record.sweep.cell.model_dump_json(), spec.frame, spec.protocol, spec.flows)
    elif record.chain_study is not None:
        asked = record.chain_study.spec.model_dump_json()
    elif record.interference is not None:
        asked = record.interference.spec.model_dump_json()
    elif record.sizing is not None:
        asked = (record.sizing.deployment.model_dump_json(), record.sizing.workload.model_dump_json())
    return record.testbed, record.simulated, record.kind, record.test_id, asked


def title(record: Characterization) -> str:
    """The service with its size and frame: `firewall, 64B, 1c`."""
    if record.sweep is not None:
        return f"{record.sweep.name}, {sweep_words(record.sweep)}"
    if record.sizing is not None:
        return record.sizing.deployment.vnf_name
    if record.chain_study is not None:
        return record.chain_study.spec.name
    if record.interference is not None:
        spec = record.interference.spec
        load = "" if spec.load_pps is None or spec.loads_pps else f", {rate(spec.load_pps)} each"
        return f"{spec.name}, {', '.join(frame.name for frame in spec.frames or (spec.frame,))}{load}"
    return record.test_name


def sweep_words(sweep: Sweep) -> str:
    """Frame and size: `64B, 1c`."""
    return f"{sweep.spec.frame.name}, {'+'.join(dict.fromkeys(map(str, sweep.cell.nf_sizes)))}"


def kind_words(vnf: Vnf) -> str:
    """`firewall`, for a Linux firewall."""
    return vnf.kind.value.removeprefix("linux_").replace("_", " ")


def vnf_words(vnf: Vnf) -> str:
    """`nf-1-1 (firewall)`."""
    return f"{vnf.name} ({kind_words(vnf)})"


def chain_words(cell: Cell) -> str:
    """The way of packets: `router → firewall`, `router → firewall | firewall → router`."""
    if not cell.nf_nodes:
        return "a cable in the place of NFs"
    nodes = []
    for node in range(1, cell.nf_nodes + 1):
        kind = cell.kind_of(node)
        name = kind.value.removeprefix("linux_").replace("_", " ") if kind else "NF"
        nodes.append(" | ".join([name] * (1 if node in cell.shared_nodes else cell.nf_chains)))
    return " → ".join(nodes)


def headline(item: Characterized) -> str:
    """What was found, in one sentence; why nothing was, where nothing was."""
    record = item.record
    if record.sizing is not None:
        return _sizing_headline(record.sizing)
    if record.chain_study is not None:
        return study_sentences.chain_headline(record.chain_study)
    if record.interference is not None:
        return study_sentences.interference_headline(record.interference)
    if record.sweep is None or not record.sweep.samples:
        return f"nothing was measured: {item.message or 'the test ended before its first load'}"
    if record.kind == "bursts":
        return _bursts_headline(record.sweep)
    return "; ".join([_saturation(record, record.sweep), *_prediction_errors(record)])


def _saturation(record: Characterization, sweep: Sweep) -> str:
    found = record.profile.break_point if record.profile else None
    if found is None:
        most = max((point.input_pps for point in sweep.points), default=None)
        return f"does not saturate up to {rate(most)}" if most else "has no profile"
    at = [point.input_pps for point in sweep.points if abs(point.input_bps - found.rate * GIGA) < 1e-6 * GIGA]
    rates = f"{rate(at[0])} ({bandwidth(found.rate * GIGA)})" if at else bandwidth(found.rate * GIGA)
    return f"saturates at {rates}: {found.reason}"


def _prediction_errors(record: Characterization) -> list[str]:
    return [
        f"predicted {MODELS[prediction.model]} it is off by {errors_words(prediction.errors)}{_summed(prediction)}"
        for prediction in record.predictions
        if prediction.errors
    ]


def _summed(prediction: Prediction) -> str:
    off = prediction.summed_delay_error
    return "" if off is None else f" ({percent(off)} by the sum of delays alone)"


def errors_words(errors: dict[Metric, float]) -> str:
    """`throughput 0.7 %, delay 24 %, loss 0.45 percentage points`."""
    return ", ".join(f"{metric} {error_text(metric, error)}" for metric, error in errors.items())


def error_text(metric: Metric, error: float | None) -> str:
    """An error of a prediction, as `Prediction.errors` has it."""
    if error is None:
        return DASH
    return f"{digits3(error)} percentage points" if metric is Metric.LOSS else percent(error)


def _bursts_headline(sweep: Sweep) -> str:
    bursts = sweep.spec.bursts
    on = [sample for sample in sweep.samples if sample.rate_pps > 0]
    sent, arrived = sum(sample.input_pps for sample in on), sum(sample.output_pps for sample in on)
    delays = [sample.delay_s for sample in on if sample.delay_s is not None]
    worst = f", delay up to {digits3(1e3 * max(delays))} ms" if delays else ""
    cycle = f"{rate(bursts.rate_pps)} for {bursts.on_s} s, then {bursts.off_s} s nothing: " if bursts else ""
    lost = max(0.0, 1 - arrived / sent) if sent else None
    return f"{cycle}{percent(lost)} of the packets of the bursts are lost{worst}"


def _sizing_headline(sizing: Sizing) -> str:
    end = _ENDS.get(sizing.stopped, sizing.stopped)
    best = sizing.named().get(sizing.best or "")
    if best is None or best.capacity is None:
        return f"no size carries the lowest load; {end}"
    among = f", the most of {len(sizing.sizes)} sizes measured" if len(sizing.sizes) > 1 else ""
    carries = f"{best.name} carries {capacity_words(best, sizing.workload.unit)} with {best.vcpus:g} vCPUs"
    return f"{carries}{among}; {end}"


def capacity_words(size: Sized, unit: str) -> str:
    """`600 calls/s`, `at least 1000 replies/s`."""
    if size.capacity is None:
        return f"less than {size.offered[0].load:g} {unit}" if size.offered else DASH
    return f"{'at least ' if size.at_top else ''}{size.capacity:g} {unit}"


def warnings(record: Characterization) -> Sequence[str]:
    """What a reader must know of a sweep, each once."""
    flagged = sum(point.flagged is not None for point in record.sweep.points) if record.sweep else 0
    told = f"{flagged} of {len(record.sweep.points)} points are not what was asked for" if record.sweep else ""
    notes = record.profile.notes if record.profile else ()
    return list(dict.fromkeys((*record.warnings, *([told] if flagged else []), *notes)))
