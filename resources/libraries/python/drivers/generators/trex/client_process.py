"""The client: a process of its own that speaks to the server with TRex's library.

It imports nothing of this project, because `import trex` puts old copies of yaml, scapy and others in the place of
those that are there, and runs on Python 3.6 or later: what a node has. In comes a line of JSON, out goes one; `wire.py`
has their keys. The end of the input ends it.
"""

import importlib
import json
import os
import platform
import signal
import sys
import time
from typing import Any

LOOK_S = 0.1
"""Between two looks whether packets are lost. One that has been on its way for longer is lost."""
POLL_S = 0.002
LINKS_POLL_S = 0.1
AF_PACKET = "net_af_packet"
QUIET_S = 0.025
"""A system that is late by more has its packets counted as lost; only trials with loss wait for this."""
SETTLE_S = 2.0
END_S = 0.5
"""How long the server may take to say that it has sent everything, after it has counted that."""
ON_ITS_WAY_MS = 20
"""How long packets are still counted after sending was ended early."""
STRETCH_S = 0.05
"""How far sending may fall behind and catch up. The server's own bound is 0.1 ms: what is later it shifts, and the rate
falls without a word."""
LIBRARY = ("automation", "trex_control_plane", "interactive")
ERRORS = ("out_of_order", "dup", "seq_too_high", "seq_too_low")


class TrexSession:
    """A connection to the server, with all its ports."""

    def __init__(self, order: "dict[str, Any]") -> None:
        # Here and not above: the folder comes with the order.
        sys.path.insert(0, os.path.join(order["directory"], *LIBRARY))  # noqa: PTH118 - as plain as its Python
        self.api = api = importlib.import_module("trex.stl.api")
        self.ports = list(range(order["ports"]))
        self.client = api.STLClient(server="127.0.0.1", verbose_level="error")
        _connect(self.client, api.TRexError, order["within_s"])
        self.client.reset(ports=self.ports)
        # In seconds, whatever the library's text says. It holds until the server ends.
        self.client.set_global_cfg({"sched_max_stretch": STRETCH_S})
        self.system = self.client.get_server_system_info()
        rows = self.system["ports"]
        if len(rows) != len(self.ports):
            raise RuntimeError(f"the server has {len(rows)} ports instead of {len(self.ports)}")
        able = [row["index"] for row in rows if row.get("is_prom_supported")]
        if able:
            # Packets come back to addresses that need not be those of the ports.
            self.client.set_port_attr(ports=able, promiscuous=True)
        _wait_for_links(self.client, rows, order["links_within_s"])

    def opened(self) -> "dict[str, Any]":
        """What the server is."""
        rows = self.system["ports"]
        return {
            "version": str(self.client.get_server_version()["version"]),
            "python": platform.python_version(),
            "drivers": sorted({str(row["driver"]) for row in rows}),
            "counters": min(int(row["rx"]["counters"]) for row in rows),
        }

    def stream(self, spec: "dict[str, Any]") -> Any:  # noqa: ANN401 - of the library, which has no types
        """A stream of the library, from one of ours."""
        api, vary = self.api, spec["vary"]
        program = None
        if vary:
            last = vary["first"] + vary["count"] - 1
            operation = {"increment": "inc", "random": "random"}[vary["order"]]
            program = api.STLScVmRaw(
                [
                    api.STLVmFlowVar("v", min_value=vary["first"], max_value=last, size=4, op=operation),
                    api.STLVmWrFlowVar(fv_name="v", pkt_offset=vary["offset"]),
                    api.STLVmFixIpv4(offset=vary["checksum_offset"]),
                ],
                # Made once and sent again and again. A probe is written anew each time.
                cache_size=None if spec["probe"] else vary["count"],
            )
        statistics = api.STLFlowLatencyStats if spec["probe"] else api.STLFlowStats
        return api.STLStream(
            packet=api.STLPktBuilder(pkt_buffer=bytes.fromhex(spec["frame"]), vm=program),
            mode=api.STLTXCont(pps=spec["pps"]),
            isg=spec["start_us"],
            flow_stats=statistics(pg_id=spec["group"]),
            # Else every packet gets those of the port, although several flows with other addresses may leave there.
            mac_src_override_by_pkt=True,
            mac_dst_override_mode=api.STLStreamDstMAC_PKT,
        )

    def counts(self, groups: "list[int]") -> "tuple[dict[int, int], dict[int, int]]":
        """Packets sent and received by group, since the trial began."""
        rows = self.client.get_pgid_stats(groups)["flow_stats"] if groups else {}
        sent = {group: int(rows[group]["tx_pkts"]["total"]) for group in groups}
        return sent, {group: int(rows[group]["rx_pkts"]["total"]) for group in groups}


