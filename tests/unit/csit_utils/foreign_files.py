"""Result files of other tools, built from what their schema and sources say. All figures are made up."""

import json
from typing import Any

from hdrh.histogram import HdrHistogram

Json = dict[str, Any]


def histogram_us(*values_us: int) -> str:
    """A histogram of microseconds, as TRex encodes it."""
    made = HdrHistogram(1, 60_000_000, 3)
    for value in values_us:
        made.record_value(value)
    return str(made.encode().decode())


def csit(result: Json, **changes: Any) -> Json:
    """A density test of FD.io CSIT: 4 instances of 2 NFs of a core each, 64 B."""
    short = "eth-l2bd-4ch-16mif-8dcr2t-vppip4"
    return {
        "version": "1.5.1", "start_time": "2024-03-02T21:10:05.250000Z", "end_time": "2024-03-02T21:12:15.500000Z",
        "duration": 130.25, "dut_type": "vpp", "dut_version": "24.06-rc0~11-gabcdef123", "tg_type": "trex",
        "tg_version": "3.03", "hosts": ["10.30.51.71", "10.30.51.70"], "message": "", "passed": True,
        "tags": [
            *("2_NODE_SINGLE_LINK_TOPO", "NDRPDR", "NIC_Intel-X710", "MEMIF", "DOCKER", "4R2C", "NF_DENSITY", "CHAIN"),
            *("NF_VPPIP4", "8DCR2T", "DRV_VFIO_PCI", "64B", "1C", "2T1C", short),
        ],
        "test_documentation": "", "test_name_long": f"x710-64b-2t1c-{short}", "test_name_short": short,
        "test_id": (
            f"tests.vpp.perf.nfv_density.dcr_memif.chain.2n-10ge2p1x710-{short}-ndrpdr.64b-1c-{short}-ndrpdr"
        ),
        "test_type": "ndrpdr", "telemetry": [], "result": result, **changes,
    }  # fmt: skip


def pps(value: float) -> Json:
    """A rate with its bandwidth at 64 B."""
    return {"rate": {"unit": "pps", "value": value}, "bandwidth": {"unit": "bps", "value": value * 672}}


def csit_ndrpdr(**changes: Any) -> Json:
    """NDR and PDR with latency in both directions."""
    load = {"min": 5, "avg": 12, "max": 90, "hdrh": histogram_us(5, *[10] * 97, 40, 90), "unit": "us"}
    loads: Json = {f"pdr_{percent}": load for percent in (0, 10, 50, 90)}
    found = {"ndr": {"lower": pps(3_300_000.0)}, "pdr": {"lower": pps(3_450_000.5)}}
    return {"type": "ndrpdr", **found, "latency_forward": loads, "latency_reverse": loads, **changes}


def csit_mrr() -> Json:
    """Three trials."""
    rate: Json = {"unit": "pps", "values": [4e6, 4.1e6, 4.2e6], "avg": 4.1e6, "stdev": 8.2e4}
    return {"type": "mrr", "receive_rate": {"rate": rate}}


def csit_soak() -> Json:
    """A critical rate between two bounds."""
    return {"type": "soak", "critical_rate": {"lower": pps(3.1e6), "upper": pps(3.2e6)}}


def csit_unmeasured() -> Json:
    """A test whose latency was not measured in one direction."""
    load = {"min": -1, "avg": -1, "max": -1, "hdrh": "", "unit": "us"}
    return csit(csit_ndrpdr(latency_reverse={"pdr_50": load}))


def plain(**changes: Any) -> Json:
    """A test without NFs."""
    return csit(
        csit_mrr(), test_type="mrr", test_name_long="e810cq-imix-4t2c-avf-eth-l2xcbase",
        tags=["MRR", "NIC_Intel-E810CQ", "DRV_AVF", "ETH", "L2XCFWD", "IMIX", "2C", "4T2C", "eth-l2xcbase"],
        test_id="tests.vpp.perf.l2.2n1l-100ge2p1e810cq-avf-eth-l2xcbase-mrr.imix-2c-avf-eth-l2xcbase-mrr",
        test_name_short="avf-eth-l2xcbase", **changes,
    )  # fmt: skip


def at_load(rate_pps: float, rate_percent: float, drops: float) -> Json:
    """What NFVbench found for one target, both directions together."""
    port = {"tx_pkts": 10, "rx_pkts": 10, "drop_percentage": drops, "drop_pct": 0, "avg_delay_usec": 20}
    overall: Json = {**port, "avg_delay_usec": 25.5, "min_delay_usec": 10, "max_delay_usec": 80}
    overall |= {"hdrh": histogram_us(10, 20, 30, 80), "lat_percentile": {"25": 20, "75": 30, "99": 80}}
    return {
        "l2frame_size": "64", "duration_sec": 60.0, "initial_rate_type": "rate_percent", "rate_percent": rate_percent,
        "rate_pps": rate_pps, "rate_bps": rate_pps * 672.0, "load_percent_per_direction": rate_percent / 2,
        "stats": {"0": port, "1": port, "overall": overall, "total_tx_rate": rate_pps}, "timestamp_sec": 1.0,
        "time_taken_sec": 300.0,
    }  # fmt: skip


