"""Files of what is asked, in which each mistake is one sentence with its place; a chain becomes the cell that it is."""

from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.planning.plan import make_plan, no_such_kind
from resources.libraries.python.studies.chains.model.spec import Fault, Mode, VnfSpec, load_chains
from resources.libraries.python.studies.chains.planning.chain_cell import cell_of, owners, planted
from resources.libraries.python.studies.chains.planning.chain_generation import generate
from resources.libraries.python.studies.interference.model import InterferenceSpec
from tests.builders import cell_of as cell_of_type
from tests.builders import shipped
from tests.unit.studies.chains.chain_runs import FAULT, VNFS, chain, four_vnfs

SPECS = Path(__file__).parents[3] / "characterization" / "specs"
CHAINS = """\
name: three
resources: {sizes: [1c, 0.5c]}
vnfs:
  - {name: firewall, kind: linux_firewall, sizes: [1c]}
  - {name: nat, kind: linux_nat}
  - {name: monitor, kind: tcpdump, mode: passive, memory_mib: [64, 128]}
policies: [firewall > nat]
workloads: {protocols: [UDP, TCP], volumes_mbps: [20, 40], sessions: [1, 10], frames: [512B]}
faults: [{chain: [firewall, nat], vnf: nat, limits: {cpu: 0.2}}]
"""
INTERFERENCE = """\
name: pairs
frame: 512B
contenders:
  - {name: gateway, type: I, kind: linux_gateway}
  - {name: monitor, type: II, kind: pktstat}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_resources_hold_for_vnfs_without_their_own_and_workloads_are_all_combinations(tmp_path: Path) -> None:
    spec = load_chains(written(tmp_path, CHAINS))
    assert [vnf.sizes for vnf in spec.vnfs] == [(NfSize.ONE,), (NfSize.ONE, NfSize.HALF), (NfSize.ONE, NfSize.HALF)]
    assert (spec.vnf("monitor").memory_mib, spec.vnf("monitor").mode) == ((64, 128), Mode.PASSIVE)
    assert len(set(spec.workloads)) == 2 * 2 * 2
    assert {row.volume_bps for row in spec.workloads} == {2e7, 4e7}
    assert spec.workloads[0].frame.largest_bytes == 512


def test_the_share_that_has_to_be_measured_is_in_both_files(tmp_path: Path) -> None:
    for load, text in ((load_chains, CHAINS), (partial(load_yaml, model=InterferenceSpec), INTERFERENCE)):
        assert load(written(tmp_path, text)).least_measured == 1
        assert load(written(tmp_path, f"{text}least_measured: 0.9\n")).least_measured == 0.9
    spec = load_yaml(written(tmp_path, INTERFERENCE), InterferenceSpec)
    assert (spec.frame.largest_bytes, len(spec.contenders), spec.repetitions) == (512, 2, 10)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("kind: linux_nat", "kind: linux_nta", "5: vnfs.1.kind: unknown word 'linux_nta'; did you mean 'linux_nat'?"),
        ("[512B]", "[9B]", "8: workloads.frames.0: no frame size '9B'"),
        ("{protocols", "{generator: typo, protocols", "8: workloads.generator: no such generator; choose"),
        ("[20, 40]", "[20, -1]", "8: workloads.volumes_mbps.1: -1 is not above 0"),
        ("[20, 40]", "[]", "8: workloads.volumes_mbps: must not be empty"),
        ("sizes: [1c]}", "sizs: [1c]}", "4: vnfs.0.sizs: unknown key; did you mean 'sizes'?"),
        ("sizes: [1c]}", "faults: []}", "4: vnfs.0.faults: unknown key (and 1 more)"),
        ("kind: linux_nat", "kind: process", "5: vnfs.1: nat: an NF of kind process needs a program"),
        ("name: nat", "name: firewall", "5: vnfs.1.name: firewall is defined twice"),
        ("vnf: nat", "vnf: gnat", "9: faults.0: no VNF gnat"),
        ("[firewall, nat], vnf", "[firewall], vnf", "9: faults.0.vnf: nat is not in the chain of the fault"),
        ("{cpu: 0.2}", "{cpu: 0}", "9: faults.0.limits.cpu: 0 is not above 0"),
        ("name: monitor", "name: vswitch", "1: no VNF may be named vswitch"),
        ("[64, 128]", "[1]", "6: vnfs.2.memory_mib.0: 1 is below the minimum of 16"),
        ("frame: 512B", "frame: 12B", "2: frame: no frame size '12B'"),
        ("monitor, type", "gateway, type", "1: network functions named gateway more than once"),
        ("type: II,", "type: IX,", "5: contenders.1.type: unknown word 'IX'"),
    ],
)
def test_each_mistake_has_its_place(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    is_chains = right in CHAINS
    path = written(tmp_path, (CHAINS if is_chains else INTERFERENCE).replace(right, wrong))
    with pytest.raises(ConfigError) as caught:
        load_chains(path) if is_chains else load_yaml(path, InterferenceSpec)
    assert str(caught.value).startswith(f"{path}:{message}") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "path", [*SPECS.glob("chains/*.yaml"), *SPECS.glob("interference/*.yaml")], ids=lambda path: path.stem
)
def test_every_shipped_study_has_chains_or_contenders(path: Path) -> None:
    is_chains = path.parent.name == "chains"
    assert (generate(load_chains(path)).count if is_chains else len(load_yaml(path, InterferenceSpec).contenders)) > 1


def test_the_example_of_the_how_to_has_chains(tmp_path: Path) -> None:
    page = (SPECS.parents[2] / "docs" / "how-to" / "write-chain-policies.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    found = generate(load_chains(written(tmp_path, example)))
    assert (found.orders, found.count) == ({1: 4, 2: 9, 3: 6}, 31)


@pytest.mark.parametrize(
    ("order", "kinds", "position"),
    [
        ("gateway monitor nat", ("linux_gateway", "linux_nat"), 2),
        ("monitor nat", ("linux_nat",), 1),
        ("nat monitor", ("linux_nat",), 2),
        ("monitor", (), 1),
    ],
    ids=["between nodes", "before the first", "behind the last", "the path alone"],
)
def test_inline_ones_are_nodes_and_passive_ones_get_copies(order: str, kinds: tuple[str, ...], position: int) -> None:
    cell = cell_of(chain(*order.split()), four_vnfs())
    assert (cell.nf_nodes, cell.nf_kinds) == (len(kinds), tuple(map(NfKind, kinds)))
    assert [(tap.kind, tap.position) for tap in cell.taps] == [(NfKind("tcpdump"), position)]
    assert cell.limits == ()


FAULTY = four_vnfs(faults=(FAULT,))


def test_a_fault_is_planted_in_its_chain_only() -> None:
    cell = cell_of(chain("nat", "gateway"), FAULTY)
    assert cell.limits == (Limits(cpu=0.02), Limits())
    assert planted(chain("nat", "gateway"), FAULTY) == "nat is limited to 0.02 CPUs"
    assert cell_of(chain("gateway", "nat"), FAULTY).limits == ()
    assert planted(chain("gateway", "nat"), FAULTY) is None
    passive = Fault(chain=("monitor", "nat"), vnf="monitor", limits=Limits(cpu=0.02))
    assert cell_of(chain("monitor", "nat"), four_vnfs(faults=(passive,))).taps[0].limits == Limits(cpu=0.02)


def test_memory_of_a_range_is_a_limit_and_kept_to_beside_that_of_a_fault() -> None:
    assert cell_of(chain("gateway", "nat", memory_mib=64), four_vnfs()).limits == (Limits(memory_mib=64),) * 2
    fault = FAULT.model_copy(update={"limits": Limits(cpu=0.1, memory_mib=128)})
    limits = cell_of(chain("nat", "gateway", memory_mib=64), four_vnfs(faults=(fault,))).limits
    assert limits[0] == Limits(cpu=0.1, memory_mib=64)


def test_names_of_the_plan_lead_to_vnfs() -> None:
    watched = four_vnfs(vnfs=(*VNFS, VnfSpec(name="grep", kind=NfKind("ngrep"), mode=Mode.PASSIVE)))
    for order, names in (
        ("nat monitor gateway", "nf-1-1 tap-1-1 nf-1-2"),
        ("monitor nat grep", "tap-1-1 nf-1-1 tap-1-2"),
    ):
        assert owners(chain(*order.split()), watched) == dict(zip(names.split(), order.split(), strict=True))


def test_a_program_goes_to_its_node_and_what_forwards_packets_cannot_be_passive() -> None:
    program = UserProgram(start=("sleep", "9"))
    vnfs = (VNFS[0], VnfSpec(name="own", kind=NfKind("process"), program=program))
    assert cell_of(chain("gateway", "own"), four_vnfs(vnfs=vnfs)).programs == (None, program)
    vnfs = (VnfSpec(name="nat", kind=NfKind("linux_nat"), mode=Mode.PASSIVE),)
    with pytest.raises(PlanError, match=r"nat: an NF of kind linux_nat cannot be passive"):
        cell_of(chain("nat"), four_vnfs(vnfs=vnfs))


MACHINES = four_vnfs(vnfs=(VnfSpec(name="vm", kind=NfKind("qemu")), *VNFS))


@pytest.mark.parametrize(
    ("order", "name"),
    [
        ("vm", "eth-l2bd-1ch-2vh-1vm1t-lnxip4"),
        ("monitor vm", "eth-l2bd-1ch-2vh-1vm1t-lnxip4-tap1tcpdump"),
        ("nat", "eth-l2bd-1ch-2veth-1dcr1t-lnxnat"),
        ("vm nat", "eth-l2bd-1ch-4veth-1dcr1t+1vm-lnxip4+lnxnat"),
    ],
)
def test_virtual_machines_are_chained_with_each_other_and_with_containers(order: str, name: str) -> None:
    cell = cell_of(chain(*order.split()), MACHINES)
    plan = make_plan(shipped("local"), cell, shipped("available/lab-2n-kernel").dut.layout)
    assert plan.suite_id == name
    assert [function.kind for function in plan.functions] == list(cell.nf_kinds)


def test_a_service_of_virtual_machines_only_is_no_chain_of_containers() -> None:
    cell = cell_of_type("CSC", nf_kinds=(NfKind("qemu"),))
    assert "no NFs of kind qemu for a CSC" in str(no_such_kind(shipped("local"), cell))
