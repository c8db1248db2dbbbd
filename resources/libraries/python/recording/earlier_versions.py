"""Records that earlier versions of the software wrote, in today's form.

Before 3.0 density tests had records of versions 1.0 to 2.0 without a key for the study, and all other tests had
records of versions 1.0 and 2.0 with the keys `record` and `kind`. What 1.x calls `mrr` of a density test is `orr` where
its load had been lowered.
"""

from collections.abc import Mapping
from typing import Any

from resources.libraries.python.model.record import SCHEMA_VERSION

DENSITY_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "2.0")
OTHER_VERSIONS = ("1.0", "2.0")
STUDY_OF_KIND = {
    "sweep": "sweep",
    "bursts": "sweep",
    "chain": "sweep",
    "sizing": "sizing",
    "chain_study": "chains",
    "interference": "interference",
}
_PAYLOAD = {
    "sweep": ("sweep", "profile", "predictions"),
    "sizing": ("sizing",),
    "chains": ("chain_study",),
    "interference": ("interference",),
}
_NOT_LOWERED = 2.0


def is_earlier(data: Mapping[str, Any]) -> bool:
    """Whether a record is of an earlier version that can be read."""
    version = str(data.get("schema_version"))
    if data.get("record") == "characterization":
        return version in OTHER_VERSIONS and str(data.get("kind")) in STUDY_OF_KIND
    return "study" not in data and version in DENSITY_VERSIONS


def in_todays_form(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a record of an earlier version, see `is_earlier`. Keys that were never there stay an error."""
    if "record" in data:
        study = STUDY_OF_KIND[data["kind"]]
        others = {key for each, keys in _PAYLOAD.items() if each != study for key in keys if not data.get(key)}
        pattern = {"pattern": data["kind"]} if study == "sweep" else {}
        rest = {key: value for key, value in data.items() if key not in {"record", "kind", *others}}
        return {**rest, **pattern, "study": study, "schema_version": SCHEMA_VERSION}
    return {**with_renamed_rates(data), "study": "density", "schema_version": SCHEMA_VERSION}


def with_renamed_rates(data: Mapping[str, Any]) -> dict[str, Any]:
    """Move `mrr` of a density record, or of some of its keys, to `orr` where it was one."""
    found = data.get("mrr")
    rates = (found.get("offered_pps"), found.get("mean_pps")) if isinstance(found, dict) else (None, None)
    offered_pps, mean_pps = (rate if isinstance(rate, int | float) else 0.0 for rate in rates)
    if found is None or not was_lowered(
        str(data.get("schema_version")), offered_pps, mean_pps, simulated=bool(data.get("simulated"))
    ):
        return dict(data)
    changed: dict[str, Any] = {**data, "mrr": None, "orr": found}
    if isinstance(verdict := data.get("verdict"), dict):
        findings = [_with(each, numbers=_renamed(each.get("numbers"))) for each in verdict.get("findings", ())]
        changed["verdict"] = {**verdict, "findings": findings}
    if "itemized" in data:
        changed["itemized"] = [
            _with(each, number="ORR" if each.get("number") == "MRR" else each.get("number"))
            for each in data["itemized"]
        ]
    return changed


def was_lowered(version: str, offered_pps: float, mean_pps: float, *, simulated: bool) -> bool:
    """Whether the load of a record's `mrr` had been lowered, as versions 1.x did with real packets.

    They offered at most four times the best that had come back. Where less than twice of what came back was offered,
    that limit was not reached, and the load was the most that the generator could send.
    """
    return version.startswith("1.") and not simulated and offered_pps >= _NOT_LOWERED * mean_pps


def _with(part: Mapping[str, Any], **changes: object) -> dict[str, Any]:
    return {**part, **{key: value for key, value in changes.items() if value is not None}}


def _renamed(numbers: object) -> list[object] | None:
    return ["ORR" if each == "MRR" else each for each in numbers] if isinstance(numbers, list | tuple) else None
