"""Topologies of labs, as files say them."""

from itertools import pairwise
from typing import Any, Literal

from resources.libraries.python.model.topology import Topology

Word = Literal["link", "vlan", "mac"]


def lab(
    duts: int = 1,
    pairs: int = 1,
    *,
    discriminator: Word = "link",
    vswitch: str = "vpp",
    generator: str = "trex",
    containers: str | list[str] = "vpp",
    with_macs: bool = True,
    cores: int = 512,
    tg_cores: int = 16,
    smt: bool = False,
    trex: dict[str, Any] | None = None,
    **dut_keys: Any,
) -> Topology:
    """A lab of TG, DUT1 and, for two DUTs, DUT2, with `pairs` ways for services: a cable each between neighbours."""
    names = ["TG", *(f"DUT{number}" for number in range(1, duts + 1))]
    interfaces: dict[str, dict[str, Any]] = {name: {} for name in names}
    circle = [*names, "TG"]
    for pair in range(pairs):
        for step, (one, other) in enumerate(pairwise(circle)):
            for end in (one, other):
                number = len(interfaces[end]) + 1
                interfaces[end][f"port{number}"] = {
                    "link": f"link{pair * len(names) + step + 1}",
                    "device": f"eth{number}",
                    "pci_address": f"0000:{names.index(end):02x}:{number:02x}.0",
                    "rate_bps": 10**10,
                    "driver": "i40e",
                    **({"mac_address": f"02:c5:00:00:{names.index(end):02x}:{number:02x}"} if with_macs else {}),
                }
    nodes: dict[str, Any] = {}
    for name in names:
        count = tg_cores if name == "TG" else cores
        groups = [{"cpus": f"0-{count - 1}", "cores": f"0-{count - 1}"}]
        if smt:
            groups.append({"cpus": f"{count}-{2 * count - 1}", "cores": f"0-{count - 1}"})
        access = {"host": f"192.0.2.{len(nodes) + 1}"}
        common: dict[str, Any] = {"access": access, "cpus": groups, "interfaces": interfaces[name]}
        if name == "TG":
            nodes[name] = {"type": "TG", "generator": {"driver": generator}, "trex": trex or {}, **common}
        else:
            nodes[name] = {"type": "DUT", "vswitch": vswitch, "containers": containers, **common, **dut_keys}
    return Topology.model_validate(
        {
            "metadata": {"version": 1, "name": "lab"},
            "world": "lab",
            "discriminator": discriminator,
            "nodes": nodes,
        }
    )
