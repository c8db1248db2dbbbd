"""Maximum loads of generators in a sweep, by the name that a topology gives them."""

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.request.traffic import Departures, Protocol


def protocol_of(generator: str, asked: str) -> Protocol:
    """The protocol of a sweep; `auto` is what the generator usually sends.

    Raises:
        ConfigError: There is no such protocol, or the generator cannot send it.
    """
    sends = driver_registry.generators()[generator].protocols
    if asked == "auto":
        return sends[0]
    known = [each.value for each in Protocol]
    if asked not in known:
        raise ConfigError(f"there is no protocol '{asked}' for a sweep; there are auto, {', '.join(known)}")
    if (protocol := Protocol(asked)) not in sends:
        known_generators = driver_registry.generators().values()
        others = [each.name for each in known_generators if protocol in each.protocols and each.factory is not None]
        raise ConfigError(
            f"the generator {generator} sends {', '.join(sends)} and no {protocol}; "
            f"{' or '.join(others)} would, chosen by GENERATOR"
        )
    return protocol


def departures_of(generator: str, asked: str) -> Departures:
    """The distribution of the times between packets of a sweep.

    Raises:
        ConfigError: There is no such distribution, or the generator cannot send with it.
    """
    known = [each.value for each in Departures]
    if asked not in known:
        raise ConfigError(f"DEPARTURES: there is no '{quoted(asked)}'; there are {', '.join(known)}")
    departures = Departures(asked)
    if departures not in driver_registry.generators()[generator].departures:
        able = [each.name for each in driver_registry.generators().values() if departures in each.departures]
        raise ConfigError(
            f"DEPARTURES: the generator {generator} cannot send with {departures} times between packets; "
            f"{' or '.join(able)} would, chosen by GENERATOR"
        )
    return departures


def directions_of(generator: str, protocol: Protocol) -> tuple[Direction, ...]:
    """Directions in which a generator sends payload of a protocol."""
    one_way = protocol in driver_registry.generators()[generator].one_way
    return tuple(Direction)[:1] if one_way else tuple(Direction)


def resends(generator: str, protocol: Protocol) -> bool:
    """Whether a generator sends lost packets of a protocol again, so that its counts show no loss."""
    return protocol in driver_registry.generators()[generator].resends


def keeps_a_log(generator: str) -> bool:
    """Whether a generator logs every second of a trial, so that a load is one long trial instead of many short ones."""
    return driver_registry.generators()[generator].keeps_log


def datagrams_of(generator: str) -> Protocol | None:
    """UDP, which all network functions take, from a generator that sends it as a load of packets; else its own."""
    return (
        Protocol.UDP
        if Protocol.UDP in driver_registry.generators()[generator].protocols and not keeps_a_log(generator)
        else None
    )
