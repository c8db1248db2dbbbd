"""Number of flows that arrive, counted by tcpdump and by connection tracking, against the number asked for."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator, why_not_by_xdp
from resources.libraries.python.drivers.generators.builtin.kernel import enter_namespace
from resources.libraries.python.drivers.generators.builtin.wire import Sending
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.frames import frame, with_flows
from tests.captures import packets_of
from tests.integration.numbered_captures import arriving
from tests.veth_pair import LEFT, NAMESPACE, RIGHT, generating, run, veth_pair

pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.root]
SENDINGS: tuple[Sending, ...] = ("xdp", "ring")
LOAD_PPS = 100_000
COUNT_FILE = Path("/proc/sys/net/netfilter/nf_conntrack_count")


@contextmanager
def generator(sending: Sending) -> Iterator[BuiltInGenerator]:
    """On a cable that takes XDP frames."""
    if sending == "xdp" and (reason := why_not_by_xdp()):
        pytest.skip(reason)
    with veth_pair(NAMESPACE, (LEFT, RIGHT), napi=True), generating(NAMESPACE, sending) as built_in:
        yield built_in


def packets(flows: int, each: int, *, size: str = "64B", load_pps: float = LOAD_PPS, probe_pps: float = 0.0) -> Trial:
    """A trial in which every flow of both directions has so many packets."""
    return Trial(
        load_pps=load_pps,
        duration_s=2 * flows * each / load_pps,
        frame=with_flows(frame(size), flows),
        probe_pps=probe_pps,
    )


def tcpdump(file: Path) -> AbstractContextManager[Callable[[int], None]]:
    """Write what arrives at the right port into a file."""
    return arriving(RIGHT, file, "udp", namespace=NAMESPACE, options=("-s", "60"))


def tuples(file: Path) -> Counter[bytes]:
    """Packets of each 5-tuple of UDP in a file of tcpdump: addresses and ports as they are in a frame."""
    return Counter(packet[26:38] for packet in packets_of(file))


@pytest.mark.parametrize("sending", SENDINGS)
@pytest.mark.parametrize(("flows", "each", "size"), [(1, 500, "64B"), (1000, 3, "IMIX"), (70_000, 2, "64B")])
def test_tcpdump_counts_the_flows_that_were_asked_for(
    tmp_path: Path, sending: Sending, flows: int, each: int, size: str
) -> None:
    with generator(sending) as built_in, tcpdump(tmp_path / "arrived.pcap") as wait:
        result = built_in.run(packets(flows, each, size=size))
        assert [(flow.sent, flow.received) for flow in result.flows] == [(flows * each, flows * each)] * 2
        wait(flows * each)
    found = tuples(tmp_path / "arrived.pcap")
    assert len(found) == flows
    assert set(found.values()) == {each}


@pytest.mark.parametrize("sending", SENDINGS)
def test_a_million_packets_are_of_a_million_flows(tmp_path: Path, sending: Sending) -> None:
    with generator(sending) as built_in, tcpdump(tmp_path / "arrived.pcap") as wait:
        result = built_in.run(packets(1_000_000, 1, load_pps=400_000))
        sent = result.flows[0].sent
        wait(sent)
    found = tuples(tmp_path / "arrived.pcap")
    assert (len(found), sum(found.values())) == (sent, sent)
    assert 500_000 < sent <= 1_000_000, "a sender that falls behind leaves packets out"


@pytest.mark.parametrize("sending", SENDINGS)
def test_numbered_packets_are_of_as_many_flows(tmp_path: Path, sending: Sending) -> None:
    trial = packets(1000, 2, load_pps=20_000).model_copy(update={"count_losses": True})
    with generator(sending) as built_in:
        result = built_in.run(trial)
        assert [(flow.sent, flow.received) for flow in result.losses] == [(2000, 2000)] * 2
        timed = trial.model_copy(update={"count_losses": False, "timeline_s": 0.01})
        with tcpdump(tmp_path / "arrived.pcap") as wait_for:
            result = built_in.run(timed)
            received = [sum(flow.received) for flow in result.timelines]
            wait_for(received[0])
    found = tuples(tmp_path / "arrived.pcap")
    # A machine that stands still loses some, and the generator counts those that a witness sees.
    assert sum(found.values()) == received[0] > 1900 and max(found.values()) == 2
    assert 1000 - (2000 - received[0]) <= len(found) <= 1000


def test_each_trial_begins_with_the_first_flow(tmp_path: Path) -> None:
    found = []
    for sending in SENDINGS:
        with generator(sending) as built_in:
            for file in (tmp_path / f"{sending}-1", tmp_path / f"{sending}-2"):
                trial = packets(300, 1)
                with tcpdump(file) as wait:
                    built_in.run(trial.model_copy(update={"frame": with_flows(trial.frame, 5000)}))
                    wait(300)
                found.append(set(tuples(file)))
    assert [len(each) for each in found] == [300] * len(found)
    assert all(each == found[0] for each in found)


def test_connection_tracking_has_as_many_entries() -> None:
    flows = 5000
    with generator("auto") as built_in:

        def track() -> None:
            enter_namespace(NAMESPACE)
            run("ip", "link", "set", RIGHT, "address", "02:00:00:00:00:02")
            run("ip", "address", "add", "20.0.1.1/32", "dev", RIGHT)
            run("nft", "add table ip csit; add chain ip csit in { type filter hook input priority 0; };"
                " add rule ip csit in ct state new counter")  # fmt: skip

        def entries() -> int:
            enter_namespace(NAMESPACE)
            return int(COUNT_FILE.read_text(encoding="ascii"))

        aside(track)
        before = aside(entries)
        result = built_in.run(packets(flows, 2))
        assert result.flows[0].received == 2 * flows
        assert aside(entries) - before == flows
