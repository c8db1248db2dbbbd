"""FD.io CSIT's result files (`*.info.json`, model 1.5.1), the input of its dashboard C-Dash.

Names have the parts that the dashboard parses: `tests.vpp.perf.AREA.SUITE.TEST`, with the suite
`2n-NIC-[DRIVER-]SUITE_ID-TYPE` and the test `FRAME-CORES-[DRIVER-]SUITE_ID-TYPE`. Rates are aggregates of both
directions, bandwidths L1, latencies microseconds. A rate that was found is the one that was forwarded (conditional
throughput), as in CSIT's model since 1.5. A test with figures that the model does not cover has the result type
`unknown`.
"""

import base64
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean, pstdev
from typing import Any

from csit_utils.analysis.latency import merge, rescaled
from csit_utils.dataset.measures import Measure
from resources.libraries.python.driver_registry import generators
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.measurements.trial import Direction, FlowLatency
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.request.goal import GoalResult
from resources.libraries.python.model.result import LatencyAtLoad, l1_bps
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.search.profiles import SOAK_GOAL
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.density.planning.tags import nic_driver, short_model

MODEL_VERSION = "1.5.1"
_NIC_CODES = {
    "Intel-X710": "10ge2p1x710",
    "Intel-XL710": "40ge2p1xl710",
    "Intel-XXV710": "25ge2p1xxv710",
    "Intel-E810XXV": "25ge2p1e810xxv",
    "Intel-E822CQ": "25ge2p1e822cq",
    "Intel-E823C": "25ge2p1e823c",
    "Intel-E810CQ": "100ge2p1e810cq",
    "Amazon-Nitro-50G": "50ge1p1ena",
    "Amazon-Nitro-100G": "100ge1p1ena",
    "Amazon-Nitro-200G": "200ge1p1ena",
    "Mellanox-CX556A": "100ge2p1cx556a",
    "Mellanox-CX6DX": "100ge2p1cx6dx",
    "Mellanox-CX7VEAT": "200ge2p1cx7veat",
    "Cavium-A063-100G": "100ge2p1a063",
}
"""CSIT's codes of NICs in names of suites; other models have their name without the vendor."""
_DRIVER_PREFIXES = {"vfio-pci": "", "rdma-core": "rdma-", "mlx5_core": "mlx5-", "af_xdp": "af-xdp-"}
"""Of suite ids; CSIT's default has none, and others are called as they are."""
_LOADS = {"PDR0": "pdr_0", "PDR10": "pdr_10", "PDR50": "pdr_50", "PDR90": "pdr_90"}
_DIRECTIONS = {"latency_forward": Direction.FORWARD, "latency_reverse": Direction.REVERSE}
_LONGEST_US = 60_000_000
_NS_PER_US = 1000
_UNKNOWN = {"type": "unknown"}


@dataclass(frozen=True, slots=True)
class InfoFile:
    """One file: its path in the tree of suites, and what is in it."""

    path: tuple[str, ...]
    """Folders and file name, such as (`tests`, `vpp`, …, `64b-1c-….info.json`)."""
    content: dict[str, Any]


def info_file(result: DensityRecord, figures: Sequence[tuple[Measure, float]] = ()) -> InfoFile | None:
    """Return the file of a test; None for a latency test, since CSIT's model has no such type without NDR.

    `figures`: those that CSIT's model has no place for.
    """
    if result.asked.test_type is TestType.LATENCY:
        return None
    names = _names(result)
    found, missing = _figures(result)
    passed = result.passed and not missing
    message = "" if passed else result.message or missing or "failed"
    content = {
        "version": MODEL_VERSION,
        "test_id": ".".join((*names.suite, names.test)),
        "test_name_long": names.long,
        "test_name_short": names.short,
        "test_type": names.test_type,
        "test_documentation": "",
        "tags": [*result.tags, *(f"VERDICT_{kind.upper().replace('-', '_')}" for kind in result.verdict.kinds)],
        "start_time": result.started_at,
        "end_time": result.finished_at,
        "duration": _seconds(result.started_at, result.finished_at),
        "passed": passed,
        "message": message,
        "hosts": list(_hosts(result)),
        "dut_type": names.dut,
        "dut_version": _version(result, "vswitch"),
        "tg_type": _generator(result),
        "tg_version": _version(result, "generator"),
        "telemetry": _telemetry(figures, result),
        "result": found,
    }
    return InfoFile((*names.suite, f"{names.test}.info.json"), content)


def suite_files(tests: Iterable[InfoFile]) -> Iterator[InfoFile]:
    """A file for each folder of tests and for the whole tree, from the start of its first test to the end of its last.

    The dashboard takes the time of a build from that of the tree, `tests/suite.info.json`.
    """
    members: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for test in tests:
        for folder in (test.path[:1], test.path[:-1]):
            members.setdefault(folder, []).append(test.content)
    for folder, contents in members.items():
        start = min((each["start_time"] for each in contents), key=datetime.fromisoformat)
        end = max((each["end_time"] for each in contents), key=datetime.fromisoformat)
        content = {
            "version": MODEL_VERSION,
            "suite_id": ".".join(folder),
            "suite_documentation": "",
            "start_time": start,
            "end_time": end,
            "duration": _seconds(start, end),
            "hosts": sorted({host for each in contents for host in each["hosts"]}),
            "telemetry": [],
        }
        yield InfoFile((*folder, "suite.info.json"), content)


