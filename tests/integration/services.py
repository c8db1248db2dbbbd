"""Small services of shell scripts for tests: two components, scripts as a test wants them."""

import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.host.cgroups import cgroups
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.services.orchestrator import LocalOrchestrator, LocalService
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.service.load import Specifications, load_specifications
from resources.libraries.python.model.service.spec import Share, Size
from tests.integration.traffic import machine

IDLE = "sleep 3600 &"
ANSWER = "echo indicator $CSIT_LOAD"


def missing_for_instances() -> str:
    """Why instances cannot be limited here; empty where they can."""
    try:
        cgroups.discover()
    except Unsupported as error:
        return str(error)
    return ""


def specifications(
    folder: Path, *, install: str = IDLE, generator: str = ANSWER, remove: str = "", **changes: Any
) -> Specifications:
    """Write both files with their scripts, and load them as a user's."""
    for name, body in (("install", install), ("generator", generator), ("remove", remove)):
        path = folder / f"{name}.sh"
        path.write_text(f"#!/bin/sh\nset -eu\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    deployment = {
        "vnf_name": "small",
        "components": [
            {"name": "back-end", "short": "be", "flavors": ["small"], "most_instances": 4},
            {"name": "front", "short": "fr", "flavors": ["small"], "most_instances": 4},
        ],
        "flavors": {"small": {"vcpus": 0.2, "memory_mb": 48}},
        "install": "install.sh",
        "mode": "custom",
        "sizes": [{"components": {"back-end": {"flavor": "small"}, "front": {"flavor": "small"}}}],
        **({"remove": "remove.sh"} if remove else {}),
        **changes,
    }
    workload = {
        "range": {"min": 10, "max": 30},
        "increase": 10,
        "generator": "generator.sh",
        "duration_s": 0.2,
        "within_s": 60.0,
    }
    (folder / "deployment.json").write_text(json.dumps(deployment))
    (folder / "workload.json").write_text(json.dumps(workload))
    return load_specifications(folder / "deployment.json", folder / "workload.json")


def size(back_ends: int = 1, fronts: int = 1) -> Size:
    return Size(
        components={
            "back-end": Share(flavor="small", instances=back_ends),
            "front": Share(flavor="small", instances=fronts),
        }
    )


def service_of(lock: MachineLock, specs: Specifications, wanted: Size | None = None) -> LocalService:
    """Not started."""
    return LocalOrchestrator(specs, lock, discover(), oversubscribe=True).service(wanted or size())


@contextmanager
def running(specs: Specifications, wanted: Size | None = None) -> Iterator[LocalService]:
    """A service that is up; the record of the machine has nothing of it afterwards."""
    with machine() as lock:
        service = service_of(lock, specs, wanted)
        try:
            service.start()
            yield service
        finally:
            service.stop()
            assert lock.leftovers() == []


def groups() -> set[str]:
    """Control groups of instances on this machine."""
    return {str(path) for root in set(cgroups.discover().roots.values()) for path in root.glob("csit-*")}
