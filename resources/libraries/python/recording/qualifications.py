"""Qualifications of generators that are kept between runs: a file for each key, in a folder."""

import hashlib
import logging
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import error_text
from resources.libraries.python.model.bounds import LARGEST_INPUT_BYTES
from resources.libraries.python.model.measurements.qualification import Qualification, QualificationKey
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import PROJECT, RESOURCES
from resources.libraries.python.whole_files import write_whole

FOLDER = PROJECT / "results" / "qualifications"
SIMULATED_NIC = "simulated"
_SOURCES = RESOURCES / "libraries" / "python" / "drivers" / "generators"
_log = logging.getLogger(__name__)


def key_of(topology: Topology, environment: Environment, nic: str) -> QualificationKey:
    """Return what a qualification of a testbed's generator is valid for."""
    machine = environment.nodes.get(topology.tg_name, environment)
    return QualificationKey(
        generator=topology.tg.generator.driver,
        version=_version(),
        nic=SIMULATED_NIC if topology.world is World.SIM else nic,
        machine=f"{machine.hostname[:80]}, {machine.cpu_model[:80]}",
        kernel=machine.kernel[:200],
        cpus=topology.tg.generator.cores,
    )


@cache
def _version() -> str:
    """Return the digest of the sources of the generators: each change asks for a new qualification."""
    digest = hashlib.sha256()
    for path in sorted(path for path in _SOURCES.rglob("*") if path.suffix in (".py", ".o")):
        digest.update(str(path.relative_to(_SOURCES)).encode() + b"\0" + path.read_bytes())
    return f"sources {digest.hexdigest()[:12]}"


def file_of(key: QualificationKey, folder: Path) -> Path:
    """Return the file of a key."""
    return folder / f"{hashlib.sha256(key.model_dump_json().encode()).hexdigest()[:24]}.json"


def stored(key: QualificationKey, folder: Path = FOLDER) -> Qualification | None:
    """Return the qualification of a key; None where there is none, or its file is damaged, which is logged."""
    path = file_of(key, folder)
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_INPUT_BYTES + 1)
        if len(text) > LARGEST_INPUT_BYTES:
            raise CsitError(f"{path}: more than {LARGEST_INPUT_BYTES} bytes; a qualification has some kilobytes")
        found = Qualification.model_validate_json(text)
    except FileNotFoundError:
        return None
    except (OSError, ValidationError, CsitError) as error:
        why = error.strerror if isinstance(error, OSError) else error_text(error)
        _log.warning("%s: no qualification of this version (%s); the generator is qualified anew", path, why)
        return None
    return found if found.key == key else None


def store(found: Qualification, folder: Path = FOLDER) -> Path:
    """Keep a qualification in the place of an earlier one; return its file.

    Raises:
        CsitError: It cannot be written.
    """
    path = file_of(found.key, folder)
    write_whole(path, found.model_dump_json(indent=1) + "\n")
    return path
