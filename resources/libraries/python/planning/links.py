"""Links of a cell: their ends, medium and data threads."""

from collections.abc import Iterator
from typing import Any

from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.plan import Link, Port
from resources.libraries.python.planning.edges import SHARED
from resources.libraries.python.planning.media import between, to_vswitch
from resources.libraries.python.planning.names import (
    GENERATOR,
    VSWITCH,
    nf_interface,
    tap_interface,
    tap_name,
    vswitch_interface,
    vswitch_name,
    vswitch_tap_interface,
)
from resources.libraries.python.planning.placement.queues import Queues, RxQueues
from resources.libraries.python.planning.service import ServiceLayout


class Links:
    """Makes the links of a service."""

    def __init__(self, service: ServiceLayout, cores: CoreMap, vswitch: str) -> None:
        """Prepare.

        Args:
            service: What to link.
            cores: Where its threads are.
            vswitch: Driver of the vSwitches, which decides with the NFs' kinds what links are made of.
        """
        self._service = service
        self._vswitch = vswitch
        self._rx = RxQueues(service, cores, vswitch)

    def all(self) -> Iterator[Link]:
        """All links: those that instances share, then instance by instance in forward direction."""
        service, cables = self._service, range(self._service.edges.duts + 1)
        if service.edges.shared:
            yield from (self._edge(SHARED, cable) for cable in cables)
        for instance in service.instances:
            for dut in range(1, service.edges.duts + 1):
                if not service.edges.shared:
                    yield self._edge(instance, dut - 1)
                yield from self._inside(instance, dut)
            if not service.edges.shared:
                yield self._edge(instance, cables[-1])

    def _edge(self, instance: int, cable: int) -> Link:
        """Return a cable of the path (from 0), or the virtual link in its place. The generator is always end `a`."""
        if cable == 0:
            ends = self._generator_port(instance, 1), self._edge_port(instance, 1)
        elif cable == self._service.edges.duts:
            ends = self._generator_port(instance, 2), self._edge_port(instance, 2 * cable)
        else:
            ends = self._edge_port(instance, 2 * cable), self._edge_port(instance, 2 * cable + 1)
        medium = Medium.CABLE if self._service.edges.ways else Medium.VETH
        return Link(instance=instance, a=ends[0], b=ends[1], medium=medium)

    def _generator_port(self, instance: int, port: int) -> Port:
        service = self._service
        cable, end = (0, 0) if port == 1 else (service.edges.duts, 1)
        owner, interface = service.edge(GENERATOR, instance, port)
        return Port(
            owner=owner,
            interface=interface,
            mac=service.generator_mac(instance, port),
            **_polled(self._rx.at_generator(instance, port)),
            nic=service.edges.nic(instance, cable, end),
            vlan=service.edges.vlan(instance),
            trunk=service.edges.trunk(GENERATOR, port),
        )

    def _edge_port(self, instance: int, number: int) -> Port:
        """A vSwitch's port at edge `number` (1 to 4 along the service): odd ones end a cable, even ones begin one."""
        service = self._service
        owner, interface = service.edge(vswitch_name((number + 1) // 2), instance, number)
        return Port(
            owner=owner,
            interface=interface,
            mac=service.edge_mac(instance, number),
            **_polled(self._rx.at_edge(instance, number)),
            nic=service.edges.nic(instance, number // 2, number % 2),
            vlan=service.edges.vlan(instance),
            trunk=service.edges.trunk(VSWITCH, number),
        )

    def _inside(self, instance: int, dut: int) -> Iterator[Link]:
        service, vswitch = self._service, vswitch_name(dut)
        nodes = service.nodes_on(dut)
        position = 0

        def inner_port(node: int, side: int) -> Port:
            nonlocal position
            position += 1
            return Port(
                owner=vswitch,
                interface=vswitch_interface(instance, node, side),
                mac=service.crossing_mac(instance, node, side),
                **_polled(self._rx.at_crossing(dut, instance, position)),
            )

        def crossing(node: int, side: int) -> Link:
            medium = to_vswitch(self._vswitch, service.kind(instance, node))
            return Link(
                instance=instance, a=inner_port(node, side), b=self._nf_port(instance, node, side), medium=medium
            )

        pipeline = service.cell.service_type.is_pipeline
        if pipeline and not nodes:
            # A cable where the NFs would be: packets cross the vSwitch as often as they do with them.
            ends = [inner_port(0, side) for side in service.cable_sides(dut)]
            yield Link(instance=instance, a=ends[0], b=ends[1])

        for node in nodes:
            if node == nodes[0] or not pipeline:
                yield crossing(node, 1)
            if node == nodes[-1] or not pipeline:
                yield crossing(node, 2)
            else:
                medium = between(service.kind(instance, node), service.kind(instance, node + 1))
                left, right = self._nf_port(instance, node, 2), self._nf_port(instance, node + 1, 1)
                yield Link(instance=instance, a=left, b=right, medium=medium)
        for number in service.taps_on(dut):
            yield self._to_tap(instance, dut, number)

    def _to_tap(self, instance: int, dut: int, number: int) -> Link:
        service, vswitch = self._service, vswitch_name(dut)
        near, far = (service.tap_mac(instance, number, end) for end in (1, 2))
        return Link(
            instance=instance,
            a=Port(
                owner=vswitch,
                interface=vswitch_tap_interface(instance, number),
                mac=near,
                **_polled(self._rx.to_tap(dut, instance, number)),
            ),
            b=Port(
                owner=tap_name(instance, number),
                interface=tap_interface(instance, number),
                mac=far,
                data_thread=0,
            ),
        )

    def _nf_port(self, instance: int, node: int, side: int) -> Port:
        return Port(
            owner=self._service.name(instance, node),
            interface=nf_interface(instance, node, side),
            mac=self._service.nf_mac(instance, node, side),
            **_polled(self._rx.at_nf(instance, node, side)),
        )


def _polled(queues: Queues) -> dict[str, Any]:
    """The keys of a port that say which data threads poll it."""
    return {"data_thread": queues[0], "rx_queues": queues if len(queues) > 1 else ()}
