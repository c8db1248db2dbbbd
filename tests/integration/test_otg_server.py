"""snappi, unmodified, against the OTG server on real ports, in the manner of openconfig's conformance tests."""

import http.client
import importlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyroute2.netlink.rtnl.ifinfmsg import IFF_PROMISC

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from tests.integration.otg_server import LEFT, NAMESPACE, RIGHT, OtgServer, serving, serving_a_cable
from tests.realtime import RATE, realtime

snappi = pytest.importorskip("snappi", reason="snappi is not installed: ./csit setup requirements-otg")
pytestmark = [
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root and network namespaces"),
]
_END_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtgServer]:
    """A server on the two ends of a cable."""
    with serving_a_cable(tmp_path_factory.mktemp("otg") / "server.log") as running:
        yield running
        assert running.end() == 128 + signal.SIGTERM
        assert "Traceback" not in running.output


@pytest.fixture
def api(server: OtgServer) -> Any:
    """A client of it."""
    return snappi.api(location=server.url)


def ipv4(flow: Any) -> None:
    ethernet, ip, udp = flow.packet.ethernet().ipv4().udp()
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
    ip.src.increment.start, ip.src.increment.step, ip.src.increment.count = "10.0.0.1", "0.0.0.1", 5
    ip.dst.value = "20.0.0.1"
    udp.src_port.value, udp.dst_port.value = 1024, 4789


def ipv6(flow: Any) -> None:
    _, ip, udp = flow.packet.ethernet().ipv6().udp()
    ip.src.value, ip.dst.value, udp.dst_port.value = "2001:db8::1", "2001:db8::2", 9


def vlan(flow: Any) -> None:
    _, tag, ip = flow.packet.ethernet().vlan().ipv4()
    tag.id.value, ip.dst.value = 42, "20.0.0.1"


def tcp(flow: Any) -> None:
    _, ip, segment = flow.packet.ethernet().ipv4().tcp()
    ip.src.value, ip.dst.value, segment.seq_num.value, segment.ctl_ack.value = "10.0.0.1", "20.0.0.1", 7, 1
    segment.src_port.increment.start, segment.src_port.increment.step, segment.src_port.increment.count = 1024, 1, 5
    segment.dst_port.value, segment.window.value = 443, 29200


def configured(api: Any, *flows: tuple[str, str, str], headers: Callable[[Any], None] = ipv4) -> Any:
    """A configuration of flows, each a name and the ports between which it is sent."""
    config = api.config()
    for name, location in (("p1", LEFT), ("p2", RIGHT)):
        config.ports.add(name=name, location=location)
    for name, tx, rx in flows:
        flow = config.flows.add(name=name)
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = tx, [rx]
        headers(flow)
        flow.size.fixed, flow.rate.pps = 128, 2000
        flow.duration.fixed_packets.packets = 400
        flow.metrics.enable = flow.metrics.loss = flow.metrics.latency.enable = True
    return config


def transmit(api: Any, state: str, *names: str) -> None:
    control = api.control_state()
    control.traffic.flow_transmit.state = state
    control.traffic.flow_transmit.flow_names = list(names)
    api.set_control_state(control)


def flow_metrics(api: Any) -> dict[str, Any]:
    request = api.metrics_request()
    request.flow.flow_names = []
    return {row.name: row for row in api.get_metrics(request).flow_metrics}


def finished(api: Any) -> dict[str, Any]:
    """Metrics once all flows have stopped."""
    found: dict[str, Any] = {}

    def running() -> str:
        found.update(flow_metrics(api))
        return ", ".join(name for name, row in found.items() if row.transmit == "started")

    wait_until("the end of the flows", running, _END_S, pause_s=0.05)
    return found


def sent(api: Any, config: Any) -> dict[str, Any]:
    """Metrics of flows that were sent to their end."""
    api.set_config(config)
    transmit(api, "start")
    return finished(api)


