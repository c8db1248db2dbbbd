"""Properties of NICs: by model, as named in FD.io CSIT, and by driver."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NicModel:
    """One port, one direction."""

    rate_bps: int
    """Nominal line rate, L1."""
    most_pps: int | None = None
    """Maximum packet rate, if it is below the line rate at 64 B; otherwise None."""


NICS = {
    "Intel-X710": NicModel(10_000_000_000),
    "Intel-XL710": NicModel(40_000_000_000, 18_750_000),
    "Intel-XXV710": NicModel(25_000_000_000, 18_750_000),
    "Intel-E810XXV": NicModel(25_000_000_000, 29_000_000),
    "Intel-E822CQ": NicModel(25_000_000_000, 29_000_000),
    "Intel-E823C": NicModel(25_000_000_000, 29_000_000),
    "Intel-E810CQ": NicModel(100_000_000_000, 58_500_000),
    "Mellanox-CX556A": NicModel(100_000_000_000),
    "Mellanox-CX6DX": NicModel(100_000_000_000),
    "Mellanox-CX7VEAT": NicModel(200_000_000_000),
    "Cavium-A063-50G": NicModel(50_000_000_000),
    "Cavium-A063-100G": NicModel(100_000_000_000),
    "Amazon-Nitro-50G": NicModel(10_000_000_000, 1_500_000),
    "Amazon-Nitro-100G": NicModel(10_000_000_000, 3_000_000),
    "Amazon-Nitro-200G": NicModel(16_000_000_000, 6_000_000),
    "azure-mlx-40g": NicModel(40_000_000_000),
    "virtual": NicModel(100_000_000),
}
"""Packet rates are the limits that CSIT's own tests keep to (its constants for NICs, one direction). Ports of a cloud
have the rate that the provider allows, which is below the one in the name."""

_MOST_RX_QUEUES = 64
"""Receive queues of a port for RSS: what DPDK's drivers of the models above offer at least."""
_RX_QUEUES = {"virtio": 1, "e1000": 1, "igb": 2, "ixgbe": 16, "vmxnet3": 8, "ena": 8}
"""By how a driver's name begins: the least that a NIC of that driver has. A virtio port has as many as its host gives
it, which only the topology can say."""


def most_rx_queues(model: str | None, driver: str | None) -> int:
    """Receive queues that a polled port can have.

    Args:
        model: CSIT's name of the NIC; None where it is not known.
        driver: Name of its driver, the kernel's or DPDK's.
    """
    if model not in NICS:
        name = (driver or "").removeprefix("net_")
        for begin in sorted(_RX_QUEUES, key=len, reverse=True):
            if name.startswith(begin):
                return _RX_QUEUES[begin]
    return _MOST_RX_QUEUES
