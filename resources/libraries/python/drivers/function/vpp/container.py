"""VPP in a container: the command line of the engine. Pure, but for the question which engine answers.

A container has a file system and CPUs of its own. Its network namespace is the one of the plan's ports, and the
folder of sockets is shared, as shared memory needs it.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.drivers.host.namespaces import name_of, path_of
from resources.libraries.python.errors import Unsupported

ENGINES = ("docker", "podman")
_ANSWER_S = 10.0
PREFIX = "csit-"


@dataclass(frozen=True, slots=True)
class Container:
    """What a container is made of."""

    engine: str
    image: str | None
    """None for the node's own file system, with a layer of its own on top."""


def choose(engine: str, image: str | None) -> Container | None:
    """Choose what NFs run in; None for plain processes.

    Args:
        engine: As the topology says it: `auto`, `docker`, `podman` or `process`.
        image: Of the containers.

    Raises:
        Unsupported: The engine that is asked for does not answer, or needs an image.
    """
    if engine == "process":
        return None
    wanted = ENGINES if engine == "auto" else (engine,)
    for name in wanted:
        # Docker has no containers without an image; Podman makes one of a folder.
        if engine == "auto" and name == "docker" and image is None:
            continue
        if not answers(name):
            continue
        if name == "docker" and image is None:
            raise Unsupported("Docker needs an image for VPP: set nodes.<DUT>.vpp.image, or engine podman or process")
        return Container(name, image)
    if engine == "auto":
        return None
    raise Unsupported(
        f"the container engine {engine} does not answer (`{engine} info`); start it, or set engine process"
    )


def answers(engine: str) -> bool:
    """Whether an engine is there and works."""
    if shutil.which(engine) is None:
        return False
    try:
        done = subprocess.run([engine, "info"], capture_output=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def name_in_engine(owner: str) -> str:
    """What a container is called, for `docker rm` after a killed run."""
    return f"{PREFIX}{owner}"


def run_in(
    container: Container, owner: str, cpus: Sequence[int], shared: Sequence[Path], argv: Sequence[str]
) -> tuple[str, ...]:
    """The command that runs another one in a container, in the foreground and removed at its end.

    Args:
        container: What it is made of.
        owner: The NF.
        cpus: Logical CPUs that it may use.
        shared: Folders that are the same inside and outside.
        argv: What to run.
    """
    namespace = path_of(name_of(owner))
    words = [container.engine, "run", "--rm", "--name", name_in_engine(owner), "--init=false"]
    # Thread numbers are the machine's, so that its scheduler can be told about them. Huge pages and the priorities of
    # threads need rights that a container has not by itself.
    words += ["--privileged", "--pid=host", "--ipc=host", f"--cpuset-cpus={','.join(map(str, sorted(set(cpus))))}"]
    words += [word for folder in shared for word in ("--volume", f"{folder}:{folder}")]
    if container.engine == "podman":
        words += [f"--network=ns:{namespace}"]
        words += [container.image] if container.image is not None else ["--rootfs", "/:O"]
        return (*words, *argv)
    # Docker cannot join a namespace by its name: the first program inside does it.
    words += ["--network=host", "--volume", f"{namespace}:{namespace}", container.image or ""]
    return (*words, "nsenter", f"--net={namespace}", *argv)


def remove(container: Container, owners: Sequence[str]) -> None:
    """Remove containers by force, as after a run that was killed. It is no error when there are none."""
    if owners:
        argv = [container.engine, "rm", "--force", *map(name_in_engine, owners)]
        subprocess.run(argv, capture_output=True, timeout=60.0, check=False)
