"""Topology files: good ones load, and each kind of mistake is told in one sentence with its place."""

from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SIM = (TOPOLOGIES / "sim.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(TOPOLOGIES.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_topology_loads(path: Path) -> None:
    assert load_topology(path).metadata.name


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("vswitch: sim", "vswich: sim", r":25: nodes\.DUT1\.vswich: unknown key; did you mean 'vswitch'\?"),
        ("nodes:", "nodez:", r":11: nodez: unknown key; did you mean 'nodes'\?"),
        ("link: link2, rate", "link: link3, rate", r"TG\.interfaces\.port2\.link: 'link3' has 1 end \(TG\.port2\)"),
        ("cores: 0-27", "cores: 0-26", r":21: nodes\.DUT1\.cpus\.0: 28 CPUs \(0-27\) but 27 cores \(0-26\)"),
        ("cpus: 28-55", "cpus: 27-54", r":20: nodes\.DUT1\.cpus: CPU 27 is listed more than once"),
        ("cpus: 0-27,", "cpus: 27-0,", r"nodes\.DUT1\.cpus\.0\.cpus: the range 27-0 .* runs backwards"),
        ("  DUT1:", "  TG:", r":18: nodes\.TG: duplicate key, first on line 12"),
        ("world: sim", "world: simm", r":6: world: "),
        ("world: sim", "world: local", r"simulation: required in world sim"),
        ("type: DUT", "type: SUT", r":18: nodes\.DUT1: .*'SUT'"),
        ("type: DUT", "tpye: DUT", r"nodes\.DUT1"),
        ("version: 1", "version: 2", r":3: metadata\.version"),
        ("world: sim", "world: [sim", r":7: not valid YAML"),
        ("link: link2, rate", "link: link1, rate", r"'link1' has 3 ends"),
        ("10000000000", "-5", r"rate_bps: -5 is not above 0"),
        ("socket: 0, node: 0}", "socket: 0, node: 1}", r"nodes\.DUT1"),
    ],
)
def test_a_mistake_is_reported_with_its_place(tmp_path: Path, before: str, after: str, expected: str) -> None:
    path = tmp_path / "lab.yaml"
    assert before in SIM
    path.write_text(SIM.replace(before, after, 1), encoding="utf-8")
    if before.startswith("socket"):  # one group on another node is a fine machine
        load_topology(path)
        return
    with pytest.raises(ConfigError, match=expected) as caught:
        load_topology(path)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


def test_interfaces_on_two_numa_nodes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    first, second = ("numa_node: 0, link: link1", "numa_node: 1, link: link2")
    head, dut = SIM.split("type: DUT")
    path.write_text(f"{head}type: DUT{dut.replace('link: link1', first).replace('link: link2', second)}")
    with pytest.raises(ConfigError, match=r"nodes\.DUT1\.interfaces: on NUMA nodes \[0, 1\]"):
        load_topology(path)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words", "a: &x [*x]", "\x00"])
def test_no_topology_at_all(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"lab\.yaml:"):
        load_topology(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: .*No such file"):
        load_topology(tmp_path / "none.yaml")
