"""Inputs of `profile`: S_statistics files as services, flavors or parts of a chain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import text_of
from resources.libraries.python.studies.sweep.analysis.path_baseline import MeasuredPath
from resources.libraries.python.studies.sweep.analysis.profile import profile_of
from resources.libraries.python.studies.sweep.analysis.statistics_csv import read_statistics
from resources.libraries.python.studies.sweep.model.profile import Profile
from resources.libraries.python.studies.sweep.model.record import SweepPoint

_TABLE = "S_statistics"


@dataclass(frozen=True)
class ProfiledService:
    """A file of points, and the profile of it."""

    name: str
    points: tuple[SweepPoint, ...]
    vcpus: Mapping[str, int]
    """Of each VNF."""
    profile: Profile


def read_services(inputs: Sequence[str], vcpus: Sequence[str]) -> tuple[ProfiledService, ...]:
    """Read and profile `FILE` or `NAME=FILE`, with the numbers of vCPUs given.

    These are `N`, `VNF=N`, `NAME/VNF=N`, or `NAME=N` for a service of one VNF.

    Raises:
        ConfigError: A file cannot be read, two have the same name, or a number of vCPUs is for no VNF.
    """
    said = _vcpus_said(vcpus)
    files = [(name, read_statistics(text_of(path), str(path))) for name, path in map(_named, inputs)]
    names = [name for name, _ in files]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two files are named '{twice}'; name them: one=FILE other=FILE")
    used: set[str] = set()
    services = [_service(name, points, said, used) for name, points in files]
    idle = sorted(set(said) - used - {""})
    if idle:
        raise ConfigError(f"--vcpus {idle[0]}={said[idle[0]]}: {_no_vnf(idle[0], services)}")
    return tuple(services)


def _no_vnf(key: str, services: Sequence[ProfiledService]) -> str:
    """Why a key names no VNF, and what does."""
    named = next((sorted(service.vcpus) for service in services if service.name == key), None)
    if named is None:
        there = sorted({vnf for service in services for vnf in service.vcpus})
        return f"no such VNF; choose from {', '.join(there) or 'none'}"
    if not named:
        return "the CPU time of its VNFs was not measured"
    return f"it is a service of {len(named)} VNFs; give {' or '.join(f'{key}/{vnf}=N' for vnf in named)}"


def split_list(text: str) -> list[str]:
    """Comma-separated words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def _named(text: str) -> tuple[str, Path]:
    name, separator, path = text.partition("=")
    if separator and not Path(text).exists():
        if not name or not path:
            raise ConfigError(f"'{text}': a named file is NAME=FILE")
        return name, Path(path)
    file = Path(text)
    return (file.absolute().parent.name if file.stem == _TABLE else file.stem), file


def read_path(text: str) -> MeasuredPath:
    """Read the path of a chain without any VNF: `FILE` or `NAME=FILE`.

    Raises:
        ConfigError: The file cannot be read, or has no delay.
    """
    name, file = _named(text)
    found = MeasuredPath.of(name, read_statistics(text_of(file), str(file)))
    if found is None:
        raise ConfigError(f"{file}: a path is there for its delay, and delay_ms is empty in all rows")
    return found


def _vcpus_said(texts: Sequence[str]) -> Mapping[str, int]:
    said = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not number.isdecimal() or not int(number):
            raise ConfigError(f"--vcpus {text}: give N, VNF=N, SERVICE=N or SERVICE/VNF=N, with a number of 1 or more")
        said[name] = int(number)
    return said


def _service(name: str, points: tuple[SweepPoint, ...], said: Mapping[str, int], used: set[str]) -> ProfiledService:
    seen: dict[str, int] = {}
    for point in points:
        for vnf, threads in point.cpu.items():
            seen[vnf] = max(seen.get(vnf, 0), len(threads))
    vcpus = {}
    for vnf, columns in seen.items():
        keys = (f"{name}/{vnf}", vnf, *([name] if len(seen) == 1 else []))
        key = next((key for key in (*keys, "") if key in said), None)
        vcpus[vnf] = columns if key is None else said[key]
        used |= {key for key in keys if key in said}
        most = max((point.used(vnf) or 0.0) for point in points)
        if most > vcpus[vnf] * _MOST:
            raise ConfigError(
                f"{name}: {vnf} used {100 * most:.0f} % of a CPU, but has {vcpus[vnf]} vCPUs; give --vcpus {vnf}=N"
            )
    return ProfiledService(name, points, vcpus, profile_of(name, points, vcpus))


_MOST = 1.1
"""CPU times are read at slightly different moments than the clock, so a full CPU may show a little more."""
