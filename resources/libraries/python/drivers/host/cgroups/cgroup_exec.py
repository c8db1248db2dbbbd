"""Enters control groups, a container, and becomes another program.

`cgroup_exec.py GROUP... [--container PID] -- PROGRAM ARGUMENT...`, where PID is a process of the container.

Started as a script of its own, with nothing of the project: a process can only enter groups as a whole, so it must be
the new one that does it, before it becomes what is to be limited.
"""

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:  # pathlib takes longer to load than all of this
    from collections.abc import Iterable, Sequence
    from pathlib import Path


CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
"""Namespaces of a container. Not the network namespace, which is the plan's, and not the process ids, which are the
machine's."""


def entering(doors: "Iterable[Path]", argv: "Sequence[str]", container: int | None = None) -> list[str]:
    """The argument vector of a program that enters control groups before it runs; without groups as it is.

    `doors`: Files into which a process writes its id to enter.
    `container`: A process of the container that it enters too; None for none.
    """
    words = [*map(str, doors), *(["--container", str(container)] if container is not None else [])]
    return [sys.executable, "-I", "-S", __file__, *words, "--", *argv] if words else list(argv)


def main(words: list[str]) -> None:
    """Enter and become."""
    end = words.index("--")
    program = words[end + 1 :]
    container = None
    if "--container" in words[:end]:
        container = int(words[end - 1])
        end -= 2
    cpus = os.sched_getaffinity(0)
    for door in words[:end]:
        with open(door, "w", encoding="ascii") as file:  # noqa: PTH123 - as above
            file.write(str(os.getpid()))
    # Before Linux 6.2, a process that enters a group may run on all of its CPUs from then on.
    if still := cpus & os.sched_getaffinity(0):
        os.sched_setaffinity(0, still)
    if container is not None:
        _join(container)
    try:
        os.execvp(program[0], program)  # noqa: S606 - an argument vector
    except OSError as error:
        sys.exit(f"{program[0]} cannot be run: {error.strerror}")


def _join(container: int) -> None:
    """Enter the namespaces of a container, and stay in the folder of the same name, where it has that."""
    import ctypes  # noqa: PLC0415 - takes longer to load than all of this, and is for containers only

    folder = os.getcwd()  # noqa: PTH109 - as above
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        descriptor, root = os.pidfd_open(container), os.open(f"/proc/{container}/root", os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        sys.exit(f"the container has ended: process {container}: {error.strerror}")
    if libc.setns(descriptor, CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC):
        sys.exit(f"the container of process {container} cannot be entered: {os.strerror(ctypes.get_errno())}")
    os.close(descriptor)
    # The namespace has another root where a runtime could not exchange it, such as below a chroot.
    os.chdir(root)
    os.chroot(".")
    os.close(root)
    try:
        os.chdir(folder)
    except OSError:
        os.chdir("/")


if __name__ == "__main__":
    main(sys.argv[1:])
