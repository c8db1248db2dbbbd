"""A chain as a cell: inline VNFs are its nodes, passive ones get copies between them. And whose plan is whose."""

from collections.abc import Mapping
from itertools import count
from typing import TypeVar

from pydantic import ValidationError

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.base import first_error
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType, Tap
from resources.libraries.python.model.request.kinds import Limits, are_vms
from resources.libraries.python.planning.names import nf_name, tap_name
from resources.libraries.python.studies.chains.model.spec import Chain, ChainStudySpec, Fault, Member, Mode

_INSTANCE = 1
_NO_LIMITS = Limits()
_Number = TypeVar("_Number", int, float)


def cell_of(chain: Chain, spec: ChainStudySpec) -> Cell:
    """A chain as one service instance of a snake: every hop crosses the vSwitch.

    A planted fault is in the limits of its VNF.

    Raises:
        PlanError: A VNF cannot be what the specification says, such as passive.
    """
    inline = [member for member in chain.members if spec.vnf(member.name).mode is Mode.INLINE]
    kinds = tuple(spec.vnf(member.name).kind for member in inline)
    programs = tuple(spec.vnf(member.name).program for member in inline)
    try:
        limits = tuple(_limits(member, chain, spec) for member in inline)
        return Cell(
            service_type=ServiceType.VSC if are_vms(kinds) else ServiceType.CSC,
            **Dimensions(1, len(inline)).columns,
            nf_kinds=kinds,
            **({"nf_sizes": tuple(member.size for member in inline)} if inline else {}),
            taps=_taps(chain, spec),
            limits=limits if any(each != _NO_LIMITS for each in limits) else (),
            programs=programs if any(programs) else (),
        )
    except ValidationError as error:
        raise PlanError(f"{chain.name}: {first_error(error)[1]}") from error


def owners(chain: Chain, spec: ChainStudySpec) -> Mapping[str, str]:
    """VNF by the name that its network function has in the plan, in the order of the chain."""
    found: dict[str, str] = {}
    nodes, taps = count(1), count(1)
    for member in chain.members:
        is_inline = spec.vnf(member.name).mode is Mode.INLINE
        found[nf_name(_INSTANCE, next(nodes)) if is_inline else tap_name(_INSTANCE, next(taps))] = member.name
    return found


def faults_in(chain: Chain, spec: ChainStudySpec) -> tuple[Fault, ...]:
    """Faults that are planted in a chain, whatever resources it has."""
    return tuple(fault for fault in spec.faults if fault.is_in(chain.order))


def planted(chain: Chain, spec: ChainStudySpec) -> str | None:
    """Faults planted in a chain, as text; None where none is."""
    parts = [f"{fault.vnf} is limited to {limits_in_words(fault.limits)}" for fault in faults_in(chain, spec)]
    return "; ".join(parts) or None


def limits_in_words(limits: Limits) -> str:
    """`0.1 CPUs and 64 MiB`; empty for none."""
    words = []
    if limits.cpu is not None:
        words.append(f"{limits.cpu:g} CPUs")
    if limits.memory_mib is not None:
        words.append(f"{limits.memory_mib} MiB")
    return " and ".join(words)


def _taps(chain: Chain, spec: ChainStudySpec) -> tuple[Tap, ...]:
    taps, node = [], 1
    for member in chain.members:
        vnf = spec.vnf(member.name)
        if vnf.mode is Mode.INLINE:
            node += 1
        else:
            limits = _limits(member, chain, spec)
            taps.append(Tap(position=node, kind=vnf.kind, size=member.size, limits=limits, program=vnf.program))
    return tuple(taps)


def _limits(member: Member, chain: Chain, spec: ChainStudySpec) -> Limits:
    """Of its memory range, and of a fault that is planted in it, whichever is less."""
    limits = Limits(memory_mib=member.memory_mib)
    for fault in faults_in(chain, spec):
        if fault.vnf == member.name:
            limits = Limits(
                cpu=_least(limits.cpu, fault.limits.cpu),
                memory_mib=_least(limits.memory_mib, fault.limits.memory_mib),
            )
    return limits


def _least(first: _Number | None, second: _Number | None) -> _Number | None:
    return min((each for each in (first, second) if each is not None), default=None)