class TrexTrial:
    """One trial, from its order to its report."""

    def __init__(self, session: TrexSession, order: "dict[str, Any]") -> None:
        self._session = session
        self._client = session.client
        self._order = order
        specs = order["streams"]
        self._used = sorted({spec["port"] for spec in specs})
        self._groups = sorted({spec["group"] for spec in specs})
        self._load = sorted({spec["group"] for spec in specs if not spec["probe"]})
        self._probes = sorted({spec["group"] for spec in specs if spec["probe"]})
        self._expected = dict.fromkeys(self._groups, 0)
        for spec in specs:
            paced_s = max(0.0, order["duration_s"] - spec["start_us"] / 1e6)
            # At least that many: the server sends one more or not.
            self._expected[spec["group"]] += int(spec["pps"] * paced_s * (1 - 1e-9))
        self._finished = True
        self._aborted = False
        self._settled = True
        self._sending_s = 0.0

    def run(self) -> "dict[str, Any]":
        client, session = self._client, self._session
        # Streams are made anew for each trial: then the server's own counts begin anew as well, those of latency too,
        # which cannot be cleared otherwise.
        client.remove_all_streams(ports=session.ports)
        for port in self._used:
            rows = [session.stream(spec) for spec in self._order["streams"] if spec["port"] == port]
            client.add_streams(rows, ports=[port])
        # Of ports; those of streams begin anew, and each question to the server takes a millisecond.
        client.clear_stats(clear_flow_stats=False, clear_latency_stats=False, clear_xstats=False)
        if self._used:
            client.start(ports=self._used, duration=self._order["duration_s"], force=True)
            self._send(time.monotonic())
            self._settle()
            client.stop(ports=self._used, rx_delay_ms=0)
        return self._report()

    def _send(self, started: float) -> None:
        """Wait until all has been sent, or sending is to be ended."""
        duration_s, most_lost = self._order["duration_s"], self._order["most_lost"]
        least_s = 0.0
        sent_before = dict.fromkeys(self._load, 0)
        look = started + LOOK_S
        while True:
            now = time.monotonic()
            if now < started + duration_s:
                # Towards the end nothing is to be gained.
                watched = most_lost is not None and look < started + duration_s - LOOK_S
                time.sleep(max(0.0, (look if watched else started + duration_s) - now))
                if watched:
                    look += LOOK_S
                    sent, received = self._session.counts(self._load)
                    lost = sum(max(0, sent_before[group] - received[group]) for group in self._load)
                    sent_before = sent
                    if lost > most_lost:
                        self._sending_s = time.monotonic() - started
                        self._aborted = True
                        self._end()
                        return
                continue
            sent, _ = self._session.counts(self._groups)
            if all(sent[group] >= self._expected[group] for group in self._groups):
                break
            if not self._client.is_traffic_active(ports=self._used):
                # It has ended and not sent everything, or has sent the rest since.
                sent, _ = self._session.counts(self._groups)
                self._finished = all(sent[group] >= self._expected[group] for group in self._groups)
                break
            least_s = now - started
            if least_s > self._order["most_s"]:
                self._finished = False
                self._end()
                break
            time.sleep(POLL_S)
        self._sending_s = max(duration_s, least_s)

    def _end(self) -> None:
        """Stop sending, and count for a little longer what is on its way."""
        self._client.stop(ports=self._used, rx_delay_ms=ON_ITS_WAY_MS)

    def _settle(self) -> None:
        """Wait until nothing is sent any more, and all that was sent has come back or no more comes."""
        deadline = time.monotonic() + END_S
        while self._client.is_traffic_active(ports=self._used) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        sent, received = self._session.counts(self._groups)
        # More than was sent are late ones of an earlier trial: others may follow.
        if received == sent:
            return
        began = changed = time.monotonic()
        last = self._arrived()
        while time.monotonic() - changed < QUIET_S:
            if time.monotonic() - began >= SETTLE_S:
                self._settled = False
                return
            time.sleep(POLL_S)
            seen = self._arrived()
            if seen != last:
                changed, last = time.monotonic(), seen

    def _arrived(self) -> int:
        """Packets that have come to any port.

        Of groups as well that are not counted any more: the next trial would take them for its own.
        """
        rows = self._client.get_stats()
        return sum(int(rows[port]["ipackets"]) for port in self._session.ports)

    def _report(self) -> "dict[str, Any]":
        rows = self._client.get_stats()
        sent, received = self._session.counts(self._groups)
        return {
            "sending_s": self._sending_s,
            "finished": self._finished,
            "aborted": self._aborted,
            "settled": self._settled,
            "groups": [
                {"group": group, "sent": max(0, sent[group]), "received": max(0, received[group])}
                for group in self._groups
            ],
            "ports": [
                {
                    "send_errors": max(0, int(rows[port]["oerrors"])),
                    "receive_errors": max(0, int(rows[port]["ierrors"])),
                }
                for port in self._session.ports
            ],
            "latency": [_latency(group, rows["latency"][group]) for group in self._probes],
            "queue_full": max(0, int(rows["global"]["queue_full"])),
            "cpu_percent": float(rows["global"]["cpu_util"]),
        }


