"""Another VPP build for a run: the topology with its folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from jenkins.with_vpp import with_vpp
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from tests.builders import shell_program

ROOT = Path(__file__).parents[3]
LAB = ROOT / "topologies" / "available" / "lab-2n-vpp.yaml"


def test_only_the_folder_of_vpp_is_another_one(tmp_path: Path) -> None:
    testbed = tmp_path / "testbed.yaml"
    with_vpp(LAB, "/opt/vpp/4711", testbed)
    then, now = load_topology(LAB), load_topology(testbed)
    assert {dut.settings(Vpp).prefix for dut in now.duts.values()} == {"/opt/vpp/4711"}
    as_before = {
        name: node.model_copy(update={"vpp": then.nodes[name].settings(Vpp)}) if name in now.duts else node
        for name, node in now.nodes.items()
    }
    assert now.model_copy(update={"nodes": as_before}) == then


def test_a_testbed_without_vpp_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no DUT uses VPP"):
        with_vpp(ROOT / "topologies" / "sim.yaml", "/opt/vpp/4711", tmp_path / "testbed.yaml")
    assert not (tmp_path / "testbed.yaml").exists()


def test_the_lab_installs_before_the_topology_is_written(tmp_path: Path) -> None:
    program, testbed = tmp_path / "install", tmp_path / "testbed.yaml"
    shell_program(program, f'echo "$@" >{tmp_path}/said\n[ "$2" != /opt/vpp/missing ]')
    for prefix, status in (("/opt/vpp/missing", 1), ("/opt/vpp/4711", 0)):
        assert not testbed.exists()
        done = subprocess.run(
            [ROOT / "jenkins" / "install-vpp", LAB, prefix, testbed],
            env={"CSIT_INSTALL_VPP": str(program), "CSIT_VENV": sys.prefix},
            check=False,
        )
        assert done.returncode == status
        assert (tmp_path / "said").read_text(encoding="utf-8") == f"{LAB} {prefix}\n"
    assert load_topology(testbed).dut.settings(Vpp).prefix == "/opt/vpp/4711"
