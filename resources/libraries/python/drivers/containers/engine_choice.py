"""Which container engine NFs run in: tried by starting a container."""

import io
import os
import re
import resource
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.containers import ENGINES
from resources.libraries.python.drivers.containers import engine as engines
from resources.libraries.python.drivers.containers.container_cleanup import call
from resources.libraries.python.drivers.containers.engine import Engine, configuration_of
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.driver import InstalledProgram
from resources.libraries.python.model.findings import CheckFinding, PreflightProblem, ok, problem, warning
from resources.libraries.python.model.testbed.nodes import Container, DutNode
from resources.libraries.python.redaction import command_text

STORE = Path("/run/csit-density/engine")
"""Where Podman keeps containers that need no image: apart from those of the machine's users, and gone with a boot."""
_RUNTIMES = ("runc", "crun")
"""In order: crun refuses a machine that has control groups of both versions mounted."""
_ANSWER_S = 30.0
_VERSION = re.compile(r"version:?\s+v?(\d[^\s,]*)")
_KEPT = frozenset({"proc", "sys", "dev", "run", "lost+found"})
"""Folders of the machine's root that a container has of its own."""
_REMEDIES = {
    "podman": "apt-get install --no-install-recommends podman runc",
    "docker": "systemctl start docker",
}
_DISKS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs"})


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Container engine that NFs run in, and the reason."""

    engine: Engine | None
    """None for network namespaces without containers."""
    why: str

    def __str__(self) -> str:
        if self.engine is None:
            return f"none ({self.why})"
        return f"{self.why}, {self.engine.image or 'the file system of the machine'}"


def choose(settings: Container) -> EngineChoice:
    """Choose what NFs run in. Whether an engine works is found once for all that this process does.

    Raises:
        CsitError: The engine that is asked for by name does not start a container.
    """
    if settings.engine == "none":
        return EngineChoice(None, "as the topology says")
    wanted = ENGINES if settings.engine == "auto" else (settings.engine,)
    refused: list[str] = []
    for name in wanted:
        tried = _try(name, settings.image)
        if isinstance(tried, EngineChoice):
            if settings.engine != "auto":
                return tried
            others = "".join(f"; {reason}" for reason in refused)
            return EngineChoice(tried.engine, f"{tried.why} (auto: the first that starts a container{others})")
        refused.append(tried.what)
        if settings.engine != "auto":
            raise CsitError(str(tried))
    return EngineChoice(None, f"auto: no engine starts a container: {'; '.join(refused)}")


def missing(settings: Container) -> tuple[PreflightProblem, ...]:
    """Requirements of the engine of that name that this machine lacks; `auto` lacks nothing."""
    if settings.engine in ("none", "auto"):
        return ()
    tried = _try(settings.engine, settings.image)
    return (tried,) if isinstance(tried, PreflightProblem) else ()


@cache
def _try(name: str, image: str | None) -> EngineChoice | PreflightProblem:
    if os.geteuid() != 0:
        return PreflightProblem(f"{name} needs root to join network namespaces", "run as root")
    return _podman(image) if name == "podman" else _docker(image)


def _podman(image: str | None) -> EngineChoice | PreflightProblem:
    if path_of("podman") is None:
        return PreflightProblem("podman is not installed", "apt-get install --no-install-recommends podman runc")
    runtime = next((each for each in _RUNTIMES if path_of(each)), None)
    if runtime is None:
        return PreflightProblem("podman has no OCI runtime (runc, crun)", "apt-get install runc")
    # Images are where the machine's administrator has them; containers without one are in a store of our own.
    engine = Engine(name="podman", image=image, store=STORE if image is None else None, runtime=runtime)

    def start() -> None:
        if engine.store is not None:
            engine.store.mkdir(mode=0o700, parents=True, exist_ok=True)
            configuration_of(engine.store).write_text(engines.CONFIGURATION, encoding="ascii")
        _start(engine)

    def version() -> str:
        return f"podman {_version(engine, 'podman')} with {runtime} {_version(engine, runtime)}"

    return _tried(engine, start, version)


def _docker(image: str | None) -> EngineChoice | PreflightProblem:
    if path_of("docker") is None:
        return PreflightProblem(
            "docker is not installed", "apt-get install docker.io, or set container.engine to podman"
        )
    engine = Engine(name="docker", image=image)

    def start() -> None:
        if image is None:
            call(engine, ["docker", "import", "-", engines.ROOT_IMAGE], fed=_empty_root(), within_s=_ANSWER_S)
        _start(engine)

    def version() -> str:
        form = '{{.Server.Version}} {{range .Server.Components}}{{if eq .Name "runc"}}{{.Version}}{{end}}{{end}}'
        server, _, runtime = call(engine, ["docker", "version", "--format", form]).strip().partition(" ")
        return f"docker {server} with runc {runtime}"

    return _tried(engine, start, version)


def _tried(engine: Engine, start: Callable[[], None], version: Callable[[], str]) -> EngineChoice | PreflightProblem:
    try:
        start()
        return EngineChoice(engine, version())
    except NotReady as error:
        return PreflightProblem(
            f"{engine.name} does not answer within {_ANSWER_S:.0f} s", f"look at `{engine.name} info` ({error})"
        )
    except (CsitError, OSError) as error:
        stderr = " ".join(error.stderr.split()) if isinstance(error, CommandFailed) else str(error)
        return PreflightProblem(f"{engine.name} does not start a container: {stderr}", _remedy(engine, stderr))


def _start(engine: Engine) -> None:
    cpu = min(os.sched_getaffinity(0))
    argv = engines.trial(
        engine, f"csit-trial-{os.getpid()}", cpu, read_only=folders_of_the_machine(engine), limits=own_limits()
    )
    call(engine, argv, within_s=_ANSWER_S)


def _remedy(engine: Engine, stderr: str) -> str:
    """Fix for an error message of an engine."""
    if "Cannot connect to the Docker daemon" in stderr:
        return "systemctl start docker, or set container.engine to podman"
    if engine.image is not None and re.search(r"image not known|No such image|Unable to find image", stderr):
        return f"bring the image: {command_text(engine.name, 'pull', engine.image)}"
    if engine.runtime == "crun" and "cgroup" in stderr:
        return "apt-get install runc: crun refuses control groups of versions 1 and 2 beside each other"
    if "rlimit" in stderr:
        return "raise the limits of the shell that starts the run (ulimit -Hn, ulimit -Hu), or give it CAP_SYS_RESOURCE"
    return f"see that `{engine.name} run` works as root here, or set container.engine to auto or none"


def _version(engine: Engine, program: str) -> str:
    found = _VERSION.search(call(engine, [path_of(program) or program, "--version"], within_s=_ANSWER_S))
    return found[1] if found else "of an unknown version"


def own_limits() -> dict[str, tuple[int, int]]:
    """Limits of this process that an engine would raise, in words of `ulimit`; no higher than the kernel's own."""
    most = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
    found = {}
    for name, number, highest in (("nofile", resource.RLIMIT_NOFILE, 1 << 20), ("nproc", resource.RLIMIT_NPROC, most)):
        soft, hard = (highest if each == resource.RLIM_INFINITY else each for each in resource.getrlimit(number))
        found[name] = (min(soft, highest), min(hard, highest))
    return found


