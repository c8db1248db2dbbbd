"""Services to size, and sizings of them without a testbed, for tests of planning and searching."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.service.spec import DeploymentSpec, Scaling, Sizing, SizingMode
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.size_trials import KeepTrace, SizeTrials, search_of
from resources.libraries.python.testbed.roles.service import IntervalClock, Orchestrator

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
    row = {"mode": "directed", "resources": {"vcpus": 6}, **row}
    return DeploymentSpec.model_validate({
        "vnf_name": "clearwater", "components": components, "flavors": flavors_there, "install": "install.sh", **row
    })  # fmt: skip


@st.composite
def services(draw: st.DrawFn, mode: SizingMode = SizingMode.EXHAUSTIVE) -> DeploymentSpec:
    """Any small service: up to three components, three flavors, three instances, with or without limits."""
    scaling = draw(st.sampled_from(Scaling))
    names = [f"c{number}" for number in range(draw(st.integers(1, 3)))]
    count = 1 if scaling is Scaling.OUT else draw(st.integers(1, 3))
    flavors = list(FLAVORS)[:count]
    most = draw(st.integers(2, 3)) if scaling is Scaling.OUT else draw(st.integers(1, 3))
    smallest = len(names)
    largest = FLAVORS[flavors[-1]]
    resources: dict[str, float] = {}
    if draw(st.booleans()):
        resources["vcpus"] = draw(st.integers(max(smallest, largest["vcpus"]), 24))
    if draw(st.booleans()):
        resources["memory_mb"] = 1024 * draw(st.integers(max(2 * smallest, largest["memory_mb"] // 1024), 50))
    return service(
        names,
        [f"{chr(97 + index)}x" for index in range(len(names))],
        flavors=flavors,
        most=most,
        resources=resources,
        mode=mode,
        scaling=scaling,
    )


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