@realtime(RATE)
@pytest.mark.parametrize("headers", [ipv4, ipv6, vlan, tcp])
def test_fixed_packets_are_sent_and_counted_exactly_as_an_independent_capture_sees_them(
    api: Any, headers: Callable[[Any], None], tmp_path: Path
) -> None:
    config = configured(api, ("f1", "p1", "p2"), headers=headers)
    api.set_config(config)
    expressions = {
        ipv4: "udp dst port 4789 and src net 10.0.0.0/29 and dst 20.0.0.1 and ether src 02:00:00:00:00:01",
        ipv6: "ip6 src 2001:db8::1 and dst 2001:db8::2 and udp dst port 9",
        vlan: "vlan 42 and dst 20.0.0.1",
        tcp: "tcp dst port 443 and tcp[tcpflags] == tcp-ack and tcp[4:4] == 7 and src 10.0.0.1",
    }
    capture = tmp_path / "arrived.pcap"
    argv = ["ip", "netns", "exec", NAMESPACE, "tcpdump", "-i", RIGHT, "-U", "--immediate-mode", "-w", str(capture)]
    with subprocess.Popen([*argv, expressions[headers]], stderr=subprocess.PIPE, text=True) as tcpdump:
        assert tcpdump.stderr is not None
        assert any("listening" in line for line in tcpdump.stderr)
        transmit(api, "start")
        flow = finished(api)["f1"]
        time.sleep(0.2)  # tcpdump writes what it has
        tcpdump.send_signal(signal.SIGINT)
        told = tcpdump.stderr.read()
    assert (flow.frames_tx, flow.frames_rx, flow.loss) == (400, 400, 0.0)
    assert (flow.bytes_tx, flow.bytes_rx) == (51_200, 51_200)
    assert 0 < flow.latency.minimum_ns <= flow.latency.average_ns <= flow.latency.maximum_ns
    assert "400 packets captured" in told, told
    read = subprocess.run(["tcpdump", "-nvvr", str(capture)], capture_output=True, text=True, check=True).stdout
    assert "bad" not in read, read[:2000]
    assert "incorrect" not in read, read[:2000]
    if headers is not vlan:
        assert read.count("udp sum ok" if headers is not tcp else "(correct)") == 400, read[:2000]
    request = api.metrics_request()
    request.port.port_names = ["p1", "p2"]
    ports = {row.name: row for row in api.get_metrics(request).port_metrics}
    assert (ports["p1"].frames_tx, ports["p2"].frames_rx, ports["p1"].transmit) == (400, 400, "stopped")


def promiscuous(port: str) -> bool:
    shown = ["ip", "netns", "exec", NAMESPACE, "cat", f"/sys/class/net/{port}/flags"]
    return bool(int(subprocess.run(shown, check=True, capture_output=True, text=True).stdout, 16) & IFF_PROMISC)


def test_a_port_takes_frames_for_any_address_while_it_counts_a_flow(api: Any) -> None:
    api.set_config(configured(api, ("f1", "p1", "p2")))
    assert (promiscuous(LEFT), promiscuous(RIGHT)) == (False, True)
    api.set_config(configured(api))
    assert not promiscuous(RIGHT)


@realtime(RATE)
def test_two_flows_of_a_port_and_one_back_are_counted_apart(api: Any) -> None:
    config = configured(api, ("f1", "p1", "p2"), ("f2", "p1", "p2"), ("f3", "p2", "p1"))
    config.flows[1].duration.fixed_packets.packets = 100
    config.flows[1].size.fixed = 1518
    found = sent(api, config)
    assert {name: (row.frames_tx, row.frames_rx) for name, row in found.items()} == {
        "f1": (400, 400), "f2": (100, 100), "f3": (400, 400),
    }  # fmt: skip
    assert found["f2"].bytes_rx == 151_800


@realtime(RATE)
def test_workers_of_a_configuration_send_the_flows_of_the_next_one(server: OtgServer, api: Any) -> None:
    api.set_config(configured(api, ("f1", "p1", "p2"), ("f2", "p2", "p1")))
    first = set(worker_pids(server))
    transmit(api, "start", "f1")  # and is stopped by the next configuration
    found = sent(api, configured(api, ("f3", "p2", "p1"), ("f4", "p1", "p2")))
    assert set(worker_pids(server)) == first
    assert {name: (row.frames_tx, row.frames_rx) for name, row in found.items()} == {"f3": (400, 400), "f4": (400, 400)}


@realtime(RATE)
def test_metrics_follow_a_continuous_flow_until_it_is_stopped(api: Any) -> None:
    config = configured(api, ("f1", "p1", "p2"), ("f2", "p2", "p1"))
    for flow in config.flows:
        flow.duration.choice = "continuous"
        flow.metrics.latency.enable = False
    api.set_config(config)
    transmit(api, "start", "f1")
    seen = [flow_metrics(api)["f1"]]
    wait_until(
        "the first second",
        lambda: "" if seen.append(flow_metrics(api)["f1"]) or seen[-1].frames_tx > 2000 else "not yet",
        30,
    )
    assert seen[-1].transmit == "started"
    assert [row.frames_rx for row in seen] == sorted(row.frames_rx for row in seen)
    assert seen[-1].frames_tx_rate == pytest.approx(2000, rel=0.15)
    assert seen[-1].frames_rx_rate == pytest.approx(2000, rel=0.15)
    assert flow_metrics(api)["f2"].frames_tx == 0
    with pytest.raises(Exception, match="already sent: f1"):
        transmit(api, "start", "f1")
    transmit(api, "stop")
    row = flow_metrics(api)["f1"]
    assert row.transmit == "stopped"
    assert row.frames_rx == row.frames_tx > 2000
    transmit(api, "start", "f2")
    transmit(api, "stop", "f2")
    assert flow_metrics(api)["f1"].frames_tx == row.frames_tx


