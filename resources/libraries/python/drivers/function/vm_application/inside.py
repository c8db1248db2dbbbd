"""Applications as what runs inside of guests: rules of nftables, or programs that look at packets."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock

from resources.libraries.python.drivers.function.vm.image import Image
from resources.libraries.python.drivers.function.vm.inside import Router
from resources.libraries.python.drivers.function.vm_application.applications import (
    Application,
    application,
    carried_names,
)
from resources.libraries.python.drivers.function.vm_application.image import PORT, PROGRAM, RULES, initramfs
from resources.libraries.python.drivers.function.vm_application.questions import Questions
from resources.libraries.python.drivers.host.installed import path_of
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.counters import InterfaceCounters, Processed
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan, Plan

_FEW = 1000
"""Packets that may be the system's own, or on their way."""
_SEEN = 0.9
"""Share of the packets received that the application must have been given."""
_MERGED = 64
"""Segments of a TCP connection that a kernel merges as they come in, up to 64 KiB, and are seen as one."""


class Applications(Router):
    """Fulfils `drivers.function.vm.inside.Inside`: guests that route and run an application, or only route.

    The programs are this machine's, as in network namespaces, so that what differs is the packaging. In a guest they
    are ordinary processes of its scheduler.
    """

    def __init__(
        self,
        functions: Sequence[NfPlan],
        plan: Plan,
        node: DutNode,
        counters: Callable[[str], Mapping[str, InterfaceCounters]],
    ) -> None:
        """Prepare.

        Args:
            functions: The NFs of the guests.
            plan: Has their cores and ports.
            node: Has the settings of guests and applications.
            counters: Of the ports of an NF, by its name.

        Raises:
            Unsupported: An application cannot run in a guest.
        """
        super().__init__(plan, node.vm.memory_mb)
        made = {function.name: application(function, node) for function in functions}
        self._applications = {name: each for name, each in made.items() if each is not None}
        self._kinds = {function.name: function.kind for function in functions}
        self._counters = counters
        self._questions: dict[str, Questions] = {}
        self._processed: dict[str, Processed] = {}
        self._lock = Lock()

    def initramfs(self, base: Image, cache: Path) -> Path:
        """The guests' image and the programs of this machine.

        Raises:
            Unsupported: A program is missing.
            CsitError: The archive cannot be made.
        """
        found = {name: path_of(name) for name in carried_names(list(self._applications.values()))}
        if missing := [name for name, path in found.items() if path is None]:
            raise Unsupported(f"guests get programs of this machine, and there is no {', '.join(missing)}")
        return initramfs(base, {name: Path(path) for name, path in found.items() if path is not None}, cache)

    def arguments(self, function: NfPlan, folder: Path) -> tuple[str, ...]:
        """The port for questions, and files with rules and with the program's command line."""
        name = function.name
        socket = folder / f"{name}.questions"
        self._questions[name] = Questions(name, socket)
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
            yield PROGRAM, shlex.join((path_of(each.argv[0]) or each.argv[0], *each.argv[1:]))

    def rests(self, name: str) -> bool:
        """An application may have work, and answers to questions are some."""
        return name not in self._applications

    def processed(self) -> Mapping[str, Processed]:
        """Packets that each monitor got, and that it was too slow for; others forward, which their ports count.

        Raises:
            CsitError: A program has ended, or a guest does not answer.
        """
        return {name: self._watched(name) for name, each in self._applications.items() if each.argv}

    def _watched(self, name: str) -> Processed:
        with self._lock:  # reading sets the guest's counters to zero
            answer = self._questions[name].ask("packets")
            try:
                packets, dropped = map(int, answer.split())
            except ValueError as error:
                raise _unreadable(name, answer) from error
            before = self._processed.get(name, Processed(0, 0))
            now = Processed(before.packets + packets - dropped, (before.dropped or 0) + dropped)
            self._processed[name] = now
            return now

    def looked_up(self, name: str) -> int:
        """Packets that went through the rules of an NF since it was made.

        Raises:
            CsitError: It has lost its rules, or does not answer.
        """
        counter = self._applications[name].counter
        answer = self._questions[name].ask("counters")
        try:
            rows = json.loads(answer)["nftables"]
            found = {row["counter"]["name"]: int(row["counter"]["packets"]) for row in rows if "counter" in row}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _unreadable(name, answer) from error
        if counter not in found:
            raise CsitError(f"the guest of {name} has no counter {counter}")
        return found[counter]

    def facts(self) -> Mapping[str, str]:
        """What each kind of guest runs, and its version."""
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
            what, seen = "rules", self.looked_up(name)
        else:
            done = self._watched(name)
            what, seen = Path(each.argv[0]).name, done.packets + (done.dropped or 0)
        received = sum(row.rx_packets for row in self._counters(name).values())
        if _MERGED * seen < _SEEN * received - _FEW:
            yield f"{received} packets entered the guest of {name}, and its {what} saw {seen} of them"

    def stop(self) -> None:
        """Let go of the connections."""
        questions, self._questions = self._questions, {}
        for each in questions.values():
            each.close()


def _unreadable(name: str, answer: str) -> CsitError:
    return CsitError(f"the guest of {name} did not report counters: '{answer[-200:]}'")
