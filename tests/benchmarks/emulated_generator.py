"""The built-in generator on ports of emulated NICs, against trafgen and xdp-trafficgen.

It runs in an emulated machine with Debian 13: xdp-trafficgen needs a kernel with BTF, and of Debian 12 does not start.
"""

import io
import json
import subprocess
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

from resources.libraries.python.emulation.image import MIRROR, image
from resources.libraries.python.emulation.layout import EmulatedLayout
from resources.libraries.python.emulation.machine import QEMU, EmulatedNicModel
from resources.libraries.python.emulation.testbed import EmulatedTestbed, state_folder
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection.runtime import Runtimes
from resources.libraries.python.testbed.connection.ssh import SshConnection
from tests.benchmarks.sides import figures

_PROJECT = Path(__file__).parents[2]
_SENT = ("tests/veth_pair.py", "tests/builders.py", "tests/benchmarks", "topologies")
_RELEASE = "trixie"
_UP_WITHIN_S, _WITHIN_S = 600.0, 900.0
_GAP_PPS, _RATES_PPS = 1_000, (500.0, 1_000.0, 2_000.0)
"""What such a machine forwards without loss."""
_ALONE = """
echo 2 >/proc/irq/default_smp_affinity
for irq in /proc/irq/[0-9]*; do echo 1 2>/dev/null >$irq/smp_affinity_list || true; done
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
mkdir -p /var/tmp/bench && tar -xC /var/tmp/bench
"""
"""Interrupts go to the receiver's CPU."""
_MEASURE = """
import json
from tests.benchmarks.generator import VETH, Cable, measure_gap_p99, measure_pps, measure_rate_error
def measured(cable):
    pps, error = measure_pps({rounds}, cable), measure_rate_error(1.0, {rates}, cable)
    return [each["senders"] for each in (pps, error, measure_gap_p99({rounds}, {gap_pps}, cable))]
print(json.dumps([measured(VETH), measured(Cable("", {ports}))]))
"""
_Measured = list[dict[str, Any]]
"""By sender, ours the first: rates, errors of the rate, gaps in ns."""
_HEADS = ("ports", "sender", "offered pps", "received pps", "worst error of the rate", "gap p99 / nominal")


def measure(rounds: int = 5) -> dict[str, Any]:
    """Measure rates, pacing errors and gaps of all senders on a veth pair, virtio and, from QEMU 8 on, igb ports.

    Returns:
        `ours` and `peer`: received pps on a veth pair by XDP live frames, and by xdp-trafficgen.

    Raises:
        Unsupported: No QEMU, or no root.
    """
    try:
        devices = subprocess.run((QEMU, "-device", "help"), capture_output=True, text=True, check=True).stdout
    except FileNotFoundError as error:
        raise Unsupported(f"no {QEMU} here; as root: resources/tools/packages.sh emulate") from error
    rows, veth = list[tuple[object, ...]](), _Measured()
    for nic in (EmulatedNicModel.VIRTIO, EmulatedNicModel.IGB):
        if f'name "{nic}"' in devices or nic is EmulatedNicModel.VIRTIO:
            pair, ports = _measured(nic, rounds)
            veth = veth or pair
            rows += [*(_rows("veth", veth) if veth is pair else ()), *_rows(nic, ports)]
    sending = next(iter(veth[0]))
    ours, peer = (veth[0][name][1] for name in (sending, "xdp-trafficgen"))
    note = f"by {sending} on a veth pair in an emulated machine; peer is xdp-trafficgen"
    return figures(ours, peer, "pps", note, table=(_HEADS, rows))


def _measured(nic: EmulatedNicModel, rounds: int) -> list[_Measured]:
    layout = EmulatedLayout(nic=nic, loop=True)
    testbed = EmulatedTestbed(state_folder() / "bench", ends_with_us=True)
    ports = tuple(each.device for each in layout.machines()[0].nics[-2:])
    try:
        testbed.up(layout, image(MIRROR, lambda *_: None, _RELEASE), _UP_WITHIN_S, lambda *_: None)
        access = load_topology(testbed.topology).nodes["TG"].access
        assert isinstance(access, Access)
        with closing(SshConnection("TG", access)) as connection:
            folder = Runtimes().install(connection, "python3")[1].parent
            connection.run(("sh", "-ec", _ALONE), stdin=_sources(), within_s=_WITHIN_S)
            script = _MEASURE.format(rounds=rounds, rates=_RATES_PPS, gap_pps=_GAP_PPS, ports=ports)
            path = f"PYTHONPATH={folder}/project:{folder}/packages:/var/tmp/bench"
            done = connection.run(("env", path, "python3", "-c", script), within_s=_WITHIN_S)
    finally:
        testbed.down()
    found: list[_Measured] = json.loads(done.stdout)
    return found


def _sources() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as made:
        for name in _SENT:
            made.add(_PROJECT / name, name)
    return packed.getvalue()


def _rows(ports: str, found: _Measured) -> list[tuple[object, ...]]:
    rates, errors, gaps_ns = found
    gaps = {name: gap_ns * _GAP_PPS / 1e9 for name, gap_ns in gaps_ns.items()}
    return [(ports, name, *row[:2], errors.get(name), gaps.get(name)) for name, row in rates.items()]