@realtime(RATE)
@pytest.mark.parametrize("rate", ["pps", "percentage", "kbps"])
def test_a_rate_for_a_time_makes_the_packets_that_it_says(api: Any, rate: str) -> None:
    config = configured(api, ("f1", "p1", "p2"))
    flow = config.flows[0]
    flow.duration.fixed_seconds.seconds = 0.5
    setattr(flow.rate, rate, {"pps": 20_000, "percentage": 0.2368, "kbps": 23_680}[rate])  # of 10 Gbit/s, 148 bytes
    row = sent(api, config)["f1"]
    assert row.frames_tx == pytest.approx(10_000, rel=0.002)
    assert row.frames_rx == row.frames_tx


def test_what_cannot_be_done_is_refused_and_the_configuration_stays(api: Any) -> None:
    api.set_config(configured(api, ("f1", "p1", "p2")))
    config = configured(api, ("f1", "p1", "p2"))
    config.flows[0].packet.mpls()
    with pytest.raises(Exception, match="mpls") as refused:
        api.set_config(config)
    error = api.from_exception(refused.value)
    assert (error.code, error.kind) == (400, "validation")
    assert error.errors == ["flows[0].packet[3].mpls: not supported by this server"]
    assert [flow.name for flow in api.get_config().flows] == ["f1"]
    config = configured(api, ("f1", "p1", "p2"))
    config.ports[0].location = "lo"
    with pytest.raises(Exception, match="lo") as refused:
        api.set_config(config)
    assert api.from_exception(refused.value).errors == [f"ports[0].location: 'lo' is not served ({LEFT}, {RIGHT})"]
    config = configured(api)
    config.layer1.add(name="l1", port_names=["p1"], speed="speed_10_gbps")
    assert api.set_config(config).warnings == ["layer1: ignored, ports stay as the kernel has them"]
    with pytest.raises(Exception, match="there is no flow 'f1'"):
        transmit(api, "start", "f1")
    with pytest.raises(Exception, match="POST /monitor/states: not supported by this server"):
        api.get_states(api.states_request())


def test_ports_without_carrier_can_be_configured_but_not_sent_by(api: Any) -> None:
    def links() -> dict[str, str]:
        request = api.metrics_request()
        request.port.port_names = []
        return {row.name: row.link for row in api.get_metrics(request).port_metrics}

    change = ["ip", "-n", NAMESPACE, "link", "set", RIGHT]
    subprocess.run([*change, "down"], check=True)
    try:
        api.set_config(configured(api))
        wait_until("no carrier", lambda: ", ".join(name for name, link in links().items() if link == "up"), _END_S)
        assert links() == {"p1": "down", "p2": "down"}  # of a veth pair
        with pytest.raises(Exception, match=rf"ports\[\d\]\.location: ({LEFT}|{RIGHT}) is down"):
            api.set_config(configured(api, ("f1", "p1", "p2")))
    finally:
        subprocess.run([*change, "up"], check=True)
    wait_until("carrier", lambda: ", ".join(name for name, link in links().items() if link == "down"), _END_S)
    api.set_config(configured(api, ("f1", "p1", "p2")))


def test_requests_are_bounded_and_silent_clients_keep_no_others_waiting(server: OtgServer, api: Any) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(8)]
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.putrequest("POST", "/config")
    connection.putheader("Content-Length", "99999999")
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["kind"]) == (413, "validation")
    assert (
        api.get_version().api_spec_version
        == importlib.import_module("snappi").api().get_local_version().api_spec_version
    )
    for each in silent:
        each.close()


def sending(own: OtgServer) -> list[str]:
    """Process ids of the workers of a server that has begun to send without end."""
    api = snappi.api(location=own.url)
    config = configured(api, ("f1", "p1", "p2"))
    config.flows[0].duration.choice = "continuous"
    api.set_config(config)
    transmit(api, "start")
    workers = worker_pids(own)
    assert workers
    return workers


def worker_pids(server: OtgServer) -> list[str]:
    return Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()


def test_a_killed_server_leaves_no_worker_and_another_takes_its_ports(tmp_path: Path) -> None:
    namespace = f"{NAMESPACE}-own"
    with serving_a_cable(tmp_path / "server.log", namespace) as own:
        workers = sending(own)
        assert own.end(signal.SIGKILL) == -signal.SIGKILL
        left = lambda: " ".join(worker for worker in workers if Path(f"/proc/{worker}").exists())  # noqa: E731
        wait_until("the end of the workers", left, _END_S)
        with serving(tmp_path / "next.log", LEFT, RIGHT, "--namespace", namespace) as following:
            api = snappi.api(location=following.url)
            assert sent(api, configured(api, ("f1", "p1", "p2")))["f1"].frames_rx == 400


def test_a_signal_ends_server_and_workers_while_they_send(tmp_path: Path) -> None:
    with serving_a_cable(tmp_path / "server.log", f"{NAMESPACE}-own") as own:
        workers = sending(own)
        assert own.end(signal.SIGINT) == 0
        assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]
        assert "stopped" in own.output
        assert "Traceback" not in own.output
