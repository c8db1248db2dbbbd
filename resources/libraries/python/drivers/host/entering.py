"""Enters control groups and becomes another program: `entering.py GROUP... -- PROGRAM ARGUMENT...`.

Started as a script of its own, with nothing of the project: a process can only enter groups as a whole, so it must be
the new one that does it, before it becomes what is to be limited.
"""

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:  # pathlib takes longer to load than all of this
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def entering(doors: "Iterable[Path]", argv: "Sequence[str]") -> list[str]:
    """The argument vector of a program that enters control groups before it runs; without groups as it is.

    Args:
        doors: Files into which a process writes its id to enter.
        argv: The program with its arguments.
    """
    words = list(map(str, doors))
    return [sys.executable, "-I", "-S", __file__, *words, "--", *argv] if words else list(argv)


def main(words: list[str]) -> None:
    """Enter and become."""
    end = words.index("--")
    cpus = os.sched_getaffinity(0)
    for door in words[:end]:
        with open(door, "w", encoding="ascii") as file:  # noqa: PTH123 - as above
            file.write(str(os.getpid()))
    # Before Linux 6.2 whoever enters a group may run on all of its CPUs from then on.
    if still := cpus & os.sched_getaffinity(0):
        os.sched_setaffinity(0, still)
    program = words[end + 1 :]
    try:
        os.execvp(program[0], program)  # noqa: S606 - an argument vector
    except OSError as error:
        sys.exit(f"{program[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
