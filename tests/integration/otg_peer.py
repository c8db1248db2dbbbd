"""A small OTG server over HTTP, of what tests of the client need: it sends and counts UDP over IPv4 by packet sockets.

`python -m tests.integration.otg_peer [--namespace NAME] [--address ADDRESS] [--port PORT] [--certificate PEM]` writes
its URL. The location of a port is the name of an interface. Behind its headers a frame has the number of its flow and
the time when it was sent.
"""

import argparse
import json
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from typing import Any

from resources.libraries.python.drivers.generators.builtin import kernel

_HEADERS_BYTES, _STAMP_BYTES, _FCS_BYTES = 14 + 20 + 8, 12, 4
_BURST, _LATE_S, _QUIET_S = 32, 0.1, 0.3
_PACKET_TYPE, _OUTGOING = 0xFFFFF000 + 4, 4
"""SKF_AD_OFF + SKF_AD_PKTTYPE, and PACKET_OUTGOING: frames that the port itself sends."""


class _Flow:
    """One flow: a socket that sends, and one by which the kernel counts what arrives."""

    def __init__(self, number: int, asked: Mapping[str, Any], locations: Mapping[str, str]) -> None:
        self._name, self._number = asked["name"], number
        self._sent = self._received = 0
        self._pps, self._duration_s = int(asked["rate"]["pps"]), asked["duration"]["fixed_seconds"]["seconds"]
        self._latencies_ns: list[int] | None = [] if asked["metrics"]["latency"]["enable"] else None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        size = asked["size"]["fixed"] - _FCS_BYTES
        self._headers = list(_headers(asked["packet"], size))
        self._padding = bytes(size - _HEADERS_BYTES - _STAMP_BYTES)
        ends = asked["tx_rx"]["port"]
        self._out = _packet_socket(locations[ends["tx_name"]])
        self._in = _packet_socket(locations[ends["rx_names"][0]], number)
        self._in.settimeout(_QUIET_S)

    def start(self) -> None:
        self._thread.start()
        if self._latencies_ns is not None:
            threading.Thread(target=self._time, args=(self._latencies_ns,), daemon=True).start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        self.stop()
        self._out.close()
        self._in.close()

    def metrics(self) -> dict[str, object]:
        # The kernel counts frames that the socket has no room for, too, and begins again with each reading.
        counts = self._in.getsockopt(kernel.SOL_PACKET, kernel.PACKET_STATISTICS, 8)
        self._received += int(struct.unpack("=II", counts)[0])
        found: dict[str, object] = {
            "name": self._name,
            "transmit": "started" if self._thread.is_alive() else "stopped",
            "frames_tx": self._sent,
            "frames_rx": self._received,
        }
        if known := list(self._latencies_ns or ()):
            mean_ns = sum(known) / len(known)
            found["latency"] = {"minimum_ns": min(known), "average_ns": mean_ns, "maximum_ns": max(known)}
        return found

    def _send(self) -> None:
        """Send what is due, until all is sent or the time for it is over."""
        total, begun_s = round(self._pps * self._duration_s), time.monotonic()
        while self._sent < total and not self._ended.is_set():
            passed_s = time.monotonic() - begun_s
            if passed_s > self._duration_s + _LATE_S:
                return
            due = min(total, int(passed_s * self._pps) + 1)
            for _ in range(min(_BURST, due - self._sent)):
                stamp = struct.pack("!IQ", self._number, time.time_ns())
                with suppress(OSError):  # a full queue on the far side: sent and lost
                    self._out.send(self._headers[self._sent % len(self._headers)] + stamp + self._padding)
                self._sent += 1
            if self._sent >= due:
                time.sleep(max(0.0, self._sent / self._pps - (time.monotonic() - begun_s)))

    def _time(self, latencies_ns: list[int]) -> None:
        while True:
            try:
                frame = self._in.recv(_HEADERS_BYTES + _STAMP_BYTES)
            except TimeoutError:
                if not self._thread.is_alive():
                    return
            except OSError:  # it is closed
                return
            else:
                latencies_ns.append(time.time_ns() - struct.unpack_from("!Q", frame, _HEADERS_BYTES + 4)[0])


class NotServed(Exception):
    """A request that the client under test makes of other servers only."""


