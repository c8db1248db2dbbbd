"""What generators can send for a sweep, by the name that a topology gives them."""

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.sweep.model.record import Protocol

_OURS = (Protocol.IP, Protocol.UDP)
_SENDS: dict[str, tuple[Protocol, ...]] = {
    "auto": _OURS,
    "xdp": _OURS,
    "ring": _OURS,
    "trex": (Protocol.IP,),
    "iperf3": (Protocol.UDP, Protocol.TCP),
    "ditg": (Protocol.UDP, Protocol.TCP, Protocol.ICMP),
    "sim": tuple(Protocol),
}
"""The usual one first. Packets of TRex are made of the same traffic profile as those of the built-in generators."""
_KEEP_A_LOG = frozenset({"ditg", "iperf3"})


def protocol_of(generator: str, asked: str) -> Protocol:
    """The protocol of a sweep; `auto` is what the generator usually sends.

    Raises:
        ConfigError: There is no such protocol, or the generator cannot send it.
    """
    sends = _SENDS.get(generator, _OURS)
    if asked == "auto":
        return sends[0]
    known = [each.value for each in Protocol]
    if asked not in known:
        raise ConfigError(f"there is no protocol '{asked}' for a sweep; there are auto, {', '.join(known)}")
    if (protocol := Protocol(asked)) not in sends:
        others = [name for name, row in _SENDS.items() if protocol in row and name != "sim"]
        raise ConfigError(
            f"the generator {generator} sends {', '.join(sends)} and no {protocol}; "
            f"{' or '.join(others)} would, chosen by GENERATOR"
        )
    return protocol


def keeps_a_log(generator: str) -> bool:
    """Whether a generator logs every second of a trial, so that a load is one long trial instead of many short ones."""
    return generator in _KEEP_A_LOG


def datagrams_of(generator: str) -> Protocol | None:
    """UDP, which all network functions take, from a generator that sends it as a load of packets; else its own."""
    return Protocol.UDP if Protocol.UDP in _SENDS.get(generator, _OURS) and not keeps_a_log(generator) else None
