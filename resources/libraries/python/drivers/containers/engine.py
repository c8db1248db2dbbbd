"""Container engines as argument vectors. Pure.

A container of an NF has its own mount, UTS and control group namespaces and CPUs, and the network namespace of the
plan. Its first process sleeps; the NF's programs enter it later, as with `exec` of an engine. Process ids are the
machine's, so that threads can be scheduled from outside.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from resources.libraries.python.model.base import Frozen

LABEL = "csit-density"
"""Label of every container, so that no other one is removed."""
ROOT_IMAGE = "csit-density-root"
"""For Docker, which makes no container of a folder: an image of empty folders, for those of the machine."""

_RIGHTS = {
    "podman": ("--privileged",),
    # Programs that enter bring their own rights. The first one joins a namespace; all devices are for huge pages and
    # the like. `--privileged` would fail where one right is missing, which Podman passes over.
    "docker": (
        *("--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
        *("--device-cgroup-rule", "a *:* rwm", "--volume", "/dev:/dev"),
    ),
}


class Engine(Frozen):
    """An engine, and how it is used here."""

    name: Literal["podman", "docker"]
    image: str | None = None
    """None for the file system of the machine."""
    store: Path | None = None
    """Podman's own folder of ours; None for the one where the machine's administrator keeps images."""
    runtime: str | None = None
    """OCI runtime; None for the engine's default."""

    @property
    def command(self) -> tuple[str, ...]:
        """The program with the options that every call has."""
        if self.name == "docker":
            return ("docker",)
        words = ["podman", "--cgroup-manager", "cgroupfs"]
        words += ["--runtime", self.runtime] if self.runtime else []
        if self.store is not None:
            folders = (("--root", "root"), ("--runroot", "run"), ("--tmpdir", "libpod"))
            words += [word for option, folder in folders for word in (option, str(self.store / folder))]
            # No layers are stored: a container of a folder needs no storage driver, and vfs works everywhere.
            words += ["--storage-driver", "vfs", "--events-backend", "none"]
        return tuple(words)

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that every call has."""
        return {"CONTAINERS_CONF": str(configuration_of(self.store))} if self.store is not None else {}


def configuration_of(store: Path) -> Path:
    """The file with what Podman has no options for."""
    return store / "containers.conf"


def layers_of(store: Path) -> tuple[Path, Path]:
    """Where Podman 4 and Podman 5 have a folder for each container's layer, by the container's id."""
    return store / "run" / "overlay-containers", store / "root" / "overlay-containers"


CONFIGURATION = """# Locks of containers are files of this folder, not shared memory of all of the machine's Podman.
[engine]
lock_type = "file"
"""


class ContainerSpec(Frozen):
    """A container to be made."""

    name: str
    namespace: Path
    """Its network namespace."""
    cpus: tuple[int, ...]
    """Logical CPUs."""


def run(
    engine: Engine,
    wanted: ContainerSpec,
    *,
    shared: Sequence[Path],
    read_only: Sequence[Path],
    limits: Mapping[str, tuple[int, int]],
) -> list[str]:
    """The command that starts a container, detached.

    `shared`: Folders that are the same inside and outside, to be written to.
    `limits`: Resource limits by their name in `ulimit`: soft, hard. Without the right CAP_SYS_RESOURCE an engine fails
      to set its own defaults.
    """
    words = [*engine.command, "run", "--detach", "--name", wanted.name, *_common(engine, wanted.cpus, limits)]
    words += ["--pids-limit", "-1"]
    words += [word for folder in shared for word in ("--volume", f"{folder}:{folder}")]
    words += _mounted(read_only)
    if engine.name == "podman":
        return [*words, "--network", f"ns:{wanted.namespace}", *_from(engine), "sleep", "infinity"]
    # Docker cannot join a namespace by its name: the first program inside does it.
    words += ["--network", "host", "--volume", f"{wanted.namespace}:{wanted.namespace}", *_from(engine)]
    return [*words, "nsenter", f"--net={wanted.namespace}", "sleep", "infinity"]


def trial(
    engine: Engine, name: str, cpu: int, *, read_only: Sequence[Path], limits: Mapping[str, tuple[int, int]]
) -> list[str]:
    """The command that starts a container which ends at once and is removed; otherwise as `run`."""
    words = [*engine.command, "run", "--rm", "--name", name, *_common(engine, (cpu,), limits)]
    return [*words, *_mounted(read_only), "--network", "host", *_from(engine), "sleep", "0"]


def _common(engine: Engine, cpus: Sequence[int], limits: Mapping[str, tuple[int, int]]) -> list[str]:
    words = ["--label", LABEL, *_RIGHTS[engine.name], "--pid", "host", "--ipc", "host", "--log-driver", "none"]
    words += ["--cpuset-cpus", ",".join(map(str, sorted(set(cpus))))]
    # Podman's own parent group would have the weight of a single thread for all containers together.
    words += ["--cgroup-parent", "/"] if engine.name == "podman" else []
    return [*words, *(word for name, (soft, hard) in limits.items() for word in ("--ulimit", f"{name}={soft}:{hard}"))]


def _mounted(folders: Sequence[Path]) -> list[str]:
    return [word for folder in folders for word in ("--volume", f"{folder}:{folder}:ro")]


def _from(engine: Engine) -> list[str]:
    """Base of a container. A layer of its own is on top of a folder: nothing of the machine is changed."""
    if engine.name == "podman" and engine.image is None:
        return ["--rootfs", "/:O"]
    return ["--pull", "never", "--entrypoint", "", engine.image or ROOT_IMAGE]


def inspect(engine: Engine, names: Iterable[str]) -> list[str]:
    """The command that shows containers: a line each of name, process id, CPUs, whether it runs."""
    form = "{{.Name}} {{.State.Pid}} {{.State.Running}} {{.HostConfig.CpusetCpus}}"
    return [*engine.command, "inspect", "--type", "container", "--format", form, *names]


def all_of(engine: Engine) -> list[str]:
    """The command that shows the ids of all containers of a store."""
    return [*engine.command, "ps", "--all", "--quiet", "--no-trunc"]


def ours(engine: Engine, name: str) -> list[str]:
    """The command that shows the id of a container of this name that is ours; nothing where there is none."""
    filters = ("--filter", f"label={LABEL}", "--filter", f"name=^{name}$")
    return [*all_of(engine), *filters]


def remove(engine: Engine, names: Iterable[str]) -> list[str]:
    """The command that ends containers and removes them."""
    # Podman asks first and waits 10 s, in vain where the first process is stopped. Docker kills at once.
    at_once = ("--time", "0") if engine.name == "podman" else ()
    return [*engine.command, "rm", "--force", *at_once, *names]
