"""Declarations of the built-in generator, one for each way of sending."""

from functools import partial

from resources.libraries.python.model.driver import PACKET, GeneratorDriver, KernelFeature
from resources.libraries.python.model.request.traffic import Protocol

_ours = partial(
    GeneratorDriver,
    label="built-in generator",
    factory="resources.libraries.python.drivers.generators.builtin.driver:make",
    protocols=(Protocol.IP, Protocol.UDP, Protocol.TCP),
    numbers_packets=True,
    loops_back=1,
    opens_connections=True,
    ipv6=True,
    captures=True,
    counts_by_port=True,
    suite_word="builtin",
    kernel=(PACKET,),
)
DRIVERS = (
    _ours(name="auto", ways=("af_xdp",)),
    _ours(
        name="xdp",
        missing="resources.libraries.python.drivers.generators.builtin.driver:missing_for_xdp",
        kernel=(KernelFeature("XDP programs", "BPF_SYSCALL"),),
        vlan_problem="VLAN devices take no XDP frames",
    ),
    _ours(name="af_xdp", kernel=(KernelFeature("AF_XDP sockets", "XDP_SOCKETS"),)),
    _ours(name="ring"),
)
