"""Which machines an emulated testbed has, how they are cabled, and its topology file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from resources.libraries.python.emulation.machine import EmulatedMachine, EmulatedNic, EmulatedNicModel, NumaNode
from resources.libraries.python.model.base import Frozen

PAIRS = 2
"""Of ports of each machine: the first on NUMA node 0, the second on NUMA node 1 where the machine has one."""


MAX_QUEUES = 8
"""Maximum number of queues of a port: more than data threads that these machines have."""


class _CableEnd(NamedTuple):
    machine: str
    port: int

    @property
    def pair(self) -> int:
        return (self.port - 1) // 2


class EmulatedLayout(Frozen):
    """An emulated testbed."""

    nodes: Literal[2, 3] = 2
    """Machines: a TG, and one or two DUTs."""
    nic: EmulatedNicModel = EmulatedNicModel.VIRTIO
    """NIC of the first pair of ports."""
    accelerator: Literal["tcg", "kvm"] = "tcg"
    queues: Annotated[int, Field(ge=1, le=MAX_QUEUES)] = 1
    """Receive queues of virtio ports of the first pair."""
    loop: bool = False
    """Whether a cable joins two more ports of the TG to each other, with NICs as of the first pair."""

    @model_validator(mode="after")
    def _of_virtio(self) -> Self:
        if self.queues > 1 and self.nic is not EmulatedNicModel.VIRTIO:
            raise ValueError(f"{self.queues} queues: only virtio ports have more than one here, not {self.nic}")
        return self

    @property
    def second_nic(self) -> EmulatedNicModel:
        """NIC of the second pair: another model, so that a topology's `nic` chooses between the two."""
        return EmulatedNicModel.VIRTIO if self.nic is EmulatedNicModel.E1000E else EmulatedNicModel.E1000E

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the machines."""
        return ("TG", *(f"DUT{number}" for number in range(1, self.nodes)))

    @property
    def memory_mb(self) -> int:
        """Memory that the machines take at most."""
        return sum(node.memory_mb for machine in self.machines() for node in machine.numa)

    def machines(self) -> tuple[EmulatedMachine, ...]:
        """Hardware of all machines."""
        return tuple(
            EmulatedMachine(name, cores, numa, self._nics(name, len(numa)))
            for name in self.names
            for cores, numa in [_TG if name == "TG" else _DUT]
        )

    def _nics(self, name: str, numa_nodes: int) -> tuple[EmulatedNic, ...]:
        slots = [0] * numa_nodes
        nics = []
        for cable, ends in self._cables():
            for end, other in (ends, ends[::-1]):
                if end.machine == name:
                    node = min(end.pair, numa_nodes - 1)
                    model = self.second_nic if end.pair == 1 else self.nic
                    mac = f"02:c5:1e:00:{self.names.index(name):02x}:{end.port:02x}"
                    near, far = (
                        f"{cable}.{each.machine}{each.port if end.machine == other.machine else ''}"
                        for each in (end, other)
                    )
                    nics.append((end.port, model, node, mac, near, far))
        made = []
        for _, model, node, mac, near, far in sorted(nics):
            queues = self.queues if model is EmulatedNicModel.VIRTIO else 1
            made.append(EmulatedNic(model, node, slots[node], mac, near, far, queues))
            slots[node] += 1
        return tuple(made)

    def taps(self) -> dict[str, dict[str, int]]:
        """Cables of ports with several queues: MAC addresses of their two ends, with which end of the cable it is."""
        nics = (nic for machine in self.machines() for nic in machine.nics if nic.queues > 1)
        found: dict[str, dict[str, int]] = {}
        for nic in nics:
            ends = found.setdefault(nic.near.partition(".")[0], {})
            ends[nic.mac] = len(ends)
        return found

    def _cables(self) -> Iterator[tuple[str, tuple[_CableEnd, _CableEnd]]]:
        """Names of cables with both ends; a pair of ports of each machine is a path from the TG and back."""
        number = 0
        for pair in range(PAIRS):
            odd, even = 2 * pair + 1, 2 * pair + 2
            row = [_CableEnd("TG", odd), *(_CableEnd(dut, port) for dut in self.names[1:] for port in (odd, even))]
            row.append(_CableEnd("TG", even))
            for position in range(0, len(row), 2):
                number += 1
                yield f"link{number}", (row[position], row[position + 1])
        if self.loop:
            yield "loop", (_CableEnd("TG", 2 * PAIRS + 1), _CableEnd("TG", 2 * PAIRS + 2))

    def topology(self, access: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
        """The content of the topology file."""
        return {
            "metadata": {
                "version": 1,
                "name": "emulated",
                "description": "Emulated machines: rates are those of software emulation, and no density figures",
            },
            "world": "lab",
            "nic": self.nic.name_in_topology,
            "nodes": {machine.name: self._node(machine, access[machine.name]) for machine in self.machines()},
        }

    def _node(self, machine: EmulatedMachine, access: Mapping[str, object]) -> dict[str, Any]:
        links = {end: cable for cable, ends in self._cables() for end in ends}
        role: dict[str, Any] = (
            {"type": "TG", "generator": {"driver": "auto", "cores": 1}}
            if machine.name == "TG"
            else {
                "type": "DUT",
                "vswitch": "linux_bridge",
                "containers": ["linux_router", "linux_firewall", "linux_nat"],
                "memory": [_memory(number, numa) for number, numa in enumerate(machine.numa)],
                "oversubscribe": True,
            }
        )
        return {
            "type": role.pop("type"),
            "access": dict(access),
            **role,
            "cpus": [group.model_dump() for group in machine.cpu_groups()],
            "interfaces": {
                f"port{number}": {
                    "link": links[_CableEnd(machine.name, number)],
                    "pci_address": nic.pci_address,
                    "mac_address": nic.mac,
                    "numa_node": nic.numa_node,
                    "model": nic.model.name_in_topology,
                    **({"rx_queues": nic.queues} if nic.queues > 1 else {}),
                }
                for number, nic in enumerate(machine.nics, 1)
            },
        }


def _memory(number: int, numa: NumaNode) -> dict[str, int]:
    """A NUMA node's memory. It is written down so that a run need not start agents before it plans."""
    return {
        "node": number,
        "total_mb": int(numa.memory_mb * _LEFT_BY_KERNEL),
        "hugepages_2mb": numa.hugepages_2m,
        "hugepages_1gb": numa.hugepages_1g,
    }


_TG = 3, (NumaNode(2048, hugepages_2m=512),)
_DUT = 4, (NumaNode(4096, hugepages_2m=512, hugepages_1g=1), NumaNode(1024, hugepages_2m=128))
"""Cores of each socket, and NUMA nodes. Memory that is not used costs nothing here. The huge page of 1 GB needs a node
that is well above 1 GB."""

_LEFT_BY_KERNEL = 0.95
"""Of a node's memory, what its kernel counts as total at least: 96 and 98 % on the nodes of a DUT."""
_SILENCE_S = 90.0
"""An agent takes half a minute to start in emulation, where it takes two seconds elsewhere."""


def access(folder: Path, port: int) -> dict[str, object]:
    """How a machine is reached, as a topology says it."""
    return {
        "host": "127.0.0.1",
        "port": port,
        "user": "root",
        "key_file": str(folder / "key"),
        "known_hosts": str(folder / "known_hosts"),
        "silence_s": _SILENCE_S,
    }
