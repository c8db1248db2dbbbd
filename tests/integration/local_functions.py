"""Network functions of the local testbed by themselves, and what nftables counts in them."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.cell import Tap
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.testbed.deployment.cell import Deployment
from tests.builders import cell_of, shipped
from tests.integration.user_space import deployed, is_as_planned


def nft(owner: str, *words: str) -> str:
    argv = ["nft", *words]
    return namespaces.run_inside(
        f"csit-{owner}", lambda: subprocess.run(argv, capture_output=True, check=True, text=True).stdout
    )


def ruleset(owner: str) -> list[dict[str, Any]]:
    """What the kernel has in force for an NF."""
    return [dict(row) for row in json.loads(nft(owner, "-j", "list", "ruleset"))["nftables"]]


def named(owner: str) -> dict[str, int]:
    return {row["counter"]["name"]: row["counter"]["packets"] for row in ruleset(owner) if "counter" in row}


TOPOLOGY = shipped("local")


LOAD_PPS = 4000.0


@contextmanager
def running(
    *kinds: NfKind,
    limits: tuple[Limits, ...] = (),
    programs: tuple[UserProgram | None, ...] = (),
    taps: tuple[Tap, ...] = (),
) -> Iterator[Deployment]:
    asked = cell_of("CSC", 1, len(kinds), nf_kinds=kinds, limits=limits, programs=programs, taps=taps)
    with deployed(TOPOLOGY, asked) as deployment:
        yield deployment
        is_as_planned(deployment)


def trial(load_pps: float = LOAD_PPS, probe_pps: float = 0.0, protocol: Protocol | None = None) -> Trial:
    return Trial(
        load_pps=load_pps, duration_s=0.5, frame=frame("128B"), probe_pps=probe_pps, purpose="sweep", protocol=protocol
    )


def done(deployment: Deployment) -> dict[str, ProcessedPackets]:
    return dict(deployment.parts.functions.processed())


def conntrack(owner: str, *options: str) -> str:
    """What the independent program says in the namespace of a network function."""
    argv = ["ip", "netns", "exec", namespaces.name_of(owner), "conntrack", *options]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
