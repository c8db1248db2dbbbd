"""Answers about numbers of instances, and two bands, on simulated systems whose truth is measured directly.

**Answers.** A cell of a random system (sharp, noisy, knee, stall or sag; fair or not; one to eight instances) is
searched, and its latency measured, as a density test does. Then it is asked whether it sustains a random rate with a
random p99: rates between 2 and 115 % of its PDR, bounds between what it has at 2 and at 95 %. The truth is measured at
the very load that is asked for, by trials of another deployment with other noise. Where these disagree among
themselves, or p99 is as near to the bound as deployments differ, the question is on the edge and is left out. Open
answers are then decided by trials at the rate (`AT_RATE`), and judged again.

**Two bands.** Systems run in the lower of two bands in 30 % of trials, which forwards 0.93 of the other; how many
searches miss that is compared with the chance that these searches state. The same for histories of single figures.
"""

from collections.abc import Sequence
from math import sqrt
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

from csit_utils.analysis.trends.steps import find_two_bands, unseen_two_bands
from csit_utils.dataset.items import Recorded, Status
from csit_utils.dataset.rows import PDR, InstanceRow, LatencyRow
from csit_utils.studies.density.analysis.answers import AnswerVerdict, Question, answers, evidence
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Cell, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest, VerdictKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM, cell_of
from tests.loaded import Dataset, rows_of_tests, table_rows
from tests.truth.known_truth import BoundedQuantity, each_of, print_table, share

_SEARCH = "quick,width=0.01"
_TRUTH_TRIALS = 11
_EDGE = 0.1
"""Of the trials of the truth: with a larger minority it is on the edge."""
_DEPLOYMENTS = 0.02
"""Flows of two simulated deployments differ by so much in latency; so a p99 as near to the bound is on the edge."""
_BOUND_TRIALS = 3
"""Whose mean p99 is near the bound that is asked for."""
_QUESTIONS = 8
"""Of each system."""
_PDR_LOSS = 0.005
LOW_BAND, LOW_SHARE = 0.93, 0.3
_RUNS = (6, 8, 10, 13, 20, 30)
"""Figures of a history."""
_NOISE = 0.004
"""Of a figure, relative."""
_STANDARD_ERRORS = 4.0
"""By which missed histories may differ from what is stated."""


class AnsweredQuestion(NamedTuple):
    is_true: bool
    before: bool | None
    """Answer from search and latency; None: open."""
    after: bool | None
    """The same with trials at the rate."""


