"""Initramfs of guests with applications: the image of all guests, and this machine's programs on top of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from resources.libraries.python.drivers.functions.monitor import suricata
from resources.libraries.python.drivers.functions.monitor.registration import OWN_USER, READER
from resources.libraries.python.drivers.functions.nftables.registration import PROGRAM as RULES_PROGRAM
from resources.libraries.python.drivers.functions.nftables.rulesets import TABLE
from resources.libraries.python.drivers.functions.vm.archive import file, folder
from resources.libraries.python.drivers.functions.vm.extended_image import extended, libraries
from resources.libraries.python.drivers.functions.vm.image import Image
from resources.libraries.python.drivers.functions.vm.init import PROBE, READY
from resources.libraries.python.drivers.functions.vm_application.applications import PLACE
from resources.libraries.python.drivers.functions.vm_application.counters import CONTROL, DATAGRAMS, PACKETS
from resources.libraries.python.rendering import render

PORT = "csit.application"
"""The port for questions."""
END = "CSIT-ANSWERED"
"""Begins the last line of an answer; after it comes 0, or another status where there is none."""
RULES, PROGRAM, UP, THEN, FILES = (f"opt/csit/{word}" for word in ("rules", "program", "up", "then", "files"))
"""What QEMU calls the files with rules and with the program's command line, the shell's test whether it is up, what is
done then, and the folder of files that the program reads."""
_COUNTS, _CONTROL = Path("/csit/packet-counts.pl"), Path("/csit/control.pl")
_USERS = f"root:x:0:0::/:\n{OWN_USER}:x:100:100::/:\n"
_GROUPS = "root:x:0:\n"


def initramfs(base: Image, programs: Mapping[str, Path], more: Sequence[Path], cache: Path) -> Path:
    """An archive with the guests' image and programs, made once for each set of them.

    Args:
        base: Of all guests.
        programs: Where this machine has them, by name.
        more: Shared objects that a program loads when it runs.
        cache: Where archives are kept.

    Raises:
        Unsupported: Libraries of a program cannot be found.
        CsitError: It cannot be made.
    """
    carried = [*programs.values(), *more]
    needed = libraries(carried)
    init = render_init(base.description.application_modules, programs, needed)
    entries = [
        folder(str(_COUNTS.parent).lstrip("/")),
        file(str(_COUNTS).lstrip("/"), render("guest-packet-counts.pl", {}).encode()),
        file(str(_CONTROL).lstrip("/"), render("guest-control.pl", {}).encode()),
        folder("etc"),
        file("etc/passwd", _USERS.encode()),
        file("etc/group", _GROUPS.encode()),
        file("init", init.encode(), executable=True),
    ]
    return extended(base, "+".join(programs), [*carried, *needed], entries, cache)


def render_init(modules: Sequence[str], programs: Mapping[str, Path], needed: Sequence[Path]) -> str:
    """The guest's first program.

    Args:
        modules: Names of kernel modules, in the order of loading.
        programs: Where they are, by name; what is not there is not asked for.
        needed: Their libraries.
    """
    values = {
        "modules": list(modules),
        "ready": READY,
        "probe": PROBE,
        "libraries": list(dict.fromkeys(str(path.parent) for path in needed)),
        "rules_program": programs.get(RULES_PROGRAM.name, RULES_PROGRAM.name),
        "perl": programs.get(READER.name, READER.name),
        "counts": _COUNTS,
        "control": _CONTROL,
        "control_socket": PLACE / suricata.CONTROL,
        "place": PLACE,
        "questions": {"packets": PACKETS, "control": CONTROL, "datagrams": DATAGRAMS},
        "table": TABLE,
        "port": PORT,
        "end": END,
    }
    return render("guest-application-init.sh.j2", values)
