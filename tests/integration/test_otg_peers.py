"""The client of OTG servers against peers that are not ours: over gRPC, slow ones, and openconfig/magna."""

import gzip
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.generators.otg import Otg
from resources.libraries.python.drivers.generators.otg import driver as otg_driver
from resources.libraries.python.drivers.generators.otg.driver import OtgClient, missing_on, stop_left
from resources.libraries.python.drivers.generators.otg.flows import SentFlow, figures
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import LONGEST_MESSAGE, CsitError, Unsupported
from tests.builders import shipped
from tests.integration.otg_server import make_certificate
from tests.integration.robot_runs import PROJECT
from tests.unit.drivers.generators.otg.otg_configurations import ETHERNET, FLOWS, UDP
from tests.unit.model.yaml_bombs import MERGE_BOMB
from tests.veth_pair import veth_pair

pytest.importorskip("snappi", reason="snappi is not installed: ./csit setup requirements-otg")
import grpc
from snappi import otg_pb2, otg_pb2_grpc

pytestmark = pytest.mark.parallel
LEFT, RIGHT = "otga", "otgb"
MAGNA = os.environ.get("CSIT_MAGNA", "magna")
NO_MAGNA = "" if shutil.which(MAGNA) else (
    "openconfig/magna is not installed: build it (go build ./cmd/magna) and name the program by CSIT_MAGNA"
)  # fmt: skip


class Counting(otg_pb2_grpc.OpenapiServicer):  # type: ignore[misc]  # snappi is not typed
    """Has metrics of one flow, and nothing else."""

    def GetMetrics(self, *_: object) -> Any:
        row = otg_pb2.FlowMetric(name="f1", transmit="stopped", frames_tx=700, frames_rx=699)
        return otg_pb2.GetMetricsResponse(
            metrics_response=otg_pb2.MetricsResponse(choice="flow_metrics", flow_metrics=[row])
        )


@contextmanager
def grpc_server(servicer: Any, key: Path | None = None, certificate: Path | None = None) -> Iterator[int]:
    """Run a gRPC server; the value is its port."""
    server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.max_send_message_length", -1)])
    if isinstance(servicer, grpc.GenericRpcHandler):
        server.add_generic_rpc_handlers([servicer])
    else:
        otg_pb2_grpc.add_OpenapiServicer_to_server(servicer, server)
    if key is None or certificate is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        pair = (key.read_bytes(), certificate.read_bytes())
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


def test_counters_come_over_grpc_and_missing_ones_are_reported() -> None:
    with grpc_server(Counting()) as port:
        url = f"grpc://127.0.0.1:{port}"
        client = OtgClient(Otg(location=url))
        assert client.version() == "of an unknown version"
        client.check_counters()
        found = figures(client.flow_metrics(), [SentFlow("f1", FLOWS[0], 128, 1000, 1, probe=False)])
        assert (found["f1"].sent, found["f1"].received, found["f1"].running) == (700, 699, False)
        with pytest.raises(
            Unsupported, match=rf"^OTG server {url}: configuration: .*\(not supported by this server\)$"
        ):
            client.configure({})


class Saying(grpc.GenericRpcHandler):  # type: ignore[misc]  # gRPC is not typed
    """Answers every call with the same bytes, or with an error."""

    def __init__(self, content: bytes, error: str = "") -> None:
        self._content, self._error = content, error

    def service(self, _: object) -> Any:
        def answer(_: bytes, context: Any) -> bytes:
            if self._error:
                context.abort(grpc.StatusCode.INTERNAL, self._error)
            return self._content

        return grpc.unary_unary_rpc_method_handler(answer)


MANY_FLOWS = otg_pb2.GetMetricsResponse(
    metrics_response=otg_pb2.MetricsResponse(
        choice="flow_metrics", flow_metrics=[otg_pb2.FlowMetric() for _ in range(200_000)]
    )
).SerializeToString()


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"", ""), (b"\xff" * 1_000, ""), (bytes(5 << 20), ""), (MANY_FLOWS, ""), (b"", "\x1b[2J\u202e" + "[" * 6_000)],
)
def test_answers_of_another_form_over_grpc_are_one_sentence(content: bytes, error: str) -> None:
    with grpc_server(Saying(content, error)) as port:
        url, began_s = f"grpc://127.0.0.1:{port}", time.process_time()
        with pytest.raises(CsitError, match=f"^OTG server {url}: flow metrics: ") as said:
            OtgClient(Otg(location=url)).flow_metrics()
    assert len(str(said.value)) <= LONGEST_MESSAGE and str(said.value).isprintable()
    assert time.process_time() - began_s < 2.0


def test_a_server_without_counters_is_refused_before_a_run() -> None:
    with grpc_server(otg_pb2_grpc.OpenapiServicer()) as port:
        url = f"grpc://127.0.0.1:{port}"
        with pytest.raises(Unsupported, match=rf"^OTG server {url}: flow metrics: .*not supported by this server"):
            OtgClient(Otg(location=url)).check_counters()
        tg = shipped("local-otg").tg.model_copy(update={"otg": Otg(location=url)})
        (problem,) = missing_on(tg)
        assert "flow metrics" in str(problem)
        (sentence,) = stop_left([Otg(location=url)])
        assert sentence.startswith(f"could not stop traffic: OTG server {url}: stop of traffic: ")


def test_grpc_with_tls_checks_the_certificate(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path, "127.0.0.1")
    with grpc_server(Counting(), key, certificate) as port:
        url = f"grpcs://127.0.0.1:{port}"
        assert OtgClient(Otg(location=url, ca_file=str(certificate))).flow_metrics()["f1"].frames_tx == 700
        with pytest.raises(CsitError, match=rf"^OTG server {url}: version: .*CERTIFICATE_VERIFY_FAILED"):
            OtgClient(Otg(location=url)).version()
        with pytest.raises(CsitError, match=r"/nowhere.pem: cannot be read: No such file"):
            OtgClient(Otg(location=url, ca_file="/nowhere.pem"))


