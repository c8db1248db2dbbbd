"""Sizings of tests."""

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.service.spec import DeploymentSpec, Sizing
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.size_trials import KeepTrace, SizeTrials, search_of
from resources.libraries.python.testbed.roles.service import IntervalClock, Orchestrator


def run_sizing(
    spec: DeploymentSpec,
    workload: WorkloadSpec,
    orchestrator: Orchestrator,
    *,
    time: IntervalClock | None = None,
    trace: KeepTrace | None = None,
) -> Sizing:
    """Find the best size without a testbed, a journal and second attempts."""
    trials, search = SizeTrials(spec, workload, orchestrator, time=time, trace=trace), search_of(spec, workload)
    for size in search.wanted():
        try:
            sized = trials.measure(size)
        except CsitError as error:
            sized = trials.failed(size, str(error))
        finally:
            trials.remove()
        search.add(sized)
    return search.result()
