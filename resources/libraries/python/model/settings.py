"""How products of a testbed are run: what a topology may say of each, with defaults."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from resources.libraries.python.driver_registry import check_options, generators, known_generator
from resources.libraries.python.model.base import Frozen


class Generator(Frozen):
    """The traffic generator of a TG node."""

    driver: Annotated[str, AfterValidator(known_generator)]
    """`auto` is the best of the built-in ones that the machine allows; a result says which one it was."""
    options: dict[str, Any] = Field(default={}, exclude_if=lambda options: not options)
    """Settings of the driver, as it declares them. Those of `trex` are under this key of the node."""
    cores: Annotated[int, Field(ge=1, le=64)] = 1
    """Physical cores for sending; at most 2 where the generator shares the machine with the system under test."""

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        check_options(generators()[self.driver], self.options, ("options",))
        return self


class Trex(Frozen):
    """How TRex is run."""

    directory: str = "/opt/trex"
    """Where it is installed: the folder that has `t-rex-64`."""
    ports: Literal["auto", "dpdk", "af_packet"] = "auto"
    """How it takes its ports: DPDK drivers by PCI address, or AF_PACKET sockets on ports of the kernel (software mode);
    `auto` is DPDK on NICs that DPDK knows."""
    python: str = "auto"
    """The Python that runs its client library, 3.6 to 3.12, or a later one with the package legacy-cgi; `auto` is this
    project's own, or else the first of the system's that will do."""
    memory_mb: Annotated[int, Field(ge=128)] | None = None
    """Memory that it takes, in huge pages with DPDK; None for its own choice."""


class Sizes(Frozen):
    """How threads share cores (CSIT's nf_mtcr, nf_dtcr)."""

    system_cores: Annotated[int, Field(ge=0)] = 1
    nf_mains_per_core: Annotated[int, Field(ge=1, le=2)] = 2


class Container(Frozen):
    """What the NFs of a CSC or CSP run in."""

    engine: Literal["none", "auto", "podman", "docker"] = "none"
    """`none` is a network namespace without a container; `auto` is the first engine that starts a container, else
    `none`. A result says which one it was."""
    image: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$")] | None = None
    """Of the containers; None for the file system of the node, read-only, with its own programs."""


class Vm(Frozen):
    """How virtual machines are made."""

    memory_mb: Annotated[int, Field(ge=64)] = 128
    """Of a guest's system; what `vpp` says that a VPP has comes on top where one runs in the guest."""
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    """`auto` takes KVM where an ordinary guest boots on it, else software emulation (TCG)."""
    huge_pages: Literal["none", "2mb", "1gb"] = "none"
    """What a guest's memory is made of: ordinary pages, or huge ones of the NUMA node of the ports, shared."""
    boot_within_s: Annotated[float, Field(gt=0)] = 60.0


class Firewall(Frozen):
    """What an NF of kind linux_firewall does."""

    rules: Annotated[int, Field(ge=1, le=10_000)] = 100
    """That every packet is looked up in, of either direction: none matches but the last one, which lets it pass."""


class Gateway(Frozen):
    """What an NF of kind linux_gateway does."""

    addresses: Annotated[int, Field(ge=1, le=65_536)] = 500
    """Of the set that source and destination of every packet are looked up in; none of them matches."""


class Ngrep(Frozen):
    """What an NF of kind ngrep does."""

    patterns: Annotated[int, Field(ge=1, le=5000)] = 100
    """That each payload is searched for; none is in what our own generators send."""


class Suricata(Frozen):
    """What an NF of kind suricata does."""

    rules: Annotated[int, Field(ge=1, le=50_000)] = 1000
    """By which it searches each payload; nothing that our own generators send has one of their patterns."""


class Ovs(Frozen):
    """How Open vSwitch is made."""

    ports: Literal["auto", "af_xdp", "system", "kernel", "dpdk"] = "auto"
    """How it takes packets from ports: AF_XDP sockets, AF_PACKET sockets (`system`), not at all because the kernel's
    module openvswitch forwards them (`kernel`), or DPDK; `auto` is DPDK for physical NICs that DPDK knows, and for
    virtual ports AF_XDP where it was built with that, else system. A result says which one it was."""
    socket_memory_mb: Annotated[int, Field(ge=64)] = 1024
    """Huge pages that it takes on the NUMA node of its physical ports, where DPDK drives these."""


class Vpp(Frozen):
    """How VPP is run, as vSwitch and as NF."""

    prefix: str = "/usr"
    """Where it is installed: the folder that has `bin/vpp`."""
    ports: Literal["auto", "dpdk", "native", "rdma", "af_xdp", "af_packet"] = "auto"
    """How the vSwitch takes packets from physical ports: DPDK, VPP's own drivers for PCI devices (virtio, vmxnet3,
    iavf), its rdma driver, AF_XDP or AF_PACKET sockets. `auto` is DPDK on NICs that DPDK knows, and VPP's own driver
    for such a NIC where the installation has no DPDK plugin. A result says which one it was."""
    main_heap_mb: Annotated[int, Field(ge=64)] = 512
    buffers_per_numa: Annotated[int, Field(ge=1024)] = 16384
    rx_mode: Literal["auto", "polling", "interrupt", "adaptive"] = "auto"
    """How workers wait for packets; `auto` is polling on dedicated cores and interrupt where a plan is oversubscribed.
    A result says which one it was."""
    poll_sleep_us: Literal["auto"] | Annotated[int, Field(ge=0)] = "auto"
    """How long the main thread sleeps when it has looked for work, in microseconds; `auto` is 0 on dedicated cores and
    100 where a plan is oversubscribed. A result says which one it was."""
