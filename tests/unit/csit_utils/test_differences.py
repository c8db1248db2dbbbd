"""What differs between two environments, plans and profiles."""

from pathlib import Path

from csit_utils.analysis.differences import (
    Difference,
    environment_differences,
    plan_differences,
    profile_differences,
)
from resources.libraries.python.model.cell import Cell, ServiceType
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.nf_size import NfSize
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import LADDER, profile
from tests.unit.csit_utils.builders import ENVIRONMENT

ROOT = Path(__file__).parents[3]


def test_equal_ones_differ_in_nothing() -> None:
    assert environment_differences(ENVIRONMENT, ENVIRONMENT) == ()
    assert profile_differences(LADDER, LADDER) == ()


def test_what_matters_most_comes_first_and_names_of_machines_last() -> None:
    governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    spectre = "/sys/devices/system/cpu/vulnerabilities/spectre_v2"
    a = ENVIRONMENT.model_copy(update={"settings": {governor: "performance", spectre: "Mitigation: IBRS"}})
    b = a.model_copy(
        update={
            "hostname": "other",
            "kernel": "6.19.0",
            "settings": {governor: "powersave", spectre: "Vulnerable"},
            "versions": {**a.versions, "VPP": "26.10"},
            "git_dirty": False,
        }
    )
    found = environment_differences(a, b)
    assert [each.path for each in found] == [
        "kernel",
        f"settings.{spectre}",
        f"settings.{governor}",
        "versions.VPP",
        "git_dirty",
        "hostname",
    ]
    assert found[3] == Difference("versions.VPP", None, "26.10")


def test_of_command_lines_only_the_words_that_differ_are_told() -> None:
    b = ENVIRONMENT.model_copy(update={"command_line": f"{ENVIRONMENT.command_line} mitigations=off"})
    assert environment_differences(ENVIRONMENT, b) == (Difference("command_line", None, "mitigations=off"),)


def test_nodes_of_a_lab_are_looked_into() -> None:
    a = ENVIRONMENT.model_copy(update={"nodes": {"TG": ENVIRONMENT}})
    b = ENVIRONMENT.model_copy(update={"nodes": {"TG": ENVIRONMENT.model_copy(update={"microcode": "0x1"})}})
    assert environment_differences(a, b) == (Difference("nodes.TG.microcode", ENVIRONMENT.microcode, "0x1"),)


def test_plans_differ_by_thread_and_nf_and_not_by_address() -> None:
    topology = load_topology(ROOT / "topologies" / "sim.yaml")
    one, half = (
        make_plan(
            topology,
            Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, nf_sizes=(size,)),
            topology.dut.layout,
        )
        for size in (NfSize.ONE, NfSize.HALF)
    )
    paths = {each.path for each in plan_differences(one, half)}
    assert paths
    assert all(path.split(".")[0] in ("cores", "functions", "links", "segments") for path in paths)
    moved = one.cores.threads[0].model_copy(update={"cpu": 55})
    cores = one.cores.model_copy(update={"threads": (moved, *one.cores.threads[1:])})
    (found,) = plan_differences(one, one.model_copy(update={"cores": cores}))
    assert found.path.startswith(f"cores.{moved.owner}.")
    assert found.b == "CPU 55"


def test_profiles_differ_goal_by_goal() -> None:
    paths = [each.path for each in profile_differences(LADDER, profile("ladder,width=0.01"))]
    assert paths == ["goals.NDR.relative_width", "goals.PDR.relative_width", "name"]


def test_the_controller_comes_before_the_nodes_of_a_lab() -> None:
    newer = ENVIRONMENT.model_copy(update={"versions": {**ENVIRONMENT.versions, "VPP": "26.10"}})
    a = ENVIRONMENT.model_copy(update={"nodes": {"TG": ENVIRONMENT}})
    found = environment_differences(a, newer.model_copy(update={"nodes": {"TG": newer}}))
    assert [each.path for each in found] == ["versions.VPP", "nodes.TG.versions.VPP"]


def test_plans_on_other_numa_nodes_differ() -> None:
    topology = load_topology(ROOT / "topologies" / "sim.yaml")
    one = make_plan(topology, Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), topology.dut.layout)
    for field, a, b in (("numa_node", 0, 1), ("smt", True, False), ("oversubscribed", False, True)):
        plans = (one.model_copy(update={"cores": one.cores.model_copy(update={field: value})}) for value in (a, b))
        assert plan_differences(*plans) == (Difference(f"cores.{field}", str(a), str(b)),)
