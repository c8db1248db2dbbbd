"""Services to size, and their sizings without a testbed."""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.sizing import SimOrchestrator, SimulatedService, VirtualTime
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.service.spec import DeploymentSpec, Offered, Scaling, Sizing, SizingMode
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.sizing.run import KeepTrace, SizeTrials, search_of
from resources.libraries.python.testbed.roles.service import IntervalClock, Orchestrator

SPECS = PROJECT / "tests" / "characterization" / "specs"
FLAVORS = {
    "small": {"vcpus": 1, "memory_mb": 2048},
    "medium": {"vcpus": 2, "memory_mb": 4096},
    "large": {"vcpus": 4, "memory_mb": 8192},
}


def service(
    names: Sequence[str] = ("bono", "sprout", "homestead"),
    shorts: Sequence[str] = ("bn", "sp", "hs"),
    *,
    flavors: Sequence[str] = tuple(FLAVORS),
    most: int = 1,
    flavors_there: dict[str, Any] = FLAVORS,
    **row: Any,
) -> DeploymentSpec:
    """A service, by default the Clearwater of the paper."""
    components = [
        {"name": name, "short": short, "flavors": list(flavors), "most_instances": most}
        for name, short in zip(names, shorts, strict=True)
    ]
    common = {"vnf_name": "clearwater", "install": "install.sh", "mode": "directed", "resources": {"vcpus": 6}}
    return DeploymentSpec.model_validate({**common, "components": components, "flavors": flavors_there, **row})


def workload(lowest: float, highest: float, increase: float, **row: Any) -> WorkloadSpec:
    return WorkloadSpec.model_validate(
        {"range": {"min": lowest, "max": highest}, "increase": increase, "generator": "g.sh", **row}
    )


def offered(load: float, *indicators: float, **row: Any) -> Offered:
    """A load, and what was carried of it in each repetition."""
    deviation = stdev(indicators) if len(indicators) > 1 else None
    return Offered(load=load, indicators=indicators, mean=fmean(indicators), stdev=deviation, **row)


@st.composite
def services(draw: st.DrawFn, mode: SizingMode = SizingMode.EXHAUSTIVE) -> DeploymentSpec:
    """Any small service: up to three components, three flavors, three instances, with or without limits."""
    scaling = draw(st.sampled_from(Scaling))
    names = [f"c{number}" for number in range(draw(st.integers(1, 3)))]
    count = 1 if scaling is Scaling.OUT else draw(st.integers(1, 3))
    flavors = list(FLAVORS)[:count]
    most = draw(st.integers(2, 3)) if scaling is Scaling.OUT else draw(st.integers(1, 3))
    largest = FLAVORS[flavors[-1]]
    resources: dict[str, float] = {}
    if draw(st.booleans()):
        resources["vcpus"] = draw(st.integers(max(len(names), largest["vcpus"]), 24))
    if draw(st.booleans()):
        resources["memory_mb"] = 1024 * draw(st.integers(max(2 * len(names), largest["memory_mb"] // 1024), 50))
    shorts = ["ax", "bx", "cx"][: len(names)]
    return service(names, shorts, flavors=flavors, most=most, resources=resources, mode=mode, scaling=scaling)


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


def run_simulated(spec: DeploymentSpec, workload: WorkloadSpec, truth: SimulatedService | Mapping[str, Any]) -> Sizing:
    time = VirtualTime()
    simulated = SimulatedService.model_validate(truth)
    return run_sizing(spec, workload, SimOrchestrator(simulated, spec, workload, time), time=time)
