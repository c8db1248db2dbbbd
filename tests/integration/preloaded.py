"""Runs of Robot and of commands that are forked from a process which has imported them already.

Importing takes most of the second of CPU time that a small run takes, and tests start hundreds of runs. A forked run is
a child of the test like any other, with a pid, input and output, environment and signals of its own.
"""

import atexit
import ctypes
import gc
import io
import json
import os
import runpy
import socket
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
_LIBRARIES = "resources.libraries.python"
IMPORTED = (
    "robot.run",
    f"{_LIBRARIES}.studies.density.DensityLibrary",
    f"{_LIBRARIES}.studies.shared.NodesLibrary",
    f"{_LIBRARIES}.testbed.agent.service",
    f"{_LIBRARIES}.testbed.kinds.nodes",
    f"{_LIBRARIES}.testbed.kinds.simulated_testbed",
    f"{_LIBRARIES}.testbed.remote.node",
    f"{_LIBRARIES}.testbed.connection.ssh",
    f"{_LIBRARIES}.drivers.functions.linux_router.driver",
    f"{_LIBRARIES}.drivers.functions.monitor.driver",
    f"{_LIBRARIES}.drivers.functions.nftables.driver",
    f"{_LIBRARIES}.drivers.functions.openvpn.driver",
    f"{_LIBRARIES}.drivers.functions.vm.driver",
    f"{_LIBRARIES}.drivers.functions.wireguard.driver",
    f"{_LIBRARIES}.drivers.generators.builtin.driver",
    f"{_LIBRARIES}.drivers.vswitches.linux_bridge.driver",
    "csit_utils.cli",
    "csit_utils.commands.results.inputs",
    "csit_utils.commands.testbeds.reserve",
)
_OF_A_TEST = {"PYTEST_CURRENT_TEST", "CSIT_RESERVATION"}
"""Variables of the environment that nothing reads while it is imported."""
_MAX_BYTES = 1 << 17
_SET_CHILD_SUBREAPER = 36
"""A number of prctl(2)."""


class PreloadedRun(subprocess.Popen[str]):
    """`python -m MODULE ARGUMENT ...` in the project's folder, forked where its environment is that of this process.

    With another one it is started: variables such as PATH and LD_PRELOAD may count while modules are imported.
    """

    def _execute_child(self, args: list[str], *more: Any) -> None:
        environment, pipes = more[5], more[9:15]
        own = {name: value for name, value in environment.items() if name not in _OF_A_TEST}
        if os.geteuid() or own != _environment():
            super()._execute_child(args, *more)
            return
        stdin, _, _, stdout, _, stderr = pipes
        order = {"argv": args, "environment": environment, "nice": os.getpriority(os.PRIO_PROCESS, 0)}
        fds = [own if given == -1 else given for given, own in ((stdin, 0), (stdout, 1), (stderr, 2))]
        with _adopting():
            socket.send_fds(_process(os.getpid()), [json.dumps(order).encode()], fds)
            self.pid = int(_process(os.getpid()).recv(100))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


@cache
def _environment() -> dict[str, str]:
    """In which modules are imported, without what differs by test."""
    return {k: v for k, v in {**os.environ, "PYTHONPATH": str(PROJECT)}.items() if k not in _OF_A_TEST}


@cache
def _process(pid: int) -> socket.socket:
    """The way to the process that has imported all; it ends with the process that has this pid."""
    del pid
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())], cwd=PROJECT, env=_environment(),
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
        )  # fmt: skip
    atexit.register(lambda: (ours.close(), process.wait()))
    return ours


@contextmanager
def _adopting() -> Any:
    """Be the parent of what a descendant leaves."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(_SET_CHILD_SUBREAPER, 0)


def _next_order(orders: socket.socket) -> dict[str, Any]:
    """Fork a process for each order; returns in those, with the order."""
    while True:
        text, fds, _, _ = socket.recv_fds(orders, _MAX_BYTES, 3)
        if not text:
            os._exit(0)
        told, tell = os.pipe()
        if (parent := os.fork()) == 0:
            if child := os.fork():
                os.write(tell, str(child).encode())
                os._exit(0)
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
            for fd in (orders.detach(), told, tell, *fds):
                os.close(fd)
            for name, number in (("stdout", 1), ("stderr", 2)):
                _reopen(name, number)
            return json.loads(text)
        os.waitpid(parent, 0)  # from now on the child is one of the test's process
        orders.send(os.read(told, 100))
        for fd in (told, tell, *fds):
            os.close(fd)


def _reopen(name: str, number: int) -> None:
    """Replace a stream of `sys`: it has asked what it was opened on whether that can seek, and a pipe cannot."""
    old = getattr(sys, name)
    raw = open(number, "wb", 0 if old.write_through else -1, closefd=False)  # noqa: SIM115 - to the end
    getattr(raw, "raw", raw).name = old.name  # by which commands say which stream has failed
    how = {each: getattr(old, each) for each in ("encoding", "errors", "line_buffering", "write_through")}
    stream = io.TextIOWrapper(raw, **how)
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


def complete_models() -> None:
    """Build the validators of all imported models; programs build each on its first use."""
    left: list[Any] = [import_module(f"{_LIBRARIES}.model.base").Frozen]
    while left:
        model = left.pop()
        model.model_rebuild()
        left += model.__subclasses__()


def _main() -> None:
    sys.path[0] = str(PROJECT)
    for module in IMPORTED:
        import_module(module)
    complete_models()
    gc.freeze()  # no collection of a run looks at what is imported, or copies its pages
    gc.set_threshold(50_000)  # as `./csit robot` does
    order = _next_order(socket.socket(fileno=int(sys.argv[1])))
    os.setpriority(os.PRIO_PROCESS, 0, order["nice"])
    os.environ.clear()
    os.environ.update(order["environment"])
    _, flag, module, *words = sys.orig_argv[:] = order["argv"]
    sys.argv[:] = [flag, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