# -- names ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Names:
    suite: tuple[str, ...]
    test: str
    long: str
    short: str
    test_type: str
    dut: str


def _names(result: DensityRecord) -> _Names:
    cell, plan = result.cell, result.plan
    nic = _nic(result)
    driver = nic_driver(nic, result.drivers.get("vswitch", "")) if nic else None
    prefix = "" if driver is None else _DRIVER_PREFIXES.get(driver, f"{driver}-")
    test_type = "soak" if _is_soak(result) else result.asked.test_type.value.lower()
    suite_id = plan.suite_id if plan else f"{cell.service_type}-{cell.locator}"
    short = _word(f"{prefix}{suite_id}")
    frame, cores = _word(result.asked.frame.name), f"{cell.vs_dtc}c"
    threads = f"{len(plan.cores.cpus(VSWITCH))}t" if plan else ""
    code, model = _nic_words(nic, result)
    dut = _word(result.drivers.get("vswitch", "none"))
    nodes = len(set(plan.machines.values())) if plan and plan.machines else 2
    folder = ("tests", dut, "perf", "nfv_density", *_area(result), f"{nodes}n-{code}-{short}-{test_type}")
    return _Names(
        suite=folder,
        test=f"{frame}-{cores}-{short}-{test_type}",
        long=f"{model}-{frame}-{threads}{cores}-{short}",
        short=short,
        test_type=test_type,
        dut=dut,
    )


def _word(text: str) -> str:
    """Lower case, without what separates parts of names or folders."""
    return re.sub(r"[^a-z0-9_+-]", "_", text.lower())[:180] or "none"


def _nic(result: DensityRecord) -> Nic | None:
    """The port of the first DUT at the first cable; the generator is end `a` of each."""
    cables = (link for link in (result.plan.links if result.plan else ()) if link.medium is Medium.CABLE)
    first = next(cables, None)
    return first.b.nic if first else None


def _nic_words(nic: Nic | None, result: DensityRecord) -> tuple[str, str]:
    """Code and short name of a NIC; without one, what is in its place."""
    if nic is None:
        word = "simulated" if result.simulated else "veth"
        return word, word
    model = _word(short_model(nic.model or "nic"))
    return _NIC_CODES.get(nic.model or "", model), model


def _area(result: DensityRecord) -> tuple[str, str]:
    """Where CSIT's tree has such services: `dcr_memif` and `chain`."""
    if result.cell.service_type is ServiceType.VSC:
        return "vm_vhost", "chain"
    media = {link.medium for link in result.plan.links} if result.plan else set()
    container = "dcr_memif" if Medium.MEMIF in media or result.simulated else "dcr_veth"
    return container, "pipeline" if result.cell.service_type.is_pipeline else "chain"


def _hosts(result: DensityRecord) -> Sequence[str]:
    if result.simulated:
        return ("simulated",)
    nodes = (node.hostname for node in result.environment.nodes.values())
    return sorted({result.environment.hostname, *nodes})


def _generator(result: DensityRecord) -> str:
    """Kind of traffic generator; ways of sending of one product are one."""
    name = result.drivers.get("generator", "none")
    known = generators().get(name)
    return known.suite_word if known is not None and known.suite_word is not None else _word(name)


def _version(result: DensityRecord, role: str) -> str:
    """Version that a part reports; of the Linux bridge the kernel's, of our own parts our revision."""
    version = result.facts.get(role, {}).get(role)
    own = result.environment.git_revision or result.environment.program_version or "unknown"
    return version or (own if result.simulated or role == "generator" else result.environment.kernel)


