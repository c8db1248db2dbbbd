"""Flows of a plan, and headers of OTG as snappi writes them."""

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
UDP = {"choice": "udp", "udp": {"dst_port": {"choice": "value", "value": 4789}}}
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
