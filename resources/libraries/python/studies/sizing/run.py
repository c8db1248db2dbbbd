"""A sizing from its two specifications to the record."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.errors import (
    ConfigError,
    ConnectionFailed,
    CsitError,
    InUse,
    RunStopped,
    SystemBroken,
    Unsupported,
)
from resources.libraries.python.model.service.load import Specifications, load_sizing
from resources.libraries.python.model.service.spec import MeasuredSize, Size, Sizing, name_of
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.quantities import counted
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.shared.progress import StepEnded, human_time
from resources.libraries.python.studies.shared.step_study import StepStudy
from resources.libraries.python.studies.sizing.analysis import TraceFiles, headline, sizing_rows
from resources.libraries.python.studies.sizing.model.record import SizingRecord
from resources.libraries.python.studies.sizing.planning.heat_templates import write_heat
from resources.libraries.python.studies.sizing.planning.sizes import SizingCost, cost
from resources.libraries.python.studies.sizing.search.size_search import carried_over, outcome
from resources.libraries.python.studies.sizing.size_trials import SizeTrials, search_of
from resources.libraries.python.whole_files import write_whole

_log = logging.getLogger(__name__)
OVERSUBSCRIBED = "oversubscribed"
"""The fact of a service that has more CPUs than there are."""


class ServiceSizing(StepStudy[Specifications, Size, MeasuredSize, Sizing]):
    """Deploys one size after the other, until the search has its answer."""

    RECORD = SizingRecord
    ROW = MeasuredSize
    MEASURED = "sizes were measured"
    FATAL = (ConfigError, InUse, RunStopped, Unsupported)  # which the next size would meet as well
    read = staticmethod(load_sizing)
    headline = staticmethod(headline)
    cost: SizingCost
    folder: Path
    """For traces, tables and templates of this test; that of its journal."""
    trials: SizeTrials

    @classmethod
    def title(cls, found: Sizing) -> str:
        return str(found.deployment.vnf_name)

    def set_up(self) -> None:
        self.cost = cost(self.spec.deployment, self.spec.workload)
        self.draft.drivers = {"orchestrator": str(self._topology.world)}
        self._search = search_of(self.spec.deployment, self.spec.workload, _log.info)

    def identity(self) -> str:
        return self.spec.deployment.model_dump_json() + self.spec.workload.model_dump_json()

    def plan(self) -> None:
        """Nothing: whether a size fits is known when it is deployed."""

    def preview(self) -> list[str]:
        simulated = " of simulated time" if self._topology.world is World.SIM else ""
        return [cost_in_words(self.cost) + simulated]

    def resume(self, journal: StepJournal[Any]) -> None:
        super().resume(journal)
        self.folder = journal.path.parent

    def prepare(self) -> None:
        """Find what deploys sizes.

        Raises:
            Unsupported: This world cannot deploy it.
        """
        host = self._world.host(self.spec, self.spec.folders[0])
        self.draft.simulation = host.simulation
        self.trials = SizeTrials(
            self.spec.deployment,
            self.spec.workload,
            host.orchestrator,
            time=host.time,
            trace=TraceFiles(self.folder).add,
            on_load=self._loaded,
        )

    def _loaded(self, loads: int, sentence: str) -> None:
        _log.info("%s", sentence)
        done, each = len(self.rows), 1 / self.cost.loads
        self._progress(done + 1, sentence, left=self.cost.sizes - done - loads * each, work=each * min(1, loads))

    def ended(self, step: StepEnded) -> None:
        """Report a size, whose work is that of its loads."""
        before = "" if step.work else " was measured before"
        _log.info("%s%s: %s", step.name, before, step.found)
        self._progress(
            step.number, f"{step.name}: {step.found}", left=self.cost.sizes - step.number, failed=step.failed
        )

    def _progress(self, number: int, found: str, *, left: float, work: float = 0.0, failed: bool = False) -> None:
        left, sizes = max(0.0, left), max(number, self.cost.sizes)
        self._on_step(StepEnded(number, sizes, "size", found, left=left, work=work, failed=failed))

    def steps(self) -> Iterator[Sequence[Size]]:
        for size in self._search.wanted():
            yield (size,)
            self._search.add(self.rows[-1])

    def key(self, size: Size) -> str:
        return name_of(self.spec.deployment, size)

    def label(self, size: Size) -> str:
        return size.text

    def in_words(self, sized: MeasuredSize) -> str:
        return outcome(sized, self.spec.workload.unit)

    def measure(self, size: Size) -> MeasuredSize:
        found = self.trials.measure(size)
        if short := self.trials.facts().get(OVERSUBSCRIBED):
            self.note(f"{OVERSUBSCRIBED}: {short}")
        return found

    def breaks(self, error: Exception) -> bool:
        """A node was lost, or a part of the service has died; what else fails has failed for this size."""
        return isinstance(error, ConnectionFailed | SystemBroken)

    def facts(self) -> dict[str, dict[str, str]]:
        return {"service": self.trials.facts()}

    def failed_row(self, size: Size, reason: str) -> MeasuredSize:
        return self.trials.failed(size, reason)

    def carried_over(self, sized: MeasuredSize) -> MeasuredSize:
        return carried_over(self.spec.deployment, self.spec.workload, sized)

    def remove(self) -> str | None:
        if hasattr(self, "trials"):
            self.trials.remove()
        return None

    def analyse(self, sizes: Sequence[MeasuredSize]) -> Sizing | None:
        self.draft.warnings = list(self.notes)
        found = self._search.result()
        return found.model_copy(update={"sizes": (*found.sizes, *sizes[len(found.sizes) :])}) if sizes else None

    def run(self) -> Sizing:
        found = super().run()
        write_whole(self.folder / "sizing.csv", csv_text(sizing_rows(found)))
        # Templates for OpenStack, where its flavors can have that many CPUs.
        if all(flavor.vcpus % 1 == 0 for flavor in self.spec.deployment.flavors.values()):
            write_heat(self.spec, {row.name: row.size for row in found.sizes}, self.folder / "heat")
        _log.info("traces, tables and journal: %s", self.folder)
        return found

    def enough(self) -> None:
        """Check that the search has its answer.

        Raises:
            CsitError: It has not.
        """
        found = self.result()
        if found.stopped == "failed":
            reasons = [f"{row.text}: {row.failed}" for row in found.sizes if row.failed]
            raise CsitError("; ".join(dict.fromkeys(reasons)))


def cost_in_words(price: SizingCost) -> str:
    """Sizes, loads and time of a sizing."""
    most, loads = ("at most " if price.sizes_at_most else ""), ("at most " if price.loads_at_most else "")
    repeated = f", each {price.repetitions} times" if price.repetitions > 1 else ""
    time_text = f"{'at most' if price.at_most else 'about'} {human_time(price.seconds)}"
    sizes = f"{most}{counted(price.sizes, 'size')}"
    return f"{sizes}, {loads}{price.loads} loads on each{repeated}: {time_text}"
