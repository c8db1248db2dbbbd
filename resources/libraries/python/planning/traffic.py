"""Traffic that generators make and the NFs of a cell take, and the refusal of other traffic."""

from collections.abc import Iterable, Iterator

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError, Unsupported
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.driver import GeneratorDriver, Traffic
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Departures, Protocol
from resources.libraries.python.model.testbed.topology import Topology


def traffic_of(generator: GeneratorDriver, protocol: Protocol) -> Traffic:
    """What a generator sends as a protocol: TCP is connections where it sends lost packets again."""
    if protocol is Protocol.UDP:
        return Traffic.UDP
    return Traffic.TCP if protocol is Protocol.TCP and protocol in generator.resends else Traffic.PACKETS


def load_protocol(generator: GeneratorDriver, of: Iterable[NfKind]) -> Protocol | None:
    """The first protocol of a generator that NFs of all these kinds take; None where they take none."""
    taken = [kind.driver.takes for kind in of]
    every = generator.protocols
    return next((each for each in every if all(traffic_of(generator, each) in takes for takes in taken)), None)


def as_taken(trial: Trial, generator: str, of: Iterable[NfKind]) -> Trial:
    """Return a trial of which NFs of some kinds take the protocol: by default the first one that all take.

    Raises:
        Unsupported: They do not take that protocol.
    """
    driver, of = driver_registry.generators()[generator], tuple(dict.fromkeys(of))
    if refusal := next(protocol_refusals(driver, of, trial.protocol), None):
        raise Unsupported(refusal)
    chosen = trial.protocol or load_protocol(driver, of)
    return trial if chosen in (trial.protocol, driver.protocols[0]) else trial.model_copy(update={"protocol": chosen})


def not_taken(topology: Topology, of: Iterable[NfKind], frame: Frame) -> str | None:
    """Return why packets of a frame size cannot be sent through NFs of some kinds; None where they can."""
    generator = driver_registry.generators()[topology.tg.generator.driver]
    return next(_refusals(generator, tuple(dict.fromkeys(of)), frame), None)


def _refusals(generator: GeneratorDriver, of: tuple[NfKind, ...], frame: Frame) -> Iterator[str]:
    if frame.ip_version == 6:
        if not generator.ipv6:
            yield f"the {generator.label} sends no IPv6"
        for kind in of:
            if kind.driver.translates:
                yield f"IPv6 does not apply to an NF of kind {kind}: it translates addresses of IPv4"
            if kind.is_vm or Traffic.IPV6 not in kind.driver.takes:
                yield f"an NF of kind {kind} is set up for IPv4 only here"
    if frame.capture is None:
        yield from protocol_refusals(generator, of)
        return
    if not generator.captures:
        yield f"the {generator.label} sends no packets of a capture"
    yield from (f"{_only(kind)}, not {Traffic.CAPTURES}" for kind in of if Traffic.CAPTURES not in kind.driver.takes)


def protocol_refusals(
    generator: GeneratorDriver, of: Iterable[NfKind], protocol: Protocol | None = None
) -> Iterator[str]:
    """Yield why NFs of some kinds do not take a protocol of a generator; None for the first one that all take."""
    of = tuple(of)
    if protocol is not None:
        what = traffic_of(generator, protocol)
        yield from (f"{_only(kind)}, not {what}" for kind in of if what not in kind.driver.takes)
    elif load_protocol(generator, of) is None:
        others = driver_registry.generators().values()
        able = [each.name for each in others if each.factory is not None and load_protocol(each, of) is not None]
        limited = ", ".join(_only(kind) for kind in of if Traffic.PACKETS not in kind.driver.takes)
        remedy = f"; {' or '.join(able)} would, chosen by GENERATOR" if able else ""
        yield f"{limited}, and the {generator.label} sends nothing that all NFs take{remedy}"


def _only(kind: NfKind) -> str:
    taken = (each for each in Traffic if each in kind.driver.takes)
    return f"an NF of kind {kind} takes {' and '.join(taken)} only"


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
