"""Histories of nights as rows, with what is planted in them stated."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from csit_utils.dataset.goal_words import profile_text
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.result import Environment
from tests.loaded import Dataset
from tests.unit.csit_utils.builders import ENVIRONMENT, PROFILE
from tests.unit.csit_utils.in_memory import InMemory

FIRST = datetime(2026, 11, 1, 22, 0, tzinfo=UTC)


class Rows(InMemory):
    """Contents of rows alone."""

    def __init__(self, tests: Sequence[TestRow], *environments: Environment) -> None:
        super().__init__(Dataset())
        self.__dict__["tests"] = tests  # where cached properties keep what they found
        self.__dict__["environments"] = {one.digest: one for one in environments}


def environment(version: str = "26.06", **changes: Any) -> Environment:
    """A machine with this version of the vSwitch."""
    return ENVIRONMENT.model_copy(update={"versions": ENVIRONMENT.versions | {"VPP": version}, **changes})


def row(
    pdr_pps: float | None,
    night: int = 0,
    testbed: str = "lab-a",
    cell: tuple[str, int, int] = ("CSC", 1, 1),
    **changes: Any,
) -> TestRow:
    """An NDR and PDR test; NDR is nine tenths of PDR. Without a rate it failed."""
    kind, chains, nodes = cell
    begun = FIRST + timedelta(days=night, minutes=10 * chains + nodes)
    passed = pdr_pps is not None
    name, run = f"64B-1c-{kind.lower()}-{chains}ch-{nodes}n-ndrpdr", f"{testbed}/{night}/output.xml"
    fields: dict[str, Any] = {
        "anchor": f"test-{testbed}-{night}-{name}", "test_id": f"Density.{name}", "test_name": name, "source": run,
        "recorded": True, "status": "PASS" if passed else "FAIL", "message": "" if passed else "no traffic at hop 2",
        "tags": "", "run": run, "started_at": begun.isoformat(),
        "finished_at": (begun + timedelta(minutes=5)).isoformat(), "world": "lab", "simulated": False,
        "testbed": testbed, "drivers": "generator trex, vswitch vpp", "version": "VPP 26.06",
        "revision": "c3313a2d0f5b", "environment": environment().digest, "profile": PROFILE.name,
        "goals": profile_text(PROFILE), "test_type": "NDRPDR", "service_type": kind, "nf_chains": chains,
        "nf_nodes": nodes, "nf_size": "1c", "vs_dtc": 1, "frame": "64B", "frame_mean_bytes": 64.0,
        "verdicts": "measured" if passed else "failed",
    }  # fmt: skip
    for goal, loss_ratio, share in (("ndr", 0.0, 0.9), ("pdr", 0.005, 1.0)):
        lower = share * pdr_pps if pdr_pps is not None else None
        fields |= {f"{goal}_loss_ratio": loss_ratio, f"{goal}_complete": passed or None, f"{goal}_lower_pps": lower}
        fields[f"{goal}_upper_pps"] = lower * 1.005 if lower is not None else None
    return TestRow(**{**fields, **changes})


def nights(
    count: int,
    rate_of: Callable[[int], float | None],
    testbed: str = "lab-a",
    cell: tuple[str, int, int] = ("CSC", 1, 1),
    noise: float = 0.005,
    **changes: Any,
) -> list[TestRow]:
    """A cell over nights: a rate for each, with noise (relative standard deviation) on it."""
    rng = random.Random(f"{testbed}{cell}")
    made = []
    for night in range(count):
        rate, wobble = rate_of(night), rng.gauss(1, noise)
        made.append(row(None if rate is None else rate * wobble, night, testbed, cell, **changes))
    return made


NIGHTS = 20
STEP_NIGHT = 12


def planted() -> Rows:
    """Two testbeds: on lab-a one fall, one rise, two bands, a failure, and a fall of the last night; lab-b is quiet.

    The fall came with another version of the vSwitch.
    """
    rng = random.Random(7)
    bands = [rng.random() < 0.35 for _ in range(NIGHTS)]
    old, new = environment(), environment("26.10")
    cells: list[tuple[tuple[str, int, int], Callable[[int], float | None]]] = [
        (("CSC", 1, 1), lambda _: 3e6),
        (("CSC", 2, 1), lambda night: 2e6 if night < STEP_NIGHT else 1.84e6),
        (("CSC", 4, 1), lambda night: 1e6 if night < STEP_NIGHT - 3 else 1.06e6),
        (("VSC", 1, 1), lambda night: 0.8e6 if bands[night] else 1e6),
        (("CSP", 1, 1), lambda night: None if night == 5 else 4e6),
        (("CSP", 2, 1), lambda night: 3e6 if night < NIGHTS - 1 else 2.6e6),
    ]
    rows = [each for cell, rate_of in cells for each in nights(NIGHTS, rate_of, cell=cell)]
    upgrade = {"version": "VPP 26.10", "environment": new.digest}
    rows = [replace(each, **upgrade) if int(each.run.split("/")[1]) >= STEP_NIGHT else each for each in rows]
    return Rows([*rows, *nights(6, lambda _: 2.5e6, "lab-b")], old, new)