def trials(*pairs: tuple[float, float]) -> Json:
    """Loads of a search with the drops in percent."""
    usual = {"tx_pkts": 1, "rx_pkts": 1, "drop_pct": 0}
    return {"ndr_pdr": [usual | {"tx_pps": load, "rx_pps": load, "drop_percentage": drops} for load, drops in pairs]}


def searched() -> Json:
    """NDR at 10 %, PDR at 12.5 % of 10 Gbit/s line rate (14.88 Mpps for 64 B) in each direction."""
    tried = ((29_761_904, 60.0), (3_000_000, 0.02), (2_976_190, 0.0005), (3_720_238, 0.09), (3_740_000, 0.2))
    ndr, pdr = at_load(2_976_190, 20.0, 0.0005), at_load(3_720_238, 25.0, 0.09)
    return {"ndr": ndr, "pdr": pdr, "iteration_stats": trials(*tried)}


def not_reached(warning: object = 0) -> Json:
    """A search without a load that was low enough: NFVbench writes zeros for all it knows of the goal."""
    told = {"ndr": at_load(0, 0, 0), "iteration_stats": trials((29_761_904, 60.0), (29_000, 2.0))}
    told["ndr"]["stats"]["warning"] = warning
    return told


def fixed(percent: float) -> Json:
    """A trial of two chains at one load, in percent of line rate of both directions together."""

    def rate(share: float) -> Json:
        return {"rate_pps": percent * share * 148_809, "rate_percent": percent * share, "rate_bps": 1e9}

    run = {"direction-total": {"orig": rate(1.0), "tx": rate(0.99), "rx": rate(0.4)}}
    chain = {"packets": [100, 99], "lat_min_usec": 10, "lat_avg_usec": 20, "lat_max_usec": 30}
    path = {"interfaces": ["Port0", "Port1"], "chains": {"0": chain, "1": chain, "total": chain}}
    stats = {"overall": {"drop_rate_percent": 59.0, "rx": {"avg_delay_usec": 20}, "tx": {}}}
    return {"run_config": run, "stats": stats, "packet_path_stats": {"Forward": path, "Reverse": path}}


def nfvbench(sizes: Json, chain: str = "PVVP", count: int = 3, generator: str = "TRex", **config: Any) -> Json:
    """A run."""
    told = {
        "flow_count": 10000, "service_chain_count": count, "bidirectional": True, "profile": "custom_traffic_profile",
        "compute_nodes": {"nova:compute-4": {"bios_settings": {"Altitude": "300 M"}}}, "result": sizes,
    }  # fmt: skip
    usual = {
        "duration_sec": 60.0, "measurement": {"NDR": 0.001, "PDR": 0.1, "load_epsilon": 0.1}, "tg-name": "trex-local",
        "tg-tool": generator, "vm_forwarder": "testpmd", "flavor": {"vcpus": 2, "ram": 4096, "disk": 0},
        "vif_multiqueue_size": 1, "user_label": None, "sriov": False,
    }  # fmt: skip
    return {
        "date": "2023-06-01 12:30:45", "nfvbench_version": "5.1.3", "config": {**usual, **config},
        "openstack_spec": {"vswitch": "OVS-DPDK", "encaps": "VLAN"},
        "benchmarks": {"network": {"service_chain": {chain: {"result": told}}, "versions": {}}},
    }  # fmt: skip


DTS_ROW = {"frame_size": 64, "num_descriptors": 1024, "expected_mpps": 30.0, "measured_mpps": 27.5}
"""Of a result of DPDK's Test Suite."""


def packed(data: object) -> bytes:
    """As a file."""
    return json.dumps(data).encode()


EXAMPLES = (
    csit(csit_ndrpdr()), csit(csit_soak()), csit(csit_mrr()),
    {"results": [DTS_ROW, DTS_ROW | {"frame_size": 1518, "pass": False}]}, csit_unmeasured(),
    nfvbench({"64": searched()}), nfvbench({"IMIX": fixed(20.0)}), nfvbench({"64": not_reached()}),
)  # fmt: skip
"""Of the formats that differ."""


def flat(value: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Nested fields by their names, joined as CSIT's ETL joins them."""
    found: dict[str, Any] = {}
    for name, each in value.items():
        found |= flat(each, f"{path}{name}_") if isinstance(each, dict) else {f"{path}{name}": each}
    return found
