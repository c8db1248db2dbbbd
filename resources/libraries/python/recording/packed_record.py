"""The short form of a record, as it travels in `output.xml`: what rows of tables need as it is, the rest compressed.

A record is JSON of some 80 kB, nineteen twentieths of which are trials, histograms, the plan and the environment. They
are replaced by one key, `packed`: the base64 of zlib (RFC 1950) of their JSON object. Another new key, `counted`, has
the digest of the whole record, and of a density test the few figures of the packed part that a row of a table has: a
table of tests is made without unpacking anything. A record's class marks its packed fields.
"""

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import msgspec

from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.record import Record, packed_keys
from resources.libraries.python.model.result import Environment, LatencyAtLoad
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.studies.density.model.record import DensityRecord
from resources.libraries.python.unpacking import UnpackError, inflate

_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class NotUnpacked(ValueError):
    """The packed part of a record cannot be unpacked, for the reason in the text."""


@dataclass(frozen=True, slots=True)
class WorstLatency:
    """Percentiles of latency at one load, each the highest of all instances and directions."""

    label: str
    """As `LatencyAtLoad.label`."""
    p50_ns: int | None
    p99_ns: int | None
    p999_ns: int | None


@dataclass(frozen=True, slots=True)
class Counted:
    """Figures of the packed part of a record that the row of a test has."""

    digest: str
    """SHA-256 of the record's whole JSON: equal for one record, wherever it was written."""
    environment: str
    """Digest of the environment."""
    version: str
    revision: str | None
    planned: bool
    oversubscribed: bool
    """As planned; the verdict may say so too."""
    real_cores: float | None
    """None where there was no plan."""
    trials: int
    trials_s: float
    latency: tuple[WorstLatency, ...]
    """A part for each load at which it was measured."""


def counted(result: DensityRecord, digest: str | None = None) -> Counted:
    """Count what rows need.

    Args:
        result: The record.
        digest: Of its JSON, where that is known already.
    """
    return Counted(
        digest=digest or hashlib.sha256(result.model_dump_json().encode()).hexdigest(),
        environment=digest_of(result.environment),
        version=version_of(result),
        revision=revision_of(result.environment),
        planned=result.plan is not None,
        oversubscribed=result.plan is not None and result.plan.cores.oversubscribed,
        real_cores=_real_cores(result.plan),
        trials=len(result.trials),
        trials_s=sum(trial.total_duration_s for trial in result.trials),
        latency=tuple(map(_worst, result.latency)),
    )


def _worst(found: LatencyAtLoad) -> WorstLatency:
    def highest(values: Iterable[int | None]) -> int | None:
        return max((value for value in values if value is not None), default=None)

    return WorstLatency(
        found.label,
        highest(flow.p50_ns for flow in found.flows),
        highest(flow.p99_ns for flow in found.flows),
        highest(flow.p999_ns for flow in found.flows),
    )


def version_of(result: Record) -> str:
    """Version of the vSwitch, or of the kernel if that is the vSwitch."""
    if result.simulated:
        return "simulated"
    version = result.facts.get("vswitch", {}).get("vswitch")
    return version or f"Linux {result.environment.kernel.split(' ', 1)[0]}"


def revision_of(environment: Environment) -> str | None:
    """Short git revision, with a `+` where there were uncommitted changes."""
    if environment.git_revision is None:
        return None
    return environment.git_revision[:12] + ("+" if environment.git_dirty else "")


def digest_of(environment: Environment) -> str:
    """The same for equal environments."""
    return hashlib.sha256(environment.model_dump_json().encode()).hexdigest()[:16]


def _real_cores(plan: Plan | None) -> float | None:
    """Of the (first) DUT, as data cores are counted. A generator on it has one thread on each of its cores."""
    if plan is None:
        return None
    return float(plan.cores.cores_needed - sum(thread.owner == GENERATOR for thread in plan.cores.on(None)))


def pack(record: Record, digest: str | None = None) -> str:
    """Return one JSON object on one line: the light keys, `counted` and `packed`.

    Args:
        record: The record.
        digest: Of its JSON as first written, where that is known.
    """
    digest = digest or hashlib.sha256(record.model_dump_json().encode()).hexdigest()
    packed = zlib.compress(record.model_dump_json(include=set(packed_keys(type(record)))).encode(), 6)
    return f'{light(record, digest)[:-1]},"packed":"{base64.b64encode(packed).decode()}"}}'


def light(record: Record, digest: str) -> str:
    """Return the JSON of a packed record without `packed`."""
    figures = asdict(counted(record, digest)) if isinstance(record, DensityRecord) else {"digest": digest}
    text = record.model_dump_json(exclude=set(packed_keys(type(record))))
    return f'{text[:-1]},"counted":{json.dumps(figures, separators=(",", ":"))}}}'


def unpack(packed: str | bytes) -> bytes:
    """The JSON object of the heavy keys.

    Args:
        packed: What stands under `packed`.

    Raises:
        NotUnpacked: It is damaged, or unpacks to more than any record has.
    """
    try:
        return inflate(base64.b64decode(packed, validate=True))
    except (binascii.Error, ValueError) as error:
        raise NotUnpacked(f"its packed part is damaged: {error}") from error
    except UnpackError as error:
        raise NotUnpacked(f"its packed part {error}") from error


def unpacked(text: str | bytes) -> tuple[str | bytes, str | None]:
    """The whole JSON of a record in either form, and the digest that the short form names; None for the plain form.

    Raises:
        NotUnpacked: The packed part is damaged.
        ValueError: It is no JSON at all.
    """
    if (isinstance(text, str) and '"packed"' not in text) or (isinstance(text, bytes) and b'"packed"' not in text):
        return text, None
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("packed"), str):
        return text, None
    heavy = unpack(data.pop("packed"))
    figures = data.pop("counted", None)
    if not heavy.startswith(b"{") or _KEYS.decode(heavy).keys() & data.keys():
        raise NotUnpacked("its packed part is not that of a record")
    digest = figures.get("digest") if isinstance(figures, dict) else None
    return json.dumps(data).encode()[:-1] + b"," + heavy[1:], digest if isinstance(digest, str) else None