def folders_of_the_machine(engine: Engine, mounts: Path = Path("/proc/self/mounts")) -> tuple[Path, ...]:
    """Folders that a container needs to have the machine's programs, beside what it is made of."""
    if engine.image is not None:
        return ()
    if engine.name == "docker":
        top = (each for each in sorted(Path("/").iterdir()) if each.is_dir() and not each.is_symlink())
        return tuple(each for each in top if each.name not in _KEPT)
    # Podman's root is the machine's, without the file systems that are mounted below it.
    rows = [row.split() for row in mounts.read_text(encoding="utf-8").splitlines()]
    places = dict.fromkeys(Path(place.replace("\\040", " ")) for _, place, kind, *_ in rows if kind in _DISKS)
    return tuple(each for each in places if _is_further(each))


def _is_further(place: Path) -> bool:
    parts = place.parts
    return len(parts) > 1 and parts[1] not in _KEPT and place.is_dir() and ":" not in str(place)


def _empty_root() -> bytes:
    """An archive of the root folder's folders, empty, and of its links, such as `bin` to `usr/bin`."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for each in sorted(Path("/").iterdir()):
            row = tarfile.TarInfo(each.name)
            row.mode = 0o755
            if each.is_symlink():
                row.type, row.linkname = tarfile.SYMTYPE, str(each.readlink())
            elif each.is_dir():
                row.type = tarfile.DIRTYPE
            else:
                continue
            archive.addfile(row)
    return made.getvalue()


def check(place: str, node: DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Yield whether the engine that a node asks for answers there, or any for `auto`. A run tries whether it works."""
    facts = {name: InstalledProgram.model_validate(each) for name, each in answer.items()}
    engines = {name: facts[name] for name in _REMEDIES}
    place, wanted = f"{place}.container.engine", node.container.engine
    if wanted in engines and not engines[wanted].version:
        each = engines[wanted]
        why = each.problem if each.there and each.problem else "no answer" if each.there else "it is not installed"
        remedy = f"{_REMEDIES[wanted]}, or say engine: auto"
        yield problem(place, "containers", f"{wanted} does not answer: {why}", remedy)
    elif wanted != "docker" and engines["podman"].version and not facts["runc"].there:
        text = "podman without runc: its other runtime, crun, refuses control groups of versions 1 and 2 side by side"
        yield warning(place, "containers", text, "apt-get install runc")
    elif answering := [f"{name} {each.version}" for name, each in engines.items() if each.version]:
        yield ok(place, "containers", ", ".join(answering))
    else:
        text = "neither Podman nor Docker answers: NFs are in network namespaces without containers"
        yield warning(place, "containers", text, f"{_REMEDIES['podman']}, or say engine: none")