def _headers(packet: Sequence[Mapping[str, Any]], size: int) -> Iterator[bytes]:
    """Headers of a flow, one for each of its source addresses."""
    fields = {header["choice"]: header[header["choice"]] for header in packet}
    if [*fields] != ["ethernet", "ipv4", "udp"]:
        raise NotServed(f"flows[].packet: {', '.join(fields)}")
    ends = (bytes.fromhex(fields["ethernet"][end]["value"].replace(":", "")) for end in ("dst", "src"))
    ethernet = b"".join(ends) + b"\x08\x00"
    sources, destination = fields["ipv4"]["src"]["increment"], IPv4Address(fields["ipv4"]["dst"]["value"]).packed
    ports = (fields["udp"][end]["value"] for end in ("src_port", "dst_port"))
    udp = struct.pack("!HHHH", *ports, size - 14 - 20, 0)
    for number in range(sources["count"]):
        source = (IPv4Address(sources["start"]) + number).packed
        ip = struct.pack("!BBHIBBH4s4s", 0x45, 0, size - 14, 0, 64, 17, 0, source, destination)
        total = sum(struct.unpack("!10H", ip))
        total = (total & 0xFFFF) + (total >> 16)
        yield ethernet + ip[:10] + struct.pack("!H", ((total & 0xFFFF) + (total >> 16)) ^ 0xFFFF) + ip[12:] + udp


def _packet_socket(interface: str, number: int | None = None) -> socket.socket:
    """A socket that sends, or one that gets the frames of the flow of a number, whatever address they are for."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    if number is not None:
        # ldb packet type; jeq outgoing, drop; ld number; jne ours, drop; ret all; drop: ret 0
        program = kernel.classic_bpf(
            (0x30, 0, 0, _PACKET_TYPE), (0x15, 3, 0, _OUTGOING), (0x20, 0, 0, _HEADERS_BYTES),
            (0x15, 0, 1, number), (0x06, 0, 0, 0xFFFF), (0x06, 0, 0, 0),
        )  # fmt: skip
        kernel.attach_filter(made, program)
    made.bind((interface, 0 if number is None else kernel.ETH_P_ALL))
    if number is not None:
        membership = struct.pack("=iHH8x", socket.if_nametoindex(interface), kernel.PACKET_MR_PROMISC, 0)
        made.setsockopt(kernel.SOL_PACKET, kernel.PACKET_ADD_MEMBERSHIP, membership)
    return made


class _Peer:
    """Ports and flows of the present configuration."""

    def __init__(self, namespace: str) -> None:
        self._namespace, self._lock = namespace, threading.Lock()
        self._locations: dict[str, str] = {}
        self._flows: list[_Flow] = []
        self._configurations = 0

    def answer(self, request: str, asked: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """HTTP status and object of the answer to a request such as `POST /config`."""
        try:
            with self._lock:
                return 200, self._done(request, asked)
        except NotServed as error:
            status, text = 501, str(error)
        except Exception as error:  # boundary: a test then sees it
            status, text = 400, f"{type(error).__name__}: {error}"
        return status, {"code": status, "kind": "validation", "errors": [text]}

    def _done(self, request: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        match request:
            case "GET /capabilities/version":
                return {"api_spec_version": "1.62.0", "sdk_version": "", "app_version": "1.62.0"}
            case "POST /config":
                self._configure(asked)
                return {"warnings": []}
            case "POST /control/state":
                state = asked["traffic"]["flow_transmit"]["state"]
                for flow in self._flows:
                    (flow.start if state == "start" else flow.stop)()
                return {"warnings": []}
            case "POST /monitor/metrics" if asked["choice"] == "flow":
                return {"choice": "flow_metrics", "flow_metrics": [flow.metrics() for flow in self._flows]}
            case "POST /monitor/metrics":
                return {"choice": "port_metrics", "port_metrics": self._links()}
        raise NotServed(request)

    def _configure(self, asked: Mapping[str, Any]) -> None:
        for flow in self._flows:
            flow.close()
        self._flows, self._configurations = [], self._configurations + 1
        self._locations = {port["name"]: port["location"] for port in asked.get("ports", ())}
        if self._locations and self._namespace:
            kernel.enter_namespace(self._namespace)
        for location in self._locations.values():
            if location not in {name for _, name in socket.if_nameindex()}:
                raise LookupError(f"there is no port {location}")
        for number, flow in enumerate(asked.get("flows", ())):
            # No frame of an earlier configuration that is late counts as one of this.
            self._flows.append(_Flow(self._configurations << 8 | number, flow, self._locations))

    def _links(self) -> list[dict[str, object]]:
        if self._locations and self._namespace:
            kernel.enter_namespace(self._namespace)
        return [
            {"name": name, "location": location, "link": "up" if kernel.link_is_up(location) else "down"}
            for name, location in self._locations.items()
        ]


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # such as a client that does not trust the certificate
            super().handle_error(request, client_address)


def main() -> None:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser()
    for name, default in (("namespace", ""), ("address", "127.0.0.1"), ("port", "0"), ("certificate", "")):
        parser.add_argument(f"--{name}", default=default)
    options = parser.parse_args()
    peer = _Peer(options.namespace)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, found = peer.answer(f"{self.command} {self.path}", json.loads(content or b"{}"))
            body = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

    server = _Server((options.address, int(options.port)), Handler)
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate)
        # A handshake is done when a thread of its own reads, so that one that fails ends no other connection.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(f"http{'s' * bool(options.certificate)}://{options.address}:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
