"""Topologies of labs, as files say them."""

from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.topology import Topology

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
    generator_cores: int | None = None,
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
            sender = {"driver": generator, **({"cores": generator_cores} if generator_cores else {})}
            nodes[name] = {"type": "TG", "generator": sender, "trex": trex or {}, **common}
        else:
            nodes[name] = {"type": "DUT", "vswitch": vswitch, "containers": containers, **common, **dut_keys}
    return Topology.model_validate(
        {"metadata": {"version": 1, "name": "lab"}, "world": "lab", "discriminator": discriminator, "nodes": nodes}
    )


def looped(topology: Topology, pairs: int = 1, *, first: bool = False, **port: Any) -> Topology:
    """The same with cables from the TG to itself, whose ports are as others but for some keys."""
    said = topology.model_dump(mode="json")
    ports: dict[str, Any] = said["nodes"]["TG"]["interfaces"]
    like = next(iter(ports.values()))
    more = {
        f"loop{number}{end}": {
            **like,
            "link": f"loop{number}",
            "device": f"l{number}{end}",
            "pci_address": f"0000:f{number}:00.{end}",
            "mac_address": f"02:c5:ff:00:0{number}:0{end}",
            **port,
        }
        for number in range(1, pairs + 1)
        for end in (0, 1)
    }
    said["nodes"]["TG"]["interfaces"] = {**more, **ports} if first else {**ports, **more}
    return Topology.model_validate(said)


TWO_NODES = """\
---
metadata:
  version: 0.1
  schema:
    - resources/topology_schemas/2_node_topology.sch.yaml
    - resources/topology_schemas/topology.sch.yaml
nodes:
  TG:
    type: TG
    subtype: TREX
    model: Some-Server
    host: 192.0.2.1
    arch: x86_64
    port: 6001
    username: tester
    password: in the clear
    bus:
      device1: {pci_address: "0000:6a:01.0", driver: idxd, model: Intel-DSA}
    interfaces:
      port1:
        mac_address: "00:00:5E:00:53:01"
        pci_address: "0000:3B:00.0"
        ip4_address: 198.51.100.1
        driver: ice
        link: link1
        model: Intel-E810CQ
      port2: {mac_address: "00:00:5e:00:53:02", pci_address: "0000:3b:00.1", link: link2, model: Intel-E810CQ}
      port3: {mac_address: "00:00:00:00:00:00", pci_address: "0000:5e:00.0", link: link3, model: Intel-X710}
      port4: {mac_address: "00:00:00:00:00:00", pci_address: "0000:5e:00.1", link: link4, model: Intel-X710}
      port5: {pci_address: "0000:af:00.0", driver: ice, link: loop, model: Intel-E810CQ}
      port6: {pci_address: "0000:af:00.1", driver: ice, link: loop, model: Intel-E810CQ}
      port7: {pci_address: "0000:d8:00.0", driver: ice, link: alone, model: Intel-E810CQ}
  DUT1:
    type: DUT
    model: Some-Server
    host: 192.0.2.2
    arch: x86_64
    port: 22
    username: tester
    password: in the clear
    uio_driver: vfio-pci
    interfaces:
      port1: {pci_address: "0000:3b:00.0", ip4_address: 198.51.100.2, driver: ice, link: link2, model: Intel-E810CQ}
      port2: {pci_address: "0000:3b:00.1", ip4_address: 198.51.100.6, driver: ice, link: link1, model: Intel-E810CQ}
      port3: {pci_address: "0000:5e:00.0", driver: i40e, link: link3, model: Intel-X710}
      port4: {pci_address: "0000:5e:00.1", driver: i40e, link: link4, model: Intel-X710}
"""


def written(folder: Path, text: str, name: str = "some_2n_testbed1.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str, before: str = "", after: str = "") -> str:
    """What is said of a topology file in which something is replaced: one short sentence, with its place."""
    assert before in text
    path = folder / "lab.yaml"
    path.write_bytes(text.replace(before, after, 1).encode(errors="surrogateescape"))
    with pytest.raises(ConfigError) as caught:
        load_topology(path)
    said = str(caught.value)
    assert said.startswith(f"{path}:") and "\n" not in said
    assert len(said.removeprefix(str(path))) <= 600
    return said.removeprefix(str(path))


def csit_lab(
    model: str | None = "Intel-XXV710", driver: str = "i40e", vfs: int = 1, ports: str = "", **keys: object
) -> Topology:
    """A testbed of CSIT's kind: VPP as vSwitch and NF, on virtual functions of one NIC's ports, SMT."""
    given = {"discriminator": "mac", "smt": True, "cores": 32, "vms": "qemu_vpp", **keys}
    data = lab(**given).model_dump(mode="json", exclude_none=True)  # type: ignore[arg-type]
    for node in data["nodes"].values():
        if node["type"] == "DUT":
            node["vpp"] = {"ports": ports or ("native" if vfs else "auto")}
        for port in node["interfaces"].values():
            port |= {"driver": driver, **({"model": model} if model else {})}
            if node["type"] == "DUT":
                port["nic_vfs"] = vfs
    return Topology.model_validate(data)
