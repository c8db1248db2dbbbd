"""IPsec tunnels of VPP as NFs with real packets: ESP between the gateways, unchanged behind them, nothing left.

VPP is looked for as in `test_vpp`.
"""

import os
import struct
from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.vpp_ipsec.driver import VppTunnels
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.measurements.disturbance import Disturbance, PartEvent
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.testbed.deployment.cell import Deployment
from tests.integration.local_fabric import TTL, packet, send
from tests.integration.tunnel_packets import arrives, listener
from tests.integration.user_space import (
    NO_VPP_IPSEC,
    VPP_PREFIX,
    cell,
    deployed,
    is_as_planned,
    planned,
    send_and_count,
    vpp_of,
)
from tests.integration.user_space import vpp_topology as topology

pytestmark = [
    pytest.mark.parallel,
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.leaves_no("vpp"),
    pytest.mark.skipif(bool(NO_VPP_IPSEC), reason=f"{NO_VPP_IPSEC} (CSIT_VPP_PREFIX={VPP_PREFIX})"),
]
TUNNEL, ROUTER = NfKind("vpp_ipsec"), NfKind("linux_router")
FRAMES = 20
ESP = 50
FOLDER = DIRECTORY / "run" / "shared_memory"


def tunnels(deployment: Deployment) -> VppTunnels:
    driver, _ = vpp_of(deployment, "nf-1-1")
    assert isinstance(driver, VppTunnels)
    return driver


def ask(deployment: Deployment, command: str) -> str:
    return tunnels(deployment)._members["nf-1-1"].instance.ask(command)


def frames_of(capture: Path) -> list[bytes]:
    """The frames of a capture file, by its format (libpcap 2.4, little-endian)."""
    content = capture.read_bytes()
    assert content[:4] == b"\xd4\xc3\xb2\xa1"
    found, at = [], 24
    while at < len(content):
        length, original = struct.unpack_from("<II", content, at + 8)
        # VPP captures at most 8999 bytes of a frame; where the rest was cut off is filled, so that lengths are right.
        found.append(content[at + 16 : at + 16 + length].ljust(original, b"?"))
        at += 16 + length
    return found


@pytest.mark.parametrize("vswitch", ["vpp", "linux_bridge"])
@pytest.mark.parametrize("frame_bytes", [64, 1518, 9018])
def test_packets_are_esp_between_the_gateways_and_unchanged_behind_them(
    frame_bytes: int, vswitch: str, tmp_path: Path
) -> None:
    """VPP captures what each gateway sends to the other one; the far end of the cell has the packet as it was sent."""
    payload = os.urandom(frame_bytes - 18 - 28)
    with deployed(topology(vswitch=vswitch), cell("CSC", 1, 1, (TUNNEL,)), f"{frame_bytes}B") as deployment:
        assert {row.interface: row.actual_cpus for row in deployment.affinity()} == planned(deployment.plan)
        for number, flow in enumerate(deployment.plan.flows, 1):
            capture = tmp_path / f"{flow.direction}.pcap"
            ask(deployment, f"pcap trace tx max 100 max-bytes-per-pkt 8999 intfc any file {capture.name}")
            with namespaces.run_inside("csit-generator", partial(listener, flow.rx_interface)) as behind:
                namespaces.run_inside("csit-generator", partial(send, flow, 1, payload))
                wanted = packet(flow, payload, ttl=TTL - 1)
                arrived: list[bytes] = []
                wait_until("the packet", partial(arrives, behind, arrived, wanted), 60.0)
            ask(deployment, "pcap trace off")
            sent = frames_of(Path("/tmp") / capture.name)  # noqa: S108 - where VPP writes captures
            (Path("/tmp") / capture.name).unlink()  # noqa: S108
            between = [each for each in sent if payload[:16] not in each]
            assert len(sent) == 2 and len(between) == 1, "once over the pipe, without a fragment, and once to the port"
            ip = between[0][14:]
            assert ip[9] == ESP
            ends = [bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])]
            assert [ip[12:16], ip[16:20]] == (ends if flow.direction == "forward" else ends[::-1])
            assert len(ip) > len(wanted) + 40
            done = dict(deployment.parts.functions.processed())
            assert done == {"nf-1-1": ProcessedPackets(number, 0)}
        assert deployment.problems() == ()


@pytest.mark.parametrize("kinds", [(TUNNEL, TUNNEL), (TUNNEL, NfKind("vpp")), (ROUTER, TUNNEL)])
@pytest.mark.parametrize("service_type", ["CSC", "CSP"])
def test_every_packet_goes_through_the_tunnel_also_beside_others(service_type: str, kinds: tuple[NfKind, ...]) -> None:
    with deployed(topology(), cell(service_type, 1, len(kinds), kinds)) as deployment:
        send_and_count(deployment)
        done = dict(deployment.parts.functions.processed())
        assert done == {f"nf-1-{node}": ProcessedPackets(2 * FRAMES, 0 if kind == TUNNEL else None)
                        for node, kind in enumerate(kinds, 1)}  # fmt: skip
        is_as_planned(deployment)


def test_a_load_is_encrypted_and_the_facts_say_by_what() -> None:
    with deployed(topology(), cell("CSC", 1, 1, (TUNNEL,))) as deployment:
        deployment.affinity()
        result = deployment.parts.generator.run(
            Trial(load_pps=5000.0, duration_s=0.5, frame=frame("128B"), purpose="sweep", probe_pps=100.0)
        )
        assert result.received > 0.9 * result.sent > 2000
        facts = deployment.facts()["functions"]
        assert facts["vpp"].startswith("VPP 2")
        assert "ESP with AES-128-GCM by VPP's engine " in facts["vpp_ipsec"]


def test_keys_are_in_no_file_and_new_after_a_restart() -> None:
    with deployed(topology(vswitch="linux_bridge"), cell("CSC", 1, 1, (TUNNEL,))) as deployment:
        before = keys(deployment)
        assert len(before) == 2, "one for each direction"
        files = [path for path in (FOLDER / "nf-1-1").rglob("*") if path.is_file()]
        assert {path.name for path in files} >= {"startup.conf", "vpp.log"}
        said = [path.read_bytes() for path in files] + [repr(deployment.facts()).encode()]
        assert not [key for key in before if any(key.encode() in text for text in said)]
        functions = deployment.parts.functions
        functions.disturb(Disturbance(targets=("nf-1-1",), event=PartEvent.RESTART, after_s=0.01))
        assert functions.disturbed()
        assert not keys(deployment) & before
        send_and_count(deployment)


def keys(deployment: Deployment) -> set[str]:
    """Keys of the associations, which VPP shows when one is asked for by its number."""
    shown = [ask(deployment, f"show ipsec sa {index}") for index in range(4)]
    return {text.partition("crypto alg aes-gcm-128 key ")[2].split()[0] for text in shown}