def drip(text: bytes, connection: socket.socket) -> None:
    """Send a byte at a time, until the peer has had enough."""
    try:
        for byte in text:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)
    except OSError:
        pass


@pytest.mark.parametrize(
    "begin", [b"", b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 99999\r\n\r\n"]
)
def test_an_answer_that_comes_a_byte_at_a_time_ends_at_the_limit(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otg_driver, "LONGEST_REQUEST_S", 0.5)

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(begin)
            drip(b"HTTP/1.0 200 OK\r\nX-Long: " + b"x" * 60_000, connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(CsitError, match=rf"^OTG server {url}: version: no whole answer within 0.5 s$"):
            OtgClient(Otg(location=url)).version()
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"200 OK", MERGE_BOMB.encode()),
        (b"500 Error", MERGE_BOMB.encode()),
        (b"200 OK", b"[" * 100_000),
        (b"200 OK", b"null"),
        (b"200 OK", b'{"choice":"flow_metrics","flow_metrics":[%b{}]}' % (b"{}," * 1_000_000)),
        (b"200 OK", bytes(range(256))),
        (b"200 OK\r\nContent-Encoding: gzip", gzip.compress(b"a" * 10_000_000)),
        (b"302 Found\r\nLocation: /", b""),
    ],
)
def test_answers_of_another_form_are_one_sentence(head: bytes, body: bytes) -> None:
    def serve(listener: socket.socket) -> None:
        with suppress(OSError):  # it is closed, or the client has had enough
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(b"HTTP/1.0 %b\r\nContent-Length: %d\r\n\r\n%b" % (head, len(body), body))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        client, began_s = OtgClient(Otg(location=url)), time.process_time()
        for ask in (client.version, client.flow_metrics, lambda: client.configure({})):
            with pytest.raises(CsitError, match=f"^OTG server {url}: ") as said:
                ask()
            assert len(str(said.value)) <= LONGEST_MESSAGE and str(said.value).isprintable()
    assert time.process_time() - began_s < 2.0


CLIENT = """
import json, sys, time
from resources.libraries.python.drivers.generators.otg.driver import OtgClient
from resources.libraries.python.drivers.generators.otg import Otg
from resources.libraries.python.drivers.host.programs.waiting import wait_until
client, (plain, udp) = OtgClient(Otg(location=sys.argv[1])), json.loads(sys.argv[2])
def tried(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        print(type(error).__name__, error)
tried(client.configure, udp)
client.configure(plain)
client.transmit("start")
count = lambda: int(open(sys.argv[3]).read())
wait_until("700 packets", lambda: "" if count() >= 700 else str(count()), 60)
client.transmit("stop")
print(count())
tried(client.check_counters)
tried(client.version)
"""


@pytest.mark.root
@pytest.mark.skipif(bool(NO_MAGNA), reason=NO_MAGNA)
def test_magna_sends_what_it_can_and_the_rest_is_refused_with_the_reason(tmp_path: Path) -> None:
    """It has no counters in its OTG API, and crashes when it is asked for something that it lacks."""
    key, certificate = make_certificate(tmp_path, "127.0.0.1")
    namespace, log = f"csit-magna-{os.getpid()}", tmp_path / "magna.log"
    plain = {
        "name": "f1",
        "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_names": ["p2"]}},
        "packet": [
            ETHERNET,
            {"choice": "ipv4", "ipv4": {"version": value(4), "src": value("10.0.0.1"), "dst": value("20.0.0.1")}},
        ],
        "rate": {"choice": "pps", "pps": 500},
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 700}},
    }
    devices = [
        {"name": f"d{port}", "ethernets": [
            {"name": f"e{port}", "mac": "02:00:00:00:00:01", "connection": {"choice": "port_name", "port_name": port}},
        ]}
        for port in ("p1", "p2")
    ]  # fmt: skip
    ports = [{"name": "p1", "location": LEFT}, {"name": "p2", "location": RIGHT}]
    configs = [
        {"ports": ports, "devices": devices, "flows": [flow]}
        for flow in (plain, {**plain, "packet": [*plain["packet"], UDP]})
    ]
    enter = ["ip", "netns", "exec", namespace]
    argv = [*enter, MAGNA, "-port", "40051", "-telemetry_port", "50051", "-certfile", certificate, "-keyfile", key]
    with veth_pair(namespace, (LEFT, RIGHT)), log.open("wb") as written:
        subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
        with subprocess.Popen([*argv, "-logtostderr"], stderr=written) as magna:
            try:
                wait_until("magna", lambda: "" if "gNMI listening" in log.read_text() else log.read_text(), 60)
                counter = f"/sys/class/net/{RIGHT}/statistics/rx_packets"
                script = [sys.executable, "-c", CLIENT, "grpc://127.0.0.1:40051", json.dumps(configs), counter]
                done = subprocess.run([*enter, *script], cwd=PROJECT, capture_output=True, text=True, check=False)
            finally:
                magna.kill()
    assert done.returncode == 0, done.stderr
    refused, count, version = done.stdout.splitlines()
    url = "OTG server grpc://127.0.0.1:40051"
    assert refused == f"Unsupported {url}: configuration: no handler for flow f1 (not supported by this server)"
    assert count == "700"
    assert version.startswith(f"CsitError {url}: version: "), "it has crashed"


def value(of: object) -> dict[str, object]:
    """A fixed value of a header's field."""
    return {"choice": "value", "value": of}