def _connect(client: Any, refusal: Any, within_s: float) -> None:  # noqa: ANN401 - of the library
    """Connect to a server, which may not answer yet."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            client.connect()
            return
        except refusal:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _wait_for_links(client: Any, rows: "list[dict[str, Any]]", within_s: float) -> None:  # noqa: ANN401 - as above
    """Wait until all ports of NICs have a link: what is sent before counts as sent, and is lost.

    Ports of the kernel had theirs before the server started.
    """
    left = [row["index"] for row in rows if row["driver"] != AF_PACKET]
    deadline = time.monotonic() + within_s
    while True:
        left = [port for port in left if client.get_port_attr(port)["link"] == "DOWN"]
        if not left:
            return
        if time.monotonic() > deadline:
            ports = ", ".join(map(str, left))
            raise RuntimeError(f"no link after {within_s:.0f} s on ports {ports} of {len(rows)}, counted from 0")
        time.sleep(LINKS_POLL_S)


def _latency(group: int, row: "dict[str, Any]") -> "dict[str, Any]":
    values = row["latency"]
    return {
        "group": group,
        "histogram": values.get("hdrh"),
        "buckets": {str(bound): int(count) for bound, count in values["histogram"].items()},
        "errors": {name: max(0, int(row["err_cntrs"].get(name, 0))) for name in ERRORS},
    }


def main() -> None:
    """Serve one driver."""
    # The client's signal for a lost server, which background processes inherit as ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    answers = os.fdopen(os.dup(1), "w")
    # The library may print: that is for the log.
    os.dup2(2, 1)
    session: TrexSession | None = None
    while True:
        line = sys.stdin.readline()
        if not line.endswith("\n"):
            break
        order = json.loads(line)
        try:
            if order["do"] == "open":
                session = TrexSession(order)
                answer = session.opened()
            elif session is not None:
                answer = TrexTrial(session, order).run()
            else:
                answer = {"error": "there is no server yet"}
        except KeyboardInterrupt:
            # The library interrupts this thread when it has lost the server.
            answer = {"error": "the connection to the server is lost"}
        except Exception as error:  # a process boundary: the driver reports it
            text = " ".join(str(error).split())
            answer = {"error": f"{type(error).__name__}: {text}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
