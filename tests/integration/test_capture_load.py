"""Packets of a capture as the load, compared with what tcpdump sees behind the path."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator, why_not_by_xdp
from resources.libraries.python.drivers.generators.builtin.wire import Sending
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.frames import frame
from tests.captures import MIX, MIX6, packets_of, pcap
from tests.integration.numbered_captures import arriving
from tests.veth_pair import LEFT, NAMESPACE, RIGHT, generating, plan, veth_pair

pytestmark = [pytest.mark.parallel, pytest.mark.usefixtures("awake"), pytest.mark.root]
ROUNDS = 100
FLOW_PPS = 1000.0
"""So little that queues of 256 packets hold what comes while a data thread waits for its CPU."""


@contextmanager
def generator(sending: Sending, content: bytes, planned: Plan) -> Iterator[BuiltInGenerator]:
    if sending == "xdp" and (reason := why_not_by_xdp()):
        pytest.skip(reason)
    with (
        veth_pair(NAMESPACE, (LEFT, RIGHT), napi=True),
        generating(NAMESPACE, sending, planned, capture=content) as built_in,
    ):
        yield built_in


def load(sizes: Frame, packets: int, *, probe_pps: float = 0.0) -> Trial:
    """A trial in which each direction has so many packets."""
    return Trial(load_pps=2 * FLOW_PPS, duration_s=packets / FLOW_PPS, frame=sizes, probe_pps=probe_pps)


def in_words(file: Path) -> list[str]:
    """What tcpdump says of each packet, checksums included."""
    argv = ["tcpdump", "-r", str(file), "-nn", "-vv", "-e", "-t"]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return re.sub(r"\n\s+", " ", text).splitlines()


@pytest.mark.parametrize("sending", ["xdp", "ring"])
@pytest.mark.parametrize("mix", [MIX, MIX6], ids=["IPv4", "IPv6"])
def test_packets_arrive_in_the_order_of_the_file_with_the_addresses_of_the_plan(
    tmp_path: Path, sending: Sending, mix: tuple[bytes, ...]
) -> None:
    file = tmp_path / "mix.pcap"
    file.write_bytes(pcap(mix))
    sizes, planned = frame(f"pcap:{file}"), plan()
    if mix is MIX6:
        update = [{"source_ip": f"fd00:{a}:1::1", "destination_ip": f"fd00:{b}:1::1"} for a, b in ((10, 20), (20, 10))]
        flows = (flow.model_copy(update=each) for flow, each in zip(planned.flows, update, strict=True))
        planned = planned.model_copy(update={"flows": tuple(flows)})
    packets = ROUNDS * len(mix)
    with generator(sending, file.read_bytes(), planned) as built_in:
        theirs = "ether src 02:00:00:00:00:01"
        with arriving(RIGHT, tmp_path / "arrived.pcap", theirs, namespace=NAMESPACE) as wait:
            result = built_in.run(load(sizes, packets))
            wait(expected := result.flows[0].sent)
        # A sender that stands still at the end of a trial leaves out its last packets.
        assert all(0.9 * packets <= flow.sent == flow.received <= packets for flow in result.flows), result
        probed = built_in.run(load(sizes, packets, probe_pps=200.0))
        assert all(flow.p50_ns and flow.received == flow.sent for flow in probed.latency)
        assert probed.received == probed.sent
    arrived = packets_of(tmp_path / "arrived.pcap")
    assert [len(each) for each in arrived] == (ROUNDS * [max(60, len(each)) for each in mix])[:expected]
    # Behind the checksums: ports of TCP and UDP are before, payloads behind, all as in the file.
    behind = 14 + (20 if mix is MIX else 40)
    for at, each in enumerate(arrived):
        wanted = mix[at % len(mix)]
        assert each[behind : behind + 2] == wanted[behind : behind + 2]
        assert each[behind + 20 : len(wanted)] == wanted[behind + 20 :]
    words = in_words(tmp_path / "arrived.pcap")
    wrong = [line for line in words if re.search(r"incorrect|bad udp|bad cksum|wrong", line)]
    assert not wrong, wrong[:3]
    hosts = {re.search(r"(10\.0\.1\.\d+|fd00:10:1::\d+)", line)[0] for line in words}  # type: ignore[index]
    assert hosts == ({"10.0.1.1", "10.0.1.2", "10.0.1.3"} if mix is MIX else {"fd00:10:1::1", "fd00:10:1::2"})
