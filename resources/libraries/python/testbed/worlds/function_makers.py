"""Which driver fulfils the role of an NF on a machine: a line for each kind."""

from collections.abc import Callable, Iterator, Sequence

from resources.libraries.python.drivers.containers.engine_choice import missing as container_missing
from resources.libraries.python.drivers.functions.limited import ConfinedFunctions
from resources.libraries.python.drivers.functions.linux_router import LinuxRouters
from resources.libraries.python.drivers.functions.mixed_kinds import Several
from resources.libraries.python.drivers.functions.monitor.driver import Monitors
from resources.libraries.python.drivers.functions.monitor.driver import missing as monitor_missing
from resources.libraries.python.drivers.functions.monitor.programs import programs as monitors
from resources.libraries.python.drivers.functions.nftables import rulesets
from resources.libraries.python.drivers.functions.nftables.driver import NftablesRouters
from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.functions.nginx.driver import NginxProxies
from resources.libraries.python.drivers.functions.nginx.program import missing as nginx_missing
from resources.libraries.python.drivers.functions.openvpn.driver import OpenVpns
from resources.libraries.python.drivers.functions.openvpn.requirements import missing as openvpn_missing
from resources.libraries.python.drivers.functions.process.driver import UserPrograms
from resources.libraries.python.drivers.functions.testpmd.driver import Testpmds
from resources.libraries.python.drivers.functions.testpmd.driver import missing as testpmd_missing
from resources.libraries.python.drivers.functions.vm.driver import VirtualMachines
from resources.libraries.python.drivers.functions.vm.guest_software import Inside
from resources.libraries.python.drivers.functions.vm.requirements import missing as vm_missing
from resources.libraries.python.drivers.functions.vm_application.guest_software import Applications
from resources.libraries.python.drivers.functions.vm_application.requirements import missing as application_missing
from resources.libraries.python.drivers.functions.vm_vpp.guest_software import VppInside
from resources.libraries.python.drivers.functions.vm_vpp.requirements import missing as vm_vpp_missing
from resources.libraries.python.drivers.functions.vpp.driver import VppRouters
from resources.libraries.python.drivers.functions.vpp.requirements import missing as vpp_missing
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan, TapPlan
from resources.libraries.python.testbed.roles.function import NetworkFunctions
from resources.libraries.python.testbed.worlds.driver_context import Site


def _monitors(kind: NfKind) -> Callable[[DutNode, Site, Sequence[NfPlan | TapPlan]], NetworkFunctions]:
    return lambda node, site, row: Monitors(
        row, site.fabric, monitors(node.ngrep.patterns, node.suricata.rules)[kind], site.companions(kind)
    )


def _inside(node: DutNode, site: Site, row: Sequence[NfPlan | TapPlan]) -> Inside | None:
    """What runs in Linux guests; None where all of them only route."""
    if all(function.kind.in_guest is None for function in row):
        return None
    return Applications(row, site.plan, node, lambda name: site.fabric.counters([name]))


def _nginx(kind: NfKind) -> Callable[[DutNode, Site, Sequence[NfPlan]], NetworkFunctions]:
    return lambda _, site, row: NginxProxies(row, site.plan.cores, site.fabric, site.companions(kind))


_NGINX = (NfKind.NGINX_BALANCER, NfKind.NGINX_PROXY)
_FUNCTIONS: dict[NfKind, Callable[[DutNode, Site, Sequence[NfPlan]], NetworkFunctions]] = {
    NfKind.LINUX_ROUTER: lambda _, site, row: LinuxRouters(row, site.fabric),
    NfKind.LINUX_FIREWALL: lambda node, site, row: NftablesRouters(
        row, site.fabric, rulesets.firewall(node.firewall.rules)
    ),
    NfKind.LINUX_NAT: lambda _, site, row: NftablesRouters(row, site.fabric, rulesets.nat()),
    NfKind.LINUX_GATEWAY: lambda node, site, row: NftablesRouters(
        row, site.fabric, rulesets.gateway(node.gateway.addresses)
    ),
    **{kind: _nginx(kind) for kind in _NGINX},
    NfKind.OPENVPN: lambda _, site, row: OpenVpns(
        row, site.fabric, site.companions("openvpn-left"), site.companions("openvpn-right")
    ),
    NfKind.QEMU_VPP: lambda node, site, row: VirtualMachines(
        row,
        site.plan,
        site.fabric,
        site.lock,
        node.vm,
        inside=VppInside(site.plan, node, largest_frame_bytes=site.largest_frame_bytes),
    ),
    NfKind.TESTPMD: lambda _, site, row: Testpmds(
        row, site.plan, site.fabric, site.lock, site.groups, largest_frame_bytes=site.largest_frame_bytes
    ),
    NfKind.VPP: lambda node, site, row: VppRouters(
        row, site.plan, site.fabric, site.lock, node.vpp, site.groups, largest_frame_bytes=site.largest_frame_bytes
    ),
}
_WATCHING: dict[NfKind, Callable[[DutNode, Site, Sequence[NfPlan | TapPlan]], NetworkFunctions]] = {
    **{kind: _monitors(kind) for kind in NfKind if kind.is_monitor},
    NfKind.PROCESS: lambda _, site, row: UserPrograms(
        row, site.fabric, site.companions(NfKind.PROCESS, takes_turns=False)
    ),
    NfKind.QEMU: lambda node, site, row: VirtualMachines(
        row, site.plan, site.fabric, site.lock, node.vm, inside=_inside(node, site, row)
    ),
}
"""NFs some of which can also be passive. Linux guests of all kinds are one driver's."""


