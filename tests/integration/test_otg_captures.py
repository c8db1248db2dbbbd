"""A trial through an OTG server, counted by tcpdump at both ends of the generator's cables."""

import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.planning.names import GENERATOR
from tests.integration.numbered_captures import dumped
from tests.integration.otg_server import serving, topology
from tests.integration.user_space import cell, deployed
from tests.realtime import LOSS, realtime

LACKING = [*map(str, nft_missing())] + [f"no {name} here" for name in ("tcpdump", "nsenter") if not shutil.which(name)]
pytestmark = [
    pytest.mark.usefixtures("awake"),
    pytest.mark.parallel,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root and network namespaces"),
    pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING)),
]
NF = "nf-1-1"
EVERY = 10
"""One of so many packets is lost, one way."""


def packets_in(file: Path) -> int:
    """Number of packets that tcpdump has written."""
    said = subprocess.run(["tcpdump", "-n", "-r", str(file)], capture_output=True, text=True, check=True).stdout
    return len(said.splitlines())


@realtime(LOSS)
def test_packets_of_a_trial_are_those_that_tcpdump_counts(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "server.log", "--namespace", "csit-generator", "--cpus", "1") as server,
        deployed(topology(server.url), cell("CSC", 1, 1)) as deployment,
        ExitStack() as stack,
    ):
        plan = deployment.plan
        forward, _ = plan.flows
        ends = {port.interface: port for link in plan.links for port in (link.a, link.b)}
        peers = {link.a.interface: link.b for link in plan.links} | {link.b.interface: link.a for link in plan.links}
        lossy = min(name for name, port in ends.items() if port.owner == NF)
        subprocess.run(
            ["ip", "netns", "exec", f"csit-{NF}", "nft", "-f", "-"], check=True, text=True,
            input=f"table netdev lossy {{ chain in {{ type filter hook ingress device {lossy} priority 0; "
                  f"ip protocol udp numgen inc mod {EVERY} 0 drop; }}; }}",
        )  # fmt: skip
        files: dict[tuple[str, str], Path] = {}
        for flow in plan.flows:
            for word, end in (("sent", peers[flow.tx_interface]), ("arrived", ends[flow.rx_interface])):
                files[flow.direction, word] = file = tmp_path / f"{flow.direction}-{word}.pcap"
                namespace = f"csit-{end.owner}"
                stack.enter_context(dumped(end.interface, file, namespace, way="in", packets="ip and udp"))
        trial = Trial(load_pps=2000.0, duration_s=0.5, frame=frame("128B"), probe_pps=100.0)
        result = deployment.parts.generator.run(trial)
        stack.close()
        assert ends[forward.tx_interface].owner == GENERATOR
        probes = {row.direction: row for row in result.latency}
        for count in result.flows:
            seen = {word: packets_in(files[count.direction, word]) for word in ("sent", "arrived")}
            of_probes = probes[count.direction]
            assert seen == {"sent": count.sent + of_probes.sent, "arrived": count.received + of_probes.received}, result
        lost = {count.sent - count.received for count in result.flows}
        assert min(lost) == 0 and 0 < max(lost) <= 550 / EVERY, "one direction only"
