"""Physical ports on record, as tests have them."""

from resources.libraries.python.drivers.host.nics.nic_adoption import AdoptedPort

GONE = AdoptedPort(
    interface="csg1p1", inside="csit-generator", device="nosuchport", home=1, bus="", mac="02:00:00:00:00:01", mtu=1500,
    up=True, promiscuous=False, gro=True, tso=True, lro=False, threaded=None, rx_queues=None, tx_queues=None,
    combined_queues=None,
)  # fmt: skip
"""A port that is not on this machine any more."""