def _missing_for_monitor(kind: NfKind) -> Callable[[DutNode], Sequence[Problem]]:
    return lambda node: tuple(monitor_missing(kind, monitors(node.ngrep.patterns, node.suricata.rules)[kind]))


_MISSING_FOR_FUNCTIONS: dict[NfKind, Callable[[DutNode], Sequence[Problem]]] = {
    NfKind.LINUX_FIREWALL: lambda _: tuple(nft_missing()),
    NfKind.LINUX_NAT: lambda _: tuple(nft_missing()),
    NfKind.LINUX_GATEWAY: lambda _: tuple(nft_missing()),
    **{kind: _missing_for_monitor(kind) for kind in NfKind if kind.is_monitor},
    **dict.fromkeys(_NGINX, lambda _: tuple(nginx_missing())),
    NfKind.OPENVPN: lambda _: tuple(openvpn_missing()),
    NfKind.TESTPMD: lambda _: tuple(testpmd_missing()),
    NfKind.VPP: lambda node: tuple(vpp_missing(node.vpp)),
}
_MISSING_FOR_VMS: dict[NfKind, Callable[[DutNode], Sequence[Problem]]] = {
    NfKind.QEMU: lambda _: (*vm_missing(), *application_missing()),
    NfKind.QEMU_VPP: lambda node: tuple(vm_vpp_missing(node.vpp)),
}
_ON_REQUEST = frozenset(
    {
        NfKind.LINUX_FIREWALL,
        NfKind.LINUX_NAT,
        NfKind.LINUX_GATEWAY,
        *(kind for kind in NfKind if kind.is_monitor),
        *_NGINX,
        NfKind.OPENVPN,
    }
)
"""Kinds that a topology offers beside its default: a machine that lacks something for them runs all else too."""


def functions(node: DutNode, site: Site, row: Sequence[NfPlan], taps: Sequence[TapPlan] = ()) -> NetworkFunctions:
    """The drivers of NFs, one for each kind, as one.

    Args:
        node: Has their settings.
        site: What they stand on.
        row: Inline ones.
        taps: Passive ones.

    Raises:
        Unsupported: There is none for a kind.
    """
    inline: dict[NfKind, list[NfPlan]] = {}
    watching: dict[NfKind, list[NfPlan | TapPlan]] = {}
    for function in row:
        driver = NfKind.QEMU if function.kind.in_guest else function.kind
        if driver in _WATCHING:
            watching.setdefault(driver, []).append(function)
        elif driver in _FUNCTIONS:
            inline.setdefault(driver, []).append(function)
        else:
            raise Unsupported(f"machines have no driver for NFs of kind {function.kind}")
    for tap in taps:
        if not tap.kind.can_be_passive or tap.kind is NfKind.SIM:
            raise Unsupported(f"machines have no driver for passive NFs of kind {tap.kind}")
        watching.setdefault(NfKind.QEMU if tap.kind.in_guest else tap.kind, []).append(tap)
    parts = Several(
        [
            *(_FUNCTIONS[kind](node, site, group) for kind, group in inline.items()),
            *(_WATCHING[kind](node, site, each) for kind, each in watching.items()),
        ],
        {side.name: function.name for function in row for side in (function.left, function.right)},
    )
    return ConfinedFunctions(parts, site.groups) if site.groups else parts


def missing(node: DutNode) -> Iterator[Problem]:
    """What the present machine lacks for NFs that are a node's default, or can be of a kind that it has to have."""
    yield from container_missing(node.container)
    for kind in node.containers:
        if kind is node.containers[0] or kind not in _ON_REQUEST:
            yield from _missing_for(node, kind)


def missing_for_some(node: DutNode) -> Iterator[Problem]:
    """What the present machine lacks for a node's virtual machines, or for other NFs that are there on request."""
    if node.vms is not None:
        yield from _MISSING_FOR_VMS[node.vms](node) if node.vms in _MISSING_FOR_VMS else ()
    requested = (kind for kind in node.containers[1:] if kind in _ON_REQUEST)
    yield from dict.fromkeys(problem for kind in requested for problem in _missing_for(node, kind))


def _missing_for(node: DutNode, kind: NfKind) -> Sequence[Problem]:
    return _MISSING_FOR_FUNCTIONS[kind](node) if kind in _MISSING_FOR_FUNCTIONS else ()
