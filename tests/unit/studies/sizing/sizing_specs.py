"""Services to size, for tests of planning and searching."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from resources.libraries.python.model.service.spec import DeploymentSpec, Scaling, SizingMode

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
