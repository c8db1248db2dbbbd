"""Files of what is asked: a study of chains and one of interference. Each mistake is one sentence with its place."""

from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.chains.model.spec import Mode, load_chains
from resources.libraries.python.studies.chains.planning.chain_generation import generate
from resources.libraries.python.studies.interference.model.record import InterferenceSpec

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


def said(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_chains(path)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}:")


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
    ],
)
def test_each_mistake_has_its_place(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    assert right in CHAINS
    assert said(written(tmp_path, CHAINS.replace(right, wrong))).startswith(message)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("512B", "12B", "frame: no frame size '12B'"),
        ("name: monitor", "name: gateway", "network functions named gateway more than once"),
        ("type: II", "type: IX", "contenders.1.type: unknown word 'IX'"),
    ],
)
def test_so_have_mistakes_in_a_study_of_interference(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    with pytest.raises(ConfigError, match=r"spec\.yaml:[0-9]+: ") as caught:
        load_yaml(written(tmp_path, INTERFERENCE.replace(right, wrong)), InterferenceSpec)
    assert message in str(caught.value)


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
