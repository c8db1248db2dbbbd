"""L2 segments of a cell: which ports of its vSwitches are joined to each other, and which get copies."""

from collections.abc import Iterator, Mapping

from resources.libraries.python.model.plan import Segment
from resources.libraries.python.planning.edges import SHARED
from resources.libraries.python.planning.names import segment_name, vswitch_name, vswitch_tap_interface
from resources.libraries.python.planning.service import ServiceLayout

_Copies = Mapping[str, tuple[str, ...]]


def segments(service: ServiceLayout) -> Iterator[Segment]:
    """Pairs of neighbouring vSwitch ports along the service; where instances share cables, one for each cable's end."""
    duts = range(1, service.edges.duts + 1)
    per_dut = service.segments_on_dut
    copies = _copies(service)
    if service.edges.shared:
        for dut in duts:
            rows = [service.crossings(instance, dut) for instance in service.instances]
            before = (dut - 1) * per_dut
            left, right = (service.edge(vswitch_name(dut), SHARED, 2 * dut - 1 + side)[1] for side in (0, 1))
            if per_dut == 1:
                yield _segment(SHARED, before + 1, (left, right), copies)
                continue
            yield _segment(SHARED, before + 1, (left, *(row[0] for row in rows)), copies)
            yield _segment(SHARED, before + per_dut, (*(row[-1] for row in rows), right), copies)
    for instance in service.instances:
        for dut in duts:
            ports = service.crossings(instance, dut)
            first = (dut - 1) * per_dut + 1
            if service.edges.shared:
                ports, first = ports[1:-1], first + 1
            else:
                left, right = (service.edge(vswitch_name(dut), instance, 2 * dut - 1 + side)[1] for side in (0, 1))
                ports = [left, *ports, right]
            for index in range(len(ports) // 2):
                yield _segment(instance, first + index, (ports[2 * index], ports[2 * index + 1]), copies)


def _segment(instance: int, position: int, members: tuple[str, ...], copies: _Copies) -> Segment:
    name = segment_name(instance, position)
    return Segment(name=name, instance=instance, position=position, members=members, copies=copies.get(name, ()))


def segment_of_tap(service: ServiceLayout, instance: int, number: int) -> str:
    """Name of the segment that a passive NF gets copies of."""
    position, per_dut = service.tap_segment(number), service.segments_on_dut
    at_cable = (position - 1) % per_dut in {0, per_dut - 1}
    return segment_name(SHARED if service.edges.shared and at_cable else instance, position)


def _copies(service: ServiceLayout) -> _Copies:
    """Ports of the vSwitches towards passive NFs, by segment."""
    found: dict[str, tuple[str, ...]] = {}
    for instance in service.instances:
        for number in service.all_taps:
            name = segment_of_tap(service, instance, number)
            found[name] = (*found.get(name, ()), vswitch_tap_interface(instance, number))
    return found
