"""A stand-in for the module `trex.stl.api`, put where TRex's library would be: `install` in `stand_in.py` copies it.

It behaves as a server in software mode was seen to: counts grow with the time since the start, a stream sends its rate
times the duration and perhaps one more, counts of streams begin anew when the streams are made anew. What goes wrong
is said by `scenario.json` beside it; what it was asked is written to `calls.jsonl`. Seconds pass only while the client
sleeps: what it reports does not depend on when it gets a CPU.
"""

import json
import signal
import time
from pathlib import Path
from typing import Any


class _Clock:
    now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds + 1e-6  # a sleep to a given moment ends after it, whatever the rounding


_CLOCK = _Clock()
time.monotonic, time.sleep = _CLOCK.monotonic, _CLOCK.sleep  # type: ignore[misc] # of this process, for its whole life
_HERE = Path(__file__).parent
_SCENARIO = json.loads((_HERE / "scenario.json").read_text())


def _note(call: str, **arguments: object) -> None:
    with (_HERE / "calls.jsonl").open("a") as file:
        file.write(json.dumps({"call": call, **arguments}) + "\n")


STLStreamDstMAC_PKT = 1


class TRexError(Exception):
    """Of the library."""


class _Record:
    """Keeps what it was made of."""

    pg_id: int

    def __init__(self, *positional: Any, **named: Any) -> None:
        self.positional = positional
        self.__dict__.update(named)

    def plain(self) -> dict[str, Any]:
        named = {name: _plain(value) for name, value in self.__dict__.items() if name != "positional"}
        return {"kind": type(self).__name__, **named, **({"of": _plain(self.positional)} if self.positional else {})}


def _plain(value: Any) -> Any:
    if isinstance(value, _Record):
        return value.plain()
    if isinstance(value, bytes):
        return value.hex()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


class STLFlowLatencyStats(_Record):
    """Counting, and time stamps."""


for _name in (
    *("STLStream", "STLPktBuilder", "STLTXCont", "STLFlowStats"),
    *("STLScVmRaw", "STLVmFlowVar", "STLVmWrFlowVar", "STLVmFixIpv4"),
):
    globals()[_name] = type(_name, (_Record,), {})


class STLClient:
    """One connection."""

    def __init__(self, **arguments: object) -> None:
        _note("STLClient", **arguments)
        print("the library may print what it likes")
        self._refusals = _SCENARIO.get("refusals", 0)
        self._streams: dict[int, list[Any]] = {}
        self._started_s: float | None = None
        self._duration_s = 0.0
        self._stopped_s: float | None = None
        self._ports = 2
        self._looks = 0

    def connect(self) -> None:
        if self._refusals:
            self._refusals -= 1
            raise TRexError("*** [RPC] - failed to get response")
        _note("connect")

    def reset(self, ports: list[int]) -> None:
        _note("reset", ports=ports)

    def set_global_cfg(self, params: dict[str, float]) -> None:
        _note("set_global_cfg", **params)

    def set_port_attr(self, ports: list[int], promiscuous: bool) -> None:
        _note("set_port_attr", ports=ports, promiscuous=promiscuous)

    def get_port_attr(self, port: int) -> dict[str, str]:
        _note("get_port_attr", port=port)
        self._looks += 1
        return {"link": "DOWN" if port and self._looks <= _SCENARIO.get("looks_without_link", 0) else "UP"}

    def get_server_version(self) -> dict[str, str]:
        return {"version": "v3.08", "mode": "STL"}

    def get_server_system_info(self) -> dict[str, Any]:
        driver, rx = _SCENARIO.get("driver", "net_af_packet"), {"caps": ["flow_stats", "latency"], "counters": 1023}
        common = {"driver": driver, "is_prom_supported": True, "is_virtual": True, "rx": rx}
        rows = [{"index": index, **common} for index in range(_SCENARIO.get("ports", 2))]
        return {"port_count": len(rows), "ports": rows}

    def remove_all_streams(self, ports: list[int]) -> None:
        _note("remove_all_streams", ports=ports)
        self._streams = {}
        self._started_s = self._stopped_s = None

    def add_streams(self, streams: list[Any], ports: list[int]) -> None:
        _note("add_streams", ports=ports, streams=[stream.plain() for stream in streams])
        self._streams[ports[0]] = streams

    def clear_stats(self, **what: bool) -> None:
        _note("clear_stats", **what)

    def start(self, ports: list[int], duration: float, force: bool) -> None:
        _note("start", ports=ports, duration=duration, force=force)
        if _SCENARIO.get("dies"):
            signal.raise_signal(signal.SIGTERM)
        self._started_s = time.monotonic()
        self._duration_s = duration

    def stop(self, ports: list[int], rx_delay_ms: int) -> None:
        _note("stop", ports=ports, rx_delay_ms=rx_delay_ms)
        if self._stopped_s is None:
            self._stopped_s = time.monotonic()

    def is_traffic_active(self, ports: list[int]) -> set[int]:
        return set(ports) if self._progress() < 1.0 and self._stopped_s is None else set()

    def _progress(self) -> float:
        """Share of the trial that has been sent."""
        if self._started_s is None:
            return 0.0
        now = time.monotonic() if self._stopped_s is None else self._stopped_s
        stretch = float(_SCENARIO.get("stretch", 1.0))
        return min(1.0, (now - self._started_s) / (self._duration_s * stretch))

    def _sent(self, stream: Any) -> int:
        full = int(stream.mode.pps * self._duration_s * (1 - stream.isg / 1e6 / self._duration_s) + 1e-6)
        full = max(0, full + _SCENARIO.get("one_more", 0))
        return int(full * self._progress())

    def get_pgid_stats(self, pgid_list: list[int]) -> dict[str, Any]:
        _note("get_pgid_stats", groups=pgid_list)
        counts: dict[Any, Any] = {"global": {"rx_err": {}, "tx_err": {}}}
        for stream in (stream for row in self._streams.values() for stream in row):
            nothing = {"tx_pkts": {"total": 0}, "rx_pkts": {"total": 0}, "rx_bps": {"total": 0.0}}
            row = counts.setdefault(stream.flow_stats.pg_id, nothing)
            sent = self._sent(stream)
            row["tx_pkts"]["total"] += sent
            row["rx_pkts"]["total"] += int(sent * _SCENARIO.get("forwarded", 1.0))
        return {"flow_stats": counts}

    def get_stats(self) -> dict[Any, Any]:
        _note("get_stats")
        streams = [stream for row in self._streams.values() for stream in row]
        probes = [each.flow_stats.pg_id for each in streams if isinstance(each.flow_stats, STLFlowLatencyStats)]
        latency = {"histogram": _SCENARIO.get("histogram", {}), "total_max": 0, "total_min": 363, "average": 497.0}
        errors = dict.fromkeys(("dropped", "out_of_order", "dup", "seq_too_high", "seq_too_low"), 0)
        port = {"opackets": 1, "ipackets": 1, "oerrors": 0, "ierrors": _SCENARIO.get("ierrors", 0)}
        return {
            **{index: dict(port) for index in range(_SCENARIO.get("ports", 2))},
            "global": {"queue_full": _SCENARIO.get("queue_full", 0), "cpu_util": _SCENARIO.get("cpu", 12.5)},
            "flow_stats": {},
            "latency": {group: {"latency": latency, "err_cntrs": errors} for group in probes},
        }
