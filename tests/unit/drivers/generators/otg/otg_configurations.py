"""Configurations of OTG as snappi writes them."""

from typing import Any

from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Flow

SENDER = "controller 4711"
ETHERNET = {
    "choice": "ethernet",
    "ethernet": {
        "src": {"choice": "value", "value": "02:00:00:00:00:01"},
        "dst": {"choice": "value", "value": "02:00:00:00:00:02"},
    },
}
VLAN = {"choice": "vlan", "vlan": {"id": {"choice": "value", "value": 100}}}
IPV4 = {
    "choice": "ipv4",
    "ipv4": {
        "src": {"choice": "increment", "increment": {"start": "10.0.0.1", "step": "0.0.0.1", "count": 4}},
        "dst": {"choice": "value", "value": "20.0.0.1"},
    },
}
IPV6 = {"choice": "ipv6", "ipv6": {"src": {"choice": "values", "values": ["2001:db8::1", "2001:db8::2"]}}}
UDP = {"choice": "udp", "udp": {"dst_port": {"choice": "value", "value": 4789}}}
TCP = {
    "choice": "tcp",
    "tcp": {
        "src_port": {"choice": "increment", "increment": {"start": 65535, "step": 1, "count": 2}},
        "dst_port": {"choice": "value", "value": 443},
        "seq_num": {"choice": "values", "values": [4294967295, 7]},
        "ack_num": {"choice": "value", "value": 305419896},
        "data_offset": {"choice": "value", "value": 0},
        "ctl_ack": {"choice": "value", "value": 1},
        "ctl_syn": {"choice": "values", "values": [1, 0]},
        "window": {"choice": "value", "value": 29200},
    },
}
FORWARD = Flow(
    instance=1,
    direction=Direction.FORWARD,
    tx_interface="tg-1-1",
    rx_interface="tg-1-2",
    source_mac="02:00:00:00:00:01",
    destination_mac="02:00:00:00:00:02",
    source_ip="10.0.0.1",
    sources=254,
    destination_ip="20.0.0.1",
)
REVERSE = FORWARD.model_copy(
    update={
        "direction": Direction.REVERSE,
        "tx_interface": "tg-1-2",
        "rx_interface": "tg-1-1",
        "source_ip": "2001:db8::1",
        "destination_ip": "2001:db8::2",
        "vlan": 7,
    }
)
FLOWS = (FORWARD, REVERSE)
"""Flows of a plan: IPv4 there, and tagged IPv6 back."""


def configuration(**changes: Any) -> dict[str, Any]:
    """A configuration of one flow with some of its fields changed; None takes a field away."""
    flow = {
        "name": "f1",
        "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_names": ["p2"]}},
        "packet": [ETHERNET, IPV4, UDP],
        "size": {"choice": "fixed", "fixed": 128},
        "rate": {"choice": "pps", "pps": "1000"},
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 100, "gap": 12}},
        "metrics": {"enable": True, "loss": True, "latency": {"enable": True, "mode": "cut_through"}},
        **changes,
    }
    return {
        "ports": [{"name": "p1", "location": "eth1"}, {"name": "p2", "location": "eth2"}],
        "flows": [{key: value for key, value in flow.items() if value is not None}],
    }
