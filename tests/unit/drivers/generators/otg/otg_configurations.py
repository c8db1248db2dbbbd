"""Flows of a plan, and headers of OTG as snappi writes them."""

from resources.libraries.python.model.measurements.trial import Direction
from tests.builders import flow_of

SENDER = "controller 4711"
ETHERNET = {
    "choice": "ethernet",
    "ethernet": {
        "src": {"choice": "value", "value": "02:00:00:00:00:01"},
        "dst": {"choice": "value", "value": "02:00:00:00:00:02"},
    },
}
UDP = {"choice": "udp", "udp": {"dst_port": {"choice": "value", "value": 4789}}}
FORWARD = flow_of(ports=("tg-1-1", "tg-1-2"))
REVERSE = flow_of(
    Direction.REVERSE, ("tg-1-1", "tg-1-2"), source_ip="2001:db8::1", destination_ip="2001:db8::2", vlan=7
)
FLOWS = (FORWARD, REVERSE)
"""Flows of a plan: IPv4 there, and tagged IPv6 back."""
