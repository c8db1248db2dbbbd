"""Traffic that the NFs of a cell take, and the refusal of other traffic."""

from collections.abc import Iterable, Iterator

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.driver import GeneratorDriver, Traffic
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
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
