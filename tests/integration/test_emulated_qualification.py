"""Qualification of a generator on PCI NICs, over a cable that joins two ports of its machine."""

import json
from pathlib import Path

import pytest

from resources.libraries.python.model.measurements.qualification import Qualification
from tests.integration.emulated import RING, Emulated
from tests.integration.robot_runs import csit, results, run_robot

pytestmark = [pytest.mark.root, pytest.mark.emulated]
NIC = "RedHat-Virtio virtio-pci by the kernel"
SERVICE, LOOP = ("enp65s0", "enp66s0"), ("enp69s0", "enp70s0")


def arrived(emulated: Emulated) -> dict[str, int]:
    """Packets that the TG's ports have received."""
    rows = emulated.run("TG", "sh", "-c", "grep . /sys/class/net/*/statistics/rx_packets").splitlines()
    return {name.split("/")[4]: int(count) for name, _, count in (row.partition(":") for row in rows)}


def test_runs_on_pci_nics_use_what_was_qualified_over_a_cable_of_such_nics(emulated: Emulated, tmp_path: Path) -> None:
    topology = emulated.write_topology(tmp_path, loop=True, nodes={"TG": RING})
    ports, before = emulated.run("TG", "ls", "/sys/class/net").split(), arrived(emulated)
    kept = tmp_path / "kept"
    done = csit("qualify", str(topology), "--brief", "--frames", "64B", "--format", "json", "--folder", str(kept))
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert (row["key_nic"], row["key_generator"], row["flows"]) == (NIC, "ring", 2)
    # An emulated machine may stand still in each trial, and no rate counts as reached then.
    assert row["received_pps"] > 100 and row["gap_p99_ns"] > 0 and row["floor_ns"] > 1000
    assert emulated.run("TG", "ls", "/sys/class/net").split() == ports
    more = {port: count - before[port] for port, count in arrived(emulated).items()}
    assert min(more[port] for port in LOOP) > 100 and max(more[port] for port in SERVICE) < 100, more
    (file,) = kept.iterdir()
    words = ("CELLS:1x1", "NF_SIZES:1c", "SEARCH:quick,mrr=1", "NOISE_FLOOR:0.1", f"QUALIFY:{kept}")
    options = [word for each in (f"TOPOLOGY:{topology}", *words) for word in ("-v", each)]
    run = run_robot(tmp_path / "out", *options, "--suite", "csc-mrr")
    assert "qualifying" not in run.stdout, run.stdout
    (measured,) = results(tmp_path / "out")
    assert measured.qualification == Qualification.model_validate_json(file.read_bytes())


def test_af_xdp_counts_what_it_sends_on_a_kernel_that_tells_late_how_much_it_took(
    emulated: Emulated, tmp_path: Path
) -> None:
    """Until Linux 6.17 a socket that copies does not say which frames it took of a burst that met a full queue."""
    generator = {"generator": {"driver": "af_xdp", "cores": 1}}
    topology = emulated.write_topology(tmp_path, loop=True, nodes={"TG": generator})
    before = arrived(emulated)
    done = csit("qualify", str(topology), "--brief", "--frames", "64B", "--format", "json", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["key_generator"] == "af_xdp"
    assert 100 < row["received_pps"] <= 1.01 * row["offered_pps"], row
    more = sum(count - before[port] for port, count in arrived(emulated).items() if port in LOOP)
    assert more > 100
