"""VPP's threads and interfaces in a guest, from the plan. Pure."""

from resources.libraries.python.drivers.functions.vm.arguments import pci_address
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, VppInterface
from resources.libraries.python.drivers.vpp.placement import WorkerPlacement, place
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.plan import NfPlan, Plan


def vcpu_cpus(plan: Plan, name: str) -> tuple[int, ...]:
    """The CPU of each vCPU: first that of VPP's main thread, then those of its workers.

    Where planned threads share a CPU, so do VPP's: it then has fewer of them, and the guest fewer vCPUs.
    """
    on_host = place(plan.cores.cpus(name, ThreadRole.MAIN)[0], plan.cores.cpus(name))
    return (on_host.main, *on_host.workers)


def placement(plan: Plan, name: str) -> WorkerPlacement:
    """Threads of VPP by vCPU."""
    cpus = vcpu_cpus(plan, name)
    return WorkerPlacement(0, tuple(range(1, len(cpus))), tuple(cpus.index(cpu) for cpu in plan.cores.cpus(name)))


def interfaces_inside(plan: Plan, function: NfPlan) -> tuple[VppInterface, ...]:
    """The guest's two network cards, left and right."""
    ports = {port.interface: port for port in plan.ports(function.name)}
    return tuple(
        VppInterface(
            kind=InterfaceKind.VIRTIO,
            name=side.name,
            made_as=_made_as(pci_address(number)),
            mac=side.mac,
            data_threads=ports[side.name].queues,
            ports=((side.name, None),),
            pci_address=pci_address(number),
        )
        for number, side in enumerate((function.left, function.right), 1)
    )


def _made_as(address: str) -> str:
    """What VPP calls a card: `virtio-0/0/11/0` for 0000:00:11.0."""
    domain, bus, last = address.split(":")
    slot, function = last.split(".")
    return "virtio-" + "/".join(f"{int(word, 16):x}" for word in (domain, bus, slot, function))
