"""The program `nft`, run in the network namespace that the calling thread is in."""

import json
from collections.abc import Iterator

from resources.libraries.python.drivers.host.programs.program_output import completed, path_of
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.findings import PreflightProblem

_PROGRAM = "nft"
_PACKAGE = "nftables"
_WITHIN_S = 30.0


def load(ruleset: str) -> None:
    """Put a ruleset into force, all of it or nothing.

    Raises:
        Unsupported: There is no nft.
        CommandFailed: The kernel or nft refused it.
        NotReady: It does not end.
    """
    _run("-f", "-", script=ruleset)


def counters() -> dict[str, int]:
    """Packets by the name of the counter, of this namespace.

    Raises:
        Unsupported: There is no nft.
        CommandFailed: The table is gone, or cannot be read.
        NotReady: It does not end.
    """
    return read_counters(_run("-j", "list", "counters"))


def read_counters(listed: str) -> dict[str, int]:
    """Packets by the name of the counter, from what the program lists as JSON.

    Raises:
        ValueError: It is something else.
    """
    try:
        rows = json.loads(listed)["nftables"]
        return {row["counter"]["name"]: int(row["counter"]["packets"]) for row in rows if "counter" in row}
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no list of counters: {error!r}") from error


def version() -> str:
    """As it calls itself: `nftables v1.0.6`.

    Raises:
        Unsupported: There is no nft.
    """
    return _run("--version").partition("(")[0].strip()


def missing(*_: object) -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks."""
    if path_of(_PROGRAM) is None:
        yield PreflightProblem(
            f"{_PROGRAM} missing for NFs of kind linux_firewall, linux_stateful_firewall, linux_nat and linux_gateway",
            f"install it: apt-get install {_PACKAGE}",
        )


def _run(*words: str, script: str = "") -> str:
    path = path_of(_PROGRAM)
    if path is None:
        raise Unsupported("; ".join(map(str, missing())))
    argv = (path, *words)
    done = completed(argv, _WITHIN_S, stdin=script, check=False)
    if done.returncode:
        # Of a ruleset nft also shows the lines; the first one says what is wrong.
        raise CommandFailed(argv, done.returncode, (done.stderr.strip().splitlines() or ["nothing on stderr"])[0])
    return done.stdout
