"""`otg`: serve the built-in generator over the Open Traffic Generator API."""

import ssl
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import print_sentence
from resources.libraries.python.drivers.generators.otg.server.http_api import listening, serve
from resources.libraries.python.drivers.generators.otg.server.ports import missing_ports
from resources.libraries.python.drivers.generators.otg.server.schema import LONGEST_S, MOST_FLOWS
from resources.libraries.python.drivers.generators.otg.server.traffic import Traffic
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.ranges import expand

_MOST_INTERFACES = 64
_LONGEST_NAME = 255
"""Of a file, as which `ip netns` keeps a namespace."""


def otg(
    interfaces: Annotated[
        list[str] | None, typer.Argument(help="Interfaces that may be used as ports.", show_default="all but lo")
    ] = None,
    address: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="TCP port; 0 for a free one.")] = 8443,
    namespace: Annotated[
        str,
        typer.Option(
            help="Network namespace of the interfaces; it and they may be made later.", show_default="present one"
        ),
    ] = "",
    cpus: Annotated[
        str, typer.Option(help="CPUs that send, before all other programs there, such as 2,3.", show_default="any")
    ] = "",
    certificate: Annotated[
        Path | None, typer.Option(help="PEM file with certificate and key, for HTTPS.", show_default="HTTP")
    ] = None,
) -> None:
    """Serve the built-in generator by the OTG API (snappi).

    OTG is Open Traffic Generator. A port's location is the name of its interface. Flows have Ethernet, VLAN, IPv4,
    IPv6, UDP and TCP headers, a fixed size and a constant rate. What the generator cannot do is refused with the name
    of the field. Any program that can reach the address can send: it is loopback by default. Ctrl-C or SIGTERM stops
    all traffic. Root is needed for raw packets.

    \b
    Examples:
    ./csit otg eth1 eth2
    ./csit otg --namespace lab --port 9000
    ./csit otg eth1 eth2 --address 192.0.2.1 --certificate server.pem
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if "/" in namespace or namespace in {".", ".."} or len(namespace) > _LONGEST_NAME:
        raise ConfigError(f"--namespace {quoted(namespace)}: expected a name as in /run/netns")
    names = list(dict.fromkeys(interfaces or ()))
    if len(names) > _MOST_INTERFACES:
        raise ConfigError(f"{len(names)} interfaces, at most {_MOST_INTERFACES} can be served")
    context, workers = _context(certificate), _cpus(cpus)
    missing = missing_ports(names, namespace, workers)
    with (
        closing(Traffic(names, namespace, workers)) as traffic,
        listening((address, port), context) as server,
    ):
        host, number = server.server_address[:2]
        scheme = "http" if context is None else "https"
        served = ", ".join(names) or "all interfaces"
        print_sentence(f"{scheme}://{host!s}:{number} serves {served}; at most {MOST_FLOWS} flows, {LONGEST_S} s each")
        if missing:
            print_sentence(missing, err=True)
        try:
            serve(server, traffic)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)


def _cpus(text: str) -> tuple[int, ...]:
    try:
        return expand(text) if text else ()
    except ValueError as error:
        raise ConfigError(f"--cpus: {error}") from error


def _context(certificate: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate)
    except OSError as error:  # SSLError is one
        raise ConfigError(f"{certificate}: no certificate and key in PEM: {error.strerror or error}") from error
    return context
