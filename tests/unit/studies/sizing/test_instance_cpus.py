"""Where instances of a service run on a machine, and what a machine is too small for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.service.spec import DeploymentSpec, Share, Size
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.planning.placement.instance_cpus import place


def machine(cores: int, threads: int = 1) -> CpuLayout:
    """Siblings are numbered behind all cores, as on most machines."""
    return layout([(core + cores * thread, core, 0, 0) for thread in range(threads) for core in range(cores)])


def service(vcpus: float, *, pinned: bool, memory_mb: int = 64, hosts: int = 1) -> DeploymentSpec:
    return DeploymentSpec.model_validate(
        {
            "vnf_name": "sip",
            "components": [
                {"name": name, "short": name[:2], "flavors": ["small"], "most_instances": 9}
                for name in ("edge", "registrar")
            ],
            "flavors": {"small": {"vcpus": vcpus, "memory_mb": memory_mb}},
            "servers": {"core_pinning": pinned, "count": hosts},
            "install": "install.sh",
            "mode": "directed",
            "scaling": "out",
        }
    )  # fmt: skip


def size(edges: int = 1, registrars: int = 1) -> Size:
    return Size(
        components={
            "edge": Share(flavor="small", instances=edges),
            "registrar": Share(flavor="small", instances=registrars),
        }
    )


@given(edges=st.integers(1, 4), registrars=st.integers(1, 4), vcpus=st.sampled_from([0.2, 1, 2]))
def test_pinned_instances_share_no_cpu_where_there_are_enough(edges: int, registrars: int, vcpus: float) -> None:
    found = place(service(vcpus, pinned=True), size(edges, registrars), machine(8, 2), None, oversubscribe=False)
    taken = [cpu for cpus in found.cpus.values() for cpu in cpus]
    assert len(found.cpus) == edges + registrars
    assert len(taken) == len(set(taken))
    assert found.left == frozenset(range(16)).difference(taken)


def test_instances_are_on_different_cores_before_any_two_share_one() -> None:
    found = place(service(1, pinned=True), size(2, 2), machine(4, 2), None, oversubscribe=False)
    assert {cpu for cpus in found.cpus.values() for cpu in cpus} == {0, 1, 2, 3}


def test_pinning_takes_whole_cpus_also_for_parts_of_one() -> None:
    with pytest.raises(PlanError, match=r"^3 instances need 3 CPUs of their own, 2 available$"):
        place(service(0.1, pinned=True), size(2), machine(2), None, oversubscribe=False)


def test_without_pinning_parts_of_cpus_add_up() -> None:
    assert place(service(0.1, pinned=False), size(9, 9), machine(2), None, oversubscribe=False).cpus == {}
    with pytest.raises(PlanError, match=r"^3 instances need 2\.1 CPUs, 2 available$"):
        place(service(0.7, pinned=False), size(2), machine(2), None, oversubscribe=False)


def test_an_oversubscribed_machine_has_them_all_and_says_so() -> None:
    found = place(service(1, pinned=True), size(2), machine(2), None, oversubscribe=True)
    assert [sorted(cpus) for cpus in found.cpus.values()] == [[0], [1], [0]]
    assert found.short == "3 instances need 3 CPUs of their own, 2 available"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (service(3, pinned=False), "edge-1 needs 3 CPUs, 2 available"),
        (service(1, pinned=False, memory_mb=600), "2 instances need 1200 MB of memory, 1000 MB available"),
        (service(1, pinned=False, hosts=2), "servers.count: 2 hosts for the instances, this machine is one"),
        (service(1, pinned=False, hosts=3), "servers.count: 3 hosts for the instances, this machine is one"),
    ],
)
def test_what_does_not_fit_at_all_is_refused_whatever_is_allowed(spec: DeploymentSpec, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        place(spec, size(), machine(2), 1000, oversubscribe=True)
    assert str(caught.value) == says
