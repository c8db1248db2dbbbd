"""Applications of guests: rules of nftables, or programs that receive packets; their requirements and counters.

A guest is asked over a virtio serial port: a request is one line, answered by lines and an end mark.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.monitor import OWN_USER, READER, suricata
from resources.libraries.python.drivers.functions.namespace_functions import MERGED, passed_by
from resources.libraries.python.drivers.functions.nftables import PROGRAM as RULES_PROGRAM
from resources.libraries.python.drivers.functions.nftables.program import read_counters
from resources.libraries.python.drivers.functions.nftables.rulesets import TABLE
from resources.libraries.python.drivers.functions.vm import Vm, guest_mb
from resources.libraries.python.drivers.functions.vm.accelerator import missing as vm_missing
from resources.libraries.python.drivers.functions.vm.applications import (
    CONTROL,
    DATAGRAMS,
    PACKETS,
    PLACE,
    Application,
    application,
    needed,
)
from resources.libraries.python.drivers.functions.vm.archive import file, folder
from resources.libraries.python.drivers.functions.vm.driver import VirtualMachines
from resources.libraries.python.drivers.functions.vm.guest_software import GuestSoftware
from resources.libraries.python.drivers.functions.vm.image import Image, extended, libraries
from resources.libraries.python.drivers.functions.vm.init import PROBE, READY
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.drivers.host.sockets.answers import SocketDialogue
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.driver import FunctionDriver, GuestKind, RequiredProgram
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import InterfaceCounters, ProcessedPackets
from resources.libraries.python.model.plan import NfPlan, Plan, TapPlan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.rendering import render

_WITHIN_S = 20.0
"""A guest in emulation may have to wait for its CPU."""
PORT = "csit.application"
END = "CSIT-ANSWERED"
"""Begins the last line of an answer; after it comes 0, or another status where there is none."""
RULES, PROGRAM, UP, THEN, FILES = (f"opt/csit/{word}" for word in ("rules", "program", "up", "then", "files"))
"""QEMU's names of the files with rules and with the program's command line, the shell's test whether it is up, what is
done then, and the folder of files that the program reads."""
_COUNTS, _CONTROL = Path("/csit/packet-counts.pl"), Path("/csit/control.pl")
_USERS = f"root:x:0:0::/:\n{OWN_USER}:x:100:100::/:\n"
_GROUPS = "root:x:0:\n"


class GuestConnections(SocketDialogue):
    """A connection to one guest."""

    def __init__(self, name: str, path: Path, within_s: float = _WITHIN_S) -> None:
        super().__init__(path, within_s)
        self._name = name

    def ask(self, question: str) -> str:
        """Ask one of the questions that the guest's init knows; return its answer.

        Raises:
            CsitError: The guest has none, or is gone; the text has its words.
            NotReady: It does not answer in time.
        """
        what = f"answer of the guest of {self._name} to '{question}'"
        try:
            got = self._exchange(question.encode(), what, _has_last_line)
        except OSError as error:
            raise CsitError(f"the guest of {self._name} cannot be asked: {error.strerror}") from error
        lines = got.decode(errors="replace").replace("\r", "").splitlines()
        status = lines.pop().removeprefix(END).strip()
        if status != "0":
            raise CsitError(f"the guest of {self._name}: {' '.join(lines)[-400:] or f'status {status}'}")
        return "\n".join(lines)


def _has_last_line(got: bytes) -> bool:
    return got.endswith(b"\n") and got[got.rfind(b"\n", 0, -1) + 1 :].startswith(END.encode())


class Applications(GuestSoftware):
    """Guests route, and some run an application.

    The programs are this machine's, as in network namespaces, so that what differs is the packaging. In a guest they
    are ordinary processes of its scheduler.

    `node`: has the settings of guests and applications.
    `counters`: of the ports of an NF, by its name.
    """

    def __init__(
        self,
        functions: Sequence[NfPlan | TapPlan],
        plan: Plan,
        node: DutNode,
        counters: Callable[[str], Mapping[str, InterfaceCounters]],
    ) -> None:
        super().__init__(plan, node.settings(Vm).memory_mb)
        made = {each.name: application(each, node, len(self.cpus(each.name))) for each in functions}
        self._applications = {name: each for name, each in made.items() if each is not None}
        self._counts = {name: each.counts() for name, each in self._applications.items() if each.argv}
        self._kinds = {function.name: function.kind for function in functions}
        self._own_mb = {function.name: guest_mb(node, function.kind) for function in functions}
        self._counters = counters
        self._questions: dict[str, GuestConnections] = {}
        self._lock = Lock()

    def cpu_model(self, name: str) -> str:
        """With the features that an application does not start without."""
        each = self._applications.get(name)
        return ",".join([super().cpu_model(name), *(f"+{feature}" for feature in (each.needs if each else ()))])

    def memory_mb(self, name: str) -> int:
        return self._own_mb[name]

    def initramfs(self, name: str, base: Image, cache: Path) -> Path:
        """The guests' image and the programs of this machine that a guest runs.

        Raises:
            Unsupported: A program is missing.
            CsitError: The archive cannot be made.
        """
        if name not in self._applications:
            return base.initramfs
        each = self._applications[name]
        found = {program: path_of(program) for program in sorted(needed(self._kinds[name]))}
        if missing := [program for program, path in found.items() if path is None]:
            raise Unsupported(f"guests get programs of this machine, and there is no {', '.join(missing)}")
        programs = {program: Path(path) for program, path in found.items() if path is not None}
        return initramfs(base, programs, each.more, cache)

    def arguments(self, function: NfPlan | TapPlan, folder: Path) -> tuple[str, ...]:
        """The port for questions, and files with rules and with the program's command line."""
        name = function.name
        socket = folder / f"{name}.questions"
        self._questions[name] = GuestConnections(name, socket)
        words: tuple[str, ...] = (
            *("-device", "virtio-serial-pci"),
            *("-chardev", f"socket,id=questions,path={socket},server=on,wait=off"),
            *("-device", f"virtserialport,chardev=questions,name={PORT}"),
        )
        for called, text in self._files(name):
            place = folder / f"{name}.{Path(called).name}"
            place.write_text(text, encoding="utf-8")
            words += ("-fw_cfg", f"name={called},file={place}")
        return words

    def _files(self, name: str) -> Iterator[tuple[str, str]]:
        each = self._applications.get(name)
        if each is not None and each.rules:
            yield RULES, each.rules
        if each is not None and each.argv:
            words = shlex.join((path_of(each.argv[0]) or each.argv[0], *each.argv[1:]))
            yield PROGRAM, f"{words} >/dev/null" if each.prints else words
            yield UP, each.up
            if each.then:
                yield THEN, each.then
            yield from ((f"{FILES}/{called}", text) for called, text in each.files.items())

    def rests(self, name: str) -> bool:
        """An application may have work, and answers to questions are some."""
        return name not in self._applications

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Packets that each program got or sent on, and that it was too slow for; rules forward, as ports count.

        Raises:
            CsitError: A program has ended, or a guest does not answer.
        """
        return {name: self._counted(name)[0] for name in self._counts}

    def _counted(self, name: str) -> tuple[ProcessedPackets, int]:
        """And the packets that came for the program."""
        with self._lock:  # reading sets counters of a guest to zero
            try:
                return self._counts[name].read(self._questions[name].ask)
            except ValueError as error:
                raise _unreadable(name, str(error)) from error

    def looked_up(self, name: str) -> int:
        """Packets that went through the rules of an NF since it was made.

        Raises:
            CsitError: It has lost its rules, or does not answer.
        """
        counter = self._applications[name].counter
        answer = self._questions[name].ask("counters")
        try:
            found = read_counters(answer)
        except ValueError as error:
            raise _unreadable(name, answer) from error
        if counter not in found:
            raise CsitError(f"the guest of {name} has no counter {counter}")
        return found[counter]

    def facts(self) -> Mapping[str, str]:
        """Application of each kind of guest, and its version."""
        return {
            self._kinds[name]: f"{each.version()}, {each.about}, in the guest"
            for name, each in self._applications.items()
        }

    def problems(self, name: str) -> Sequence[str]:
        """An application that has ended or lost its rules, or that packets passed by."""
        each = self._applications.get(name)
        if each is None:
            return ()
        try:
            return tuple(self._passed_by(name, each))
        except CsitError as error:
            return (str(error),)

    def _passed_by(self, name: str, each: Application) -> Iterator[str]:
        if each.rules:
            what, seen, merged = "rules", self.looked_up(name), MERGED
        else:
            what, seen, merged = Path(each.argv[0]).name, self._counted(name)[1], self._counts[name].merged
        received = sum(row.rx_packets for row in self._counters(name).values())
        if passed_by(seen, received, merged=merged):
            yield f"{received} packets entered the guest of {name}, and its {what} saw {seen} of them"

    def stop(self) -> None:
        questions, self._questions = self._questions, {}
        for each in questions.values():
            each.close()


def _unreadable(name: str, answer: str) -> CsitError:
    return CsitError(f"the guest of {name} did not report counters: '{answer[-200:]}'")


def make(node: DutNode, context: DriverContext, row: Sequence[NfPlan | TapPlan]) -> VirtualMachines:
    """Make the driver of Linux guests on a node: those that only route, and those that run an application."""
    only_routers = all(function.kind.in_guest is None for function in row)
    inside = (
        None if only_routers else Applications(row, context.plan, node, lambda name: context.fabric.counters([name]))
    )
    return VirtualMachines(row, context.plan, context.fabric, context.lock, node.settings(Vm), inside=inside)


def missing(node: DutNode, kind: NfKind) -> Iterator[PreflightProblem]:
    """Yield programs that are missing, each with the kinds of virtual machines that need it."""
    needed: dict[str, tuple[RequiredProgram, list[str]]] = {}
    for each in driver_registry.functions().values():
        application = None if each.in_guest is None or each.host != kind else driver_registry.functions()[each.in_guest]
        if application is not None and application.guest is not None:
            for program in application.guest.programs:
                if path_of(program.name) is None or _is_incomplete(application, application.guest, program, node):
                    needed.setdefault(program.name, (program, []))[1].append(each.name)
    for name, (program, kinds) in needed.items():
        problem = f"{name} missing for virtual machines of kind {', '.join(kinds)}"
        yield PreflightProblem(problem, f"install it: {program.remedy}")


def _is_incomplete(application: FunctionDriver, guest: GuestKind, program: RequiredProgram, node: DutNode) -> bool:
    own = program.name in {each.name for each in application.programs}
    return (
        own and guest.missing is not None and any(driver_registry.load(guest.missing)(node, NfKind(application.name)))
    )


def missing_on(node: DutNode, kind: NfKind) -> Iterator[PreflightProblem]:
    """Yield what this machine lacks for Linux guests of a node."""
    yield from vm_missing(node.settings(Vm).nic)
    yield from missing(node, kind)


def initramfs(base: Image, programs: Mapping[str, Path], more: Sequence[Path], cache: Path) -> Path:
    """An archive with the guests' image and programs, made once for each set of them.

    `programs`: Where this machine has them, by name.
    `more`: Shared objects that a program loads when it runs.

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

    `modules`: Names of kernel modules, in the order of loading.
    `programs`: Where they are, by name; what is not there is not asked for.
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
