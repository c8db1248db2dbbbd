"""What network functions are: the drivers behind `roles.function`."""

from collections.abc import Collection
from enum import StrEnum


class NfKind(StrEnum):
    """What an NF runs in; the drivers behind `roles.function`."""

    LINUX_ROUTER = "linux_router"
    """IPv4 routing in the Linux kernel, a network namespace each."""
    LINUX_FIREWALL = "linux_firewall"
    """A Linux router that looks every packet up in a hundred rules of nftables first."""
    LINUX_NAT = "linux_nat"
    """A Linux router that translates source addresses on the way forward."""
    TESTPMD = "testpmd"
    """DPDK's packet forwarder, a process each."""
    LINUX_GATEWAY = "linux_gateway"
    """A Linux router that looks source and destination of every packet up in a set of hundreds of addresses."""
    TCPDUMP = "tcpdump"
    NETSNIFF = "netsniff"
    PKTSTAT = "pktstat"
    NGREP = "ngrep"
    SURICATA = "suricata"
    """Programs that look at packets: inline beside the kernel that routes them, passive at copies of them."""
    NGINX_BALANCER = "nginx_balancer"
    """nginx that spreads datagrams over addresses behind it; the source address stays."""
    NGINX_PROXY = "nginx_proxy"
    """nginx that sends datagrams on under its own address and port."""
    OPENVPN = "openvpn"
    """Both ends of an OpenVPN tunnel: each packet is encrypted by one and decrypted by the other."""
    PROCESS = "process"
    """A program of the user's own in a network namespace."""
    QEMU = "qemu"
    """A virtual machine that routes IPv4 in its Linux kernel."""
    VPP = "vpp"
    """VPP that routes IPv4, in a container or as a plain process each."""
    QEMU_VPP = "qemu_vpp"
    """A virtual machine in which VPP routes IPv4."""
    QEMU_FIREWALL = "qemu_firewall"
    QEMU_NAT = "qemu_nat"
    QEMU_GATEWAY = "qemu_gateway"
    QEMU_TCPDUMP = "qemu_tcpdump"
    QEMU_NETSNIFF = "qemu_netsniff"
    QEMU_PKTSTAT = "qemu_pktstat"
    QEMU_NGREP = "qemu_ngrep"
    QEMU_SURICATA = "qemu_suricata"
    QEMU_NGINX_BALANCER = "qemu_nginx_balancer"
    QEMU_NGINX_PROXY = "qemu_nginx_proxy"
    """Virtual machines whose Linux kernel routes and that run what `in_guest` says."""
    SIM = "sim"

    @property
    def is_namespace(self) -> bool:
        """Whether it is a network namespace in which the kernel itself forwards, in the data threads of its ports."""
        return self in {NfKind.LINUX_ROUTER, NfKind.LINUX_FIREWALL, NfKind.LINUX_NAT, NfKind.LINUX_GATEWAY}

    @property
    def is_routed(self) -> bool:
        """Whether the kernel of its network namespace routes, alone or with a program beside it."""
        return self.is_namespace or self in _WITH_PROGRAM

    @property
    def is_vm(self) -> bool:
        """Whether it is a virtual machine."""
        return self in {NfKind.QEMU, NfKind.QEMU_VPP} or self.in_guest is not None

    @property
    def in_guest(self) -> "NfKind | None":
        """What a virtual machine runs, by the kind that does the same in a network namespace; None for other kinds."""
        return _IN_GUESTS.get(self)

    @property
    def is_monitor(self) -> bool:
        """Whether it is a program that looks at packets and leaves them alone."""
        return self in _MONITORS

    @property
    def can_be_passive(self) -> bool:
        """Whether it is of use where packets do not go through it: it looks at what comes."""
        return self in _WATCHING or self.in_guest in _MONITORS

    @property
    def takes_udp_only(self) -> bool:
        """Whether what it is there for is done to UDP datagrams, and to nothing else."""
        return (self.in_guest or self) in {NfKind.NGINX_BALANCER, NfKind.NGINX_PROXY}

    @property
    def is_shareable(self) -> bool:
        """Whether one NF of the kind has interfaces for any number of service instances; others have just two."""
        return self.is_namespace or self is NfKind.SIM


def are_vms(kinds: Collection[NfKind | None]) -> bool:
    """Whether a service of these kinds has virtual machines and nothing else, and so is a VSC."""
    return bool(kinds) and all(kind is not None and kind.is_vm for kind in kinds)


_IN_GUESTS = {
    NfKind.QEMU_FIREWALL: NfKind.LINUX_FIREWALL,
    NfKind.QEMU_NAT: NfKind.LINUX_NAT,
    NfKind.QEMU_GATEWAY: NfKind.LINUX_GATEWAY,
    NfKind.QEMU_TCPDUMP: NfKind.TCPDUMP,
    NfKind.QEMU_NETSNIFF: NfKind.NETSNIFF,
    NfKind.QEMU_PKTSTAT: NfKind.PKTSTAT,
    NfKind.QEMU_NGREP: NfKind.NGREP,
    NfKind.QEMU_SURICATA: NfKind.SURICATA,
    NfKind.QEMU_NGINX_BALANCER: NfKind.NGINX_BALANCER,
    NfKind.QEMU_NGINX_PROXY: NfKind.NGINX_PROXY,
}
LINUX_GUESTS = (NfKind.QEMU, *_IN_GUESTS)
"""What a testbed with Linux guests can run in them; the first only routes."""
_MONITORS = frozenset({NfKind.TCPDUMP, NfKind.NETSNIFF, NfKind.PKTSTAT, NfKind.NGREP, NfKind.SURICATA})
_WATCHING = _MONITORS | {NfKind.PROCESS, NfKind.SIM}
_WITH_PROGRAM = _WATCHING - {NfKind.SIM} | {NfKind.NGINX_BALANCER, NfKind.NGINX_PROXY, NfKind.OPENVPN}
