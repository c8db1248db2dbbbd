"""An OTG server behind PCI NICs as the generator of a lab: our own one on the TG, whose API a tunnel leads to."""

import select
import shlex
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.libraries.python.drivers.generators.otg.client import OtgClient
from resources.libraries.python.drivers.generators.otg.registration import Otg
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.testbed.connection.runtime import Runtimes
from tests.integration.emulated import Emulated
from tests.integration.robot_runs import results, run_robot
from tests.realtime import LOSS, realtime

pytest.importorskip("snappi", reason="snappi is not installed: ./csit setup requirements-otg")
pytestmark = [pytest.mark.root, pytest.mark.emulated]
PORTS = {"port1": "enp65s0", "port2": "enp66s0"}
SERVER = """
import os, sys, threading
def end_with_the_connection():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=end_with_the_connection, daemon=True).start()
sys.path[:0] = os.environ["PYTHONPATH"].split(":")
from resources.libraries.python.drivers.generators.otg.server.http_api import listening, serve
from resources.libraries.python.drivers.generators.otg.server.traffic import Traffic
with listening(("127.0.0.1", 8443)) as server:
    print("listening", flush=True)
    serve(server, Traffic(sys.argv[1:], cpus=(2, 3, 4, 5)))
"""
_WITHIN_S = 180.0


@contextmanager
def serving(emulated: Emulated) -> Iterator[Otg]:
    """Run a server on the TG, from what an agent has there, and return how it is reached from here."""
    access = load_topology(emulated.topology).tg.access
    assert access is not None and access.key_file and access.known_hosts
    _, program = Runtimes().install(emulated.nodes["TG"], access.python)
    emulated.shell("TG", "; ".join(f"ip link set {port} up" for port in PORTS.values()))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = f"{program.parent}/project:{program.parent}/packages"
    tunnel = [
        "ssh", "-p", str(access.port), "-i", access.key_file, "-o", f"UserKnownHostsFile={access.known_hosts}",
        "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-L", f"{port}:127.0.0.1:8443",
        f"{access.user}@{access.host}",
        f"PYTHONPATH={paths} exec {access.python} -c {shlex.quote(SERVER)} {' '.join(PORTS.values())}",
    ]  # fmt: skip
    settings = Otg(location=f"http://127.0.0.1:{port}", ports=PORTS)
    client = OtgClient(settings)

    def silent() -> str:
        try:
            client.version()
        except CsitError as error:
            return str(error)
        return ""

    with subprocess.Popen(tunnel, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdin and server.stdout
            ready, _, _ = select.select([server.stdout], [], [], _WITHIN_S)
            assert ready, f"the server did not listen within {_WITHIN_S} s"
            assert server.stdout.readline() == "listening\n"
            wait_until("OTG server", silent, _WITHIN_S, pause_s=1.0)
            yield settings
            server.stdin.close()
            assert server.wait(_WITHIN_S) == 0
        finally:
            server.kill()  # without the connection the server on the TG ends too


@realtime(LOSS)
def test_instances_of_two_vlans_are_counted_by_a_server_behind_pci_nics(emulated: Emulated, tmp_path: Path) -> None:
    with serving(emulated) as server:
        tg = {
            "access": None, "cpus": None, "generator": {"driver": "otg"}, "otg": server.model_dump(mode="json"),
            # Without addresses of the NICs frames are for those of the plan, which only a promiscuous port takes.
            "interfaces": {
                f"port{number}": dict.fromkeys(("mac_address", "pci_address", "numa_node", "rx_queues"))
                for number in range(1, 5)
            },
        }  # fmt: skip
        topology = emulated.write_topology(tmp_path, discriminator="vlan", nodes={"TG": tg})
        words = (
            f"TOPOLOGY:{topology}",
            "CELLS:2x1",
            "NF_SIZES:1c",
            "FRAMES:64B",
            "SEARCH:quick,mrr=1",
            "NOISE_FLOOR:0.1",
        )
        options = [word for each in words for word in ("-v", each)]
        done = run_robot(tmp_path / "out", *options, "--suite", "csc-mrr")
        assert done.returncode == 0, done.stdout + done.stderr
        assert not OtgClient(server).flow_metrics(), "nothing is left on the server"
    (row,) = results(tmp_path / "out")
    assert row.passed and row.mrr and row.mrr.mean_pps > 100
    assert row.facts["generator"]["server"] == server.location
    flows = row.trials[0].flows
    assert [(flow.instance, flow.direction) for flow in flows] == [(each, way) for each in (1, 2) for way in Direction]
    assert all(0 < flow.received <= flow.sent for flow in flows), flows
