"""Robot variables that choose how co-located network functions are measured."""

from collections.abc import Mapping

from pydantic import ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import ASKED, dotted
from resources.libraries.python.model.frames import frame as frame_of
from resources.libraries.python.model.result import Rerun
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.studies.interference.model.load import load_interference
from resources.libraries.python.studies.interference.model.record import InterferenceSpec
from resources.libraries.python.studies.shared.choices import Lookup, rerun_of, specification_file

DEFAULTS: Mapping[str, str] = {
    "FRAME": "",
    "INTERFERENCE_LOAD": "",
    "GUARANTEE": "",
    "REPETITIONS": "",
    "TRIAL_DURATION": "",
}
"""Used where a variable is not given: what the specification says."""


def asked_study(lookup: Lookup, specification: str, frame: str, load: str, guarantee: str) -> InterferenceSpec:
    """A study as its file says, changed by what a test and the variables say; variables count more.

    Args:
        lookup: The variables.
        specification: The file.
        frame: Of the test, several joined by commas; empty for as the file says, and so are the others.
        load: Packets per second, or `auto`; several joined by commas.
        guarantee: `yes` or `no`.

    Raises:
        ConfigError: The file or a choice makes no sense.
    """
    spec = load_interference(specification_file(specification))
    chosen = {
        "frame": _value(lookup, "FRAME") or frame,
        "load_pps": _value(lookup, "INTERFERENCE_LOAD") or load,
        "guarantee": _value(lookup, "GUARANTEE") or guarantee,
        "repetitions": _value(lookup, "REPETITIONS"),
        "duration_s": _value(lookup, "TRIAL_DURATION"),
    }
    changes: dict[str, object] = {name: text for name, text in chosen.items() if text}
    if chosen["frame"]:
        found = [frame_of(name) for name in _several("FRAME", chosen["frame"])]
        changes |= {"frame": found if len(found) > 1 else found[0], "frames": ()}
    if chosen["load_pps"]:
        loads = _several("INTERFERENCE_LOAD", chosen["load_pps"])
        changes |= {"load_pps": loads if len(loads) > 1 else loads[0], "loads_pps": ()}
    try:
        return InterferenceSpec.model_validate({**dict(spec), **changes}, context=ASKED)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = dotted(first["loc"])
        raise ConfigError(f"{specification}: {where} '{first['input']}': {first['msg']}") from error


def rerun_of_study(lookup: Lookup, topology: Topology) -> Rerun:
    """Return how to repeat the present test, for its record."""
    return rerun_of(lookup, topology, {name: _value(lookup, name) for name in DEFAULTS if _value(lookup, name)})


def _several(name: str, text: str) -> list[str]:
    found = [each.strip() for each in text.split(",") if each.strip()]
    if not found:
        raise ConfigError(f"{name}: '{text}' has no value")
    return found


def _value(lookup: Lookup, name: str) -> str:
    return str(lookup(name) or DEFAULTS[name])
