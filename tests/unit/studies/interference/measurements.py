"""Measurements that never took place: network functions with a known truth, for tests of the analysis."""

from collections.abc import Iterable, Mapping
from random import Random
from types import SimpleNamespace
from typing import cast

from resources.libraries.python.csv_tables import Row
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.interference import model
from resources.libraries.python.studies.interference.analysis.estimates import SampledEstimate, exact
from resources.libraries.python.studies.interference.analysis.findings import Throughputs
from resources.libraries.python.studies.interference.analysis.tables import interference_tables

FRAME = Frame(name="512B", parts=(FramePart(frame_bytes=512),))

Company = tuple[str, tuple[str, ...]]
"""A target and what is beside it."""


def network_shares(found: model.Interference) -> dict[int, float]:
    """Known shares of network I/O, by the number of co-located NFs."""
    shares = found.findings.shares if found.findings else ()
    ours = [each for each in shares if each.resource is model.Resource.NETWORK and not each.target]
    return {each.together: each.share.value for each in ours if each.share}


def spec_of(*names: str, **more: object) -> model.InterferenceSpec:
    contenders = tuple(model.Contender(name=name, type=model.NfType.GATEWAY, kind=NfKind("sim")) for name in names)
    return model.InterferenceSpec.model_validate({"name": "pairs", "contenders": contenders, "frame": FRAME, **more})


def measurement(
    target: str, against: tuple[str, ...], throughput_pps: float, repetition: int = 0, **more: object
) -> model.ColocationMeasurement:
    data = {
        "target": target, "against": against, "repetition": repetition, "turn": 0, "load_pps": 1e5, "frame": "512B",
        "guaranteed": False, "throughput_pps": throughput_pps, "loss_ratio": None, "response_s": None, "cpu": None,
        "memory_bytes": None, "cache_misses": None, **more,
    }  # fmt: skip
    return model.ColocationMeasurement.model_validate(data)


def measured(
    alone: Mapping[str, float],
    beside: Mapping[Company, float],
    repetitions: int = 5,
    noise: float = 0.0,
    seed: int = 1,
    **more: object,
) -> list[model.ColocationMeasurement]:
    """All repetitions of targets alone (pps) and in company (normalized)."""
    draw = Random(seed)
    truth: dict[Company, float] = {(name, ()): pps for name, pps in alone.items()}
    truth |= {(target, against): alone[target] * share for (target, against), share in beside.items()}
    return [
        measurement(target, against, pps * draw.gauss(1, noise), repetition, **more)
        for repetition in range(repetitions)
        for (target, against), pps in truth.items()
    ]


def exactly(pairs: Mapping[tuple[str, str], float]) -> dict[Company, SampledEstimate]:
    """Normalized throughputs of pairs that are known without an error."""
    return {(target, (other,)): exact(mean) for (target, other), mean in pairs.items()}


def normalized(
    rows: Iterable[model.ColocationMeasurement], guarantee: model.Resource | None = None
) -> tuple[model.Normalized, ...]:
    return Throughputs(rows).rows(guarantee)


def every_pair(names: Iterable[str], seed: int) -> dict[tuple[str, str], float]:
    draw, names = Random(seed), list(names)
    return {(one, other): draw.uniform(0.1, 1.0) for one in names for other in names}


def tables(found: model.Interference | None) -> dict[str, list[Row]]:
    return dict(interference_tables(cast(model.InterferenceRecord, SimpleNamespace(interference=found))))