class _System:
    """A simulated cell that can be measured in several ways."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        simulation: dict[str, Any] = {
            "seed": seed,
            "model": rng.choice(["sharp", "noisy", "noisy", "knee", "stall", "sag"]),
            "noise": rng.choice([0.005, 0.02]),
            "unfairness": rng.choice([0.0, 0.0, 0.5]),
            "capacity_scale": rng.uniform(0.3, 2.0),
        }
        self._topology = SIM.model_copy(update={"simulation": simulation})
        self.services = rng.choice([1, 2, 4, 6, 8])
        self._cell = cell_of("CSC", self.services, rng.choice([1, 2]))
        self.rng = rng

    def test(self, test_type: TestType, repetition: int) -> DensityTest:
        return _deployed(self._topology, self._cell, test_type, _SEARCH, repetition)

    def searched(self) -> DensityRecord:
        made = self.test(TestType.NDRPDR, 0)
        made.search(("NDR", "PDR"))
        made.latency()
        return _record(made, "searched")

    def at_rate(self, rate_pps: float) -> DensityRecord:
        made = self.test(TestType.LATENCY, 2)
        made.at_rate(rate_pps)
        return _record(made, "at rate")

    def truth(self, load_pps: float, trials: int = _TRUTH_TRIALS) -> tuple[float, float, list[float]]:
        """Return the share of trials at a load in which all lost no more than PDR allows, of a flow, and each p99."""
        made = self.test(TestType.MRR, 1)
        trial = Trial(load_pps=load_pps, duration_s=1.0, frame=made.draft.asked.frame, probe_pps=1000.0)
        results = [made.measure(trial) for _ in range(trials)]
        made.remove()
        whole = fmean((each.loss_ratio or 0.0) <= _PDR_LOSS for each in results)
        flows = fmean(max(_losses(each)) <= _PDR_LOSS for each in results)
        return whole, flows, [max(flow.p99_ns or 1e12 for flow in each.latency) for each in results]


def _deployed(topology: Topology, cell: Cell, test_type: TestType, search: str, repetition: int = 0) -> DensityTest:
    words = {"test_type": test_type, "frame": frame("64B"), "profile": profile(search), "repetition": repetition}
    world = SimulatedTestbed(topology)
    made = DensityTest(topology, world, MeasurementRequest(cell=cell, **words), world.environment())
    made.deploy()
    made.verify_traffic()
    return made


def _losses(result: TrialResult) -> list[float]:
    return [1 - flow.received / flow.sent for flow in result.flows if flow.sent]


def _record(made: DensityTest, name: str) -> DensityRecord:
    made.remove()
    return made.draft.finish(test_id=f"Density.{name}", test_name=name, tags=(), passed=True, message="")


def _answer(question: Question, records: Sequence[DensityRecord]) -> bool | None:
    dataset = Dataset(unrecorded=[])
    for number, record in enumerate(records):
        dataset.add(Recorded(record, f"{number}.xml", Status.PASS, ""))
    seen = evidence(rows_of_tests(dataset), [*table_rows(dataset, InstanceRow), *table_rows(dataset, LatencyRow)])
    (found,) = answers(question, seen)
    if found.best is not None:
        return True
    return None if found.next.verdict in {AnswerVerdict.RATE_UNKNOWN, AnswerVerdict.LATENCY_UNKNOWN} else False


def questions(seed: int) -> list[AnsweredQuestion]:
    """Ask some questions about one system, those on the edge left out."""
    system, found = _System(seed), list[AnsweredQuestion]()
    searched = system.searched()
    pdr = searched.pdr.lower_pps if searched.pdr else None
    for _ in range(_QUESTIONS if pdr else 0):
        load_pps = pdr * system.rng.uniform(0.02, 1.15)
        bound_ns = fmean(system.truth(pdr * system.rng.uniform(0.02, 0.95), _BOUND_TRIALS)[2])
        bound_ns *= system.rng.uniform(0.9, 1.1)
        is_true = _truth(system, load_pps, bound_ns)
        if is_true is None:
            continue
        question = Question(load_pps / system.services, bound_ns, PDR)
        before = after = _answer(question, [searched])
        if before is None:
            after = _answer(question, [searched, system.at_rate(question.rate_pps)])
        found.append(AnsweredQuestion(is_true, before, after))
    return found


def _truth(system: _System, load_pps: float, bound_ns: float) -> bool | None:
    """Whether a load is sustained within a p99; None on the edge."""
    whole, flows, p99s = system.truth(load_pps)
    surely, perhaps = (fmean(p99 < bound_ns * (1 + by) for p99 in p99s) for by in (-_DEPLOYMENTS, _DEPLOYMENTS))
    shares = (whole, flows, surely)
    if perhaps > surely or any(_EDGE < share < 1 - _EDGE for share in shares):
        return None
    return all(share >= 1 - _EDGE for share in shares)


def is_missed(seed: int) -> bool:
    """Whether a search of a system in two bands does not see them."""
    simulation = {"seed": seed, "model": "two_band", "low_band": LOW_BAND, "low_band_share": LOW_SHARE}
    topology = SIM.model_copy(update={"simulation": simulation})
    made = _deployed(topology, cell_of("CSC", 2, 1), TestType.NDRPDR, "ladder")
    made.search(("NDR", "PDR"))
    made.remove()
    return made.draft.verdict is None or VerdictKind.UNSTABLE not in made.draft.verdict.kinds


def _histories(count: int, runs: int) -> BoundedQuantity:
    """Draw histories of a figure in two bands; how far the stated chance is from the share of those that are missed."""
    rng = Random(runs)
    missed = 0
    for _ in range(count):
        values = [rng.gauss(1.0, _NOISE) * (LOW_BAND if rng.random() < LOW_SHARE else 1.0) for _ in range(runs)]
        missed += find_two_bands(values) is None
    stated = unseen_two_bands([1.0] * runs).chance
    off = abs(missed / count - stated) / sqrt(max(stated * (1 - stated), 1 / count) / count)
    note = f"missed {missed / count:.1%}, stated {stated:.1%}, of {count} histories"
    return BoundedQuantity(
        f"two bands in {runs} runs: stated chance off", off, _STANDARD_ERRORS, "standard errors", note
    )


def table(studies: int) -> list[BoundedQuantity]:
    """Return wrong and open answers about so many systems, and missed bands in searches and histories."""
    found = [each for some in each_of(questions, range(studies)) for each in some]
    before = f"{sum(each.before is None for each in found)} open"
    return [
        share("wrong answers", [each.before not in {None, each.is_true} for each in found], 1, "questions", before),
        share(
            "wrong after trials at the rate", [each.after not in {None, each.is_true} for each in found], 1, "questions"
        ),
        share("open after trials at the rate", [each.after is None for each in found], 2, "questions"),
        *(_histories(40 * studies, runs) for runs in _RUNS),
        share("two bands missed by ladder", each_of(is_missed, range(studies)), 5, "searches"),
    ]


if __name__ == "__main__":
    print_table(table, 50)