def _seconds(start: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def _telemetry(figures: Sequence[tuple[Measure, float]], result: DensityRecord) -> list[str]:
    """Figures, and costs by node, as text of Prometheus, packed as CSIT packs it."""
    lines = [f'{re.sub("[^a-z0-9]", "_", name.lower())}{{unit="{name.unit}"}} {value!r}\n' for name, value in figures]
    lines += [
        f"{_word(result.drivers.get('vswitch', 'none'))}_runtime_{name}{{{_labels(result, cost)}}} {float(value)!r}\n"
        for cost in (result.costs.nodes if result.costs else ())
        for name, value in _runtime(cost).items()
        if value is not None
    ]
    return [base64.b64encode(zlib.compress("".join(lines).encode())).decode()] if lines else []


def _runtime(cost: NodeCost) -> Mapping[str, float | None]:
    """Metrics as CSIT's telemetry of `show runtime` names them; a sampled time per packet is none of VPP's."""
    calls = {"calls": cost.calls, "vectors": cost.packets}
    if cost.unit == "ns":
        return {"ns": cost.cost}
    return {**calls, "clocks": cost.cost, "vectors_calls": cost.packets / cost.calls if cost.calls else None}


def _labels(result: DensityRecord, cost: NodeCost) -> str:
    found = {"host": ",".join(_hosts(result)), "load": result.costs.load if result.costs else "", "name": cost.node}
    found |= {"part": cost.part, "thread_name": cost.thread}
    escaped = ((name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in found.items())
    return ",".join(f'{name}="{value}"' for name, value in escaped)


# -- figures --------------------------------------------------------------------------------------------------------


def _figures(result: DensityRecord) -> tuple[dict[str, Any], str]:
    """The result, and why a test that passed here has none there."""
    if result.asked.test_type is TestType.MRR:
        return _mrr(result)
    if _is_soak(result) and result.soak is None:
        return dict(_UNKNOWN), "no critical load was found"
    goals = {"SOAK": result.soak} if result.soak else {"NDR": result.ndr, "PDR": result.pdr}
    rates = {name: _rate(result, goal) for name, goal in goals.items() if goal is not None}
    without = [name for name in goals if rates.get(name) is None]
    if without:
        return dict(_UNKNOWN), f"{' and '.join(without)}: no load was low enough"
    if result.soak:
        critical = {"lower": rates["SOAK"]}
        if result.soak.upper_pps is not None:
            critical["upper"] = _with_bandwidth(result, result.soak.upper_pps)
        return {"type": "soak", "critical_rate": critical}, ""
    found = {name.lower(): {"lower": rate} for name, rate in rates.items()}
    return {"type": "ndrpdr", **found, **_latencies(result.latency)}, ""


def _is_soak(result: DensityRecord) -> bool:
    """Whether the load of a small mean loss ratio was asked for."""
    return result.soak is not None or any(goal.name == SOAK_GOAL for goal in result.asked.profile.goals)


def _mrr(result: DensityRecord) -> tuple[dict[str, Any], str]:
    if result.mrr is None or not result.mrr.receive_rates_pps:
        return dict(_UNKNOWN), "no rate was received"
    rates = result.mrr.receive_rates_pps
    bits = [l1_bps(each, result.asked.frame) for each in rates]
    return {"type": "mrr", "receive_rate": {"rate": _listed(rates, "pps"), "bandwidth": _listed(bits, "bps")}}, ""


def _listed(values: Sequence[float], unit: str) -> dict[str, Any]:
    """With mean and deviation as CSIT's jumpavg has them: that of the values, not an estimate from a sample."""
    return {"values": list(values), "avg": fmean(values), "stdev": pstdev(values), "unit": unit}


def _rate(result: DensityRecord, goal: GoalResult) -> dict[str, Any] | None:
    """Conditional throughput, else the highest load that met the goal."""
    pps = goal.lower_pps if result.soak or goal.throughput_pps is None else goal.throughput_pps
    return None if goal.lower_pps is None or pps is None else _with_bandwidth(result, pps)


def _with_bandwidth(result: DensityRecord, pps: float) -> dict[str, Any]:
    bits = l1_bps(pps, result.asked.frame)
    return {"rate": {"value": pps, "unit": "pps"}, "bandwidth": {"value": bits, "unit": "bps"}}


def _latencies(measured: Sequence[LatencyAtLoad]) -> dict[str, Any]:
    """By direction and load; a direction that lacks one load is left out, as CSIT does."""
    found: dict[str, Any] = {}
    for key, direction in _DIRECTIONS.items():
        at = {
            _LOADS[each.label]: _latency([flow for flow in each.flows if flow.direction is direction])
            for each in measured
            if each.label in _LOADS
        }
        if len(at) == len(_LOADS) and all(at.values()):
            found[key] = at
    return found


def _latency(flows: Sequence[FlowLatency]) -> dict[str, Any] | None:
    """All instances together, in microseconds; None without a histogram, or where all took less than half of one."""
    merged = merge(flow.histogram for flow in flows if flow.histogram)
    histogram = rescaled(merged, lambda value_ns: round(value_ns / _NS_PER_US), _LONGEST_US) if merged else None
    known = [flow for flow in flows if flow.mean_ns is not None and flow.received]
    low, high = _us(flow.min_ns for flow in flows), _us(flow.max_ns for flow in flows)
    if histogram is None or not known or not low or not high or high[-1] < 1:
        return None
    mean_ns = sum((flow.mean_ns or 0.0) * flow.received for flow in known) / sum(flow.received for flow in known)
    return {
        "min": low[0],
        "avg": round(mean_ns / _NS_PER_US),
        "max": high[-1],
        "hdrh": histogram.encode().decode(),
        "unit": "us",
    }


def _us(values_ns: Iterable[int | None]) -> list[int]:
    return sorted(round(value / _NS_PER_US) for value in values_ns if value is not None)
