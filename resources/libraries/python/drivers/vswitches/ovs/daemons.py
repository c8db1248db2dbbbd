"""The two daemons of Open vSwitch, with a database, sockets and logs of their own, and their requirements."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.drivers.vswitches.ovs import WITH_DPDK, Ovs, variant
from resources.libraries.python.drivers.vswitches.ovs.transaction import KERNEL
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.testbed.nodes import DutNode

_START_S = 15.0
_ANSWER_S = 10.0
_CONFIGURE_S = 180.0
_END_S = 20.0
_SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_WITH_DPDK = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
"""Where Debian and Ubuntu put the daemon that was built with DPDK; elsewhere `ovs-vswitchd` itself may be."""
_TUN = Path("/dev/net/tun")
SCHEMAS = (
    Path("/usr/share/openvswitch/vswitch.ovsschema"),
    Path("/usr/local/share/openvswitch/vswitch.ovsschema"),
)
NEEDED = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-appctl", "ovs-ofctl", "ovs-vswitchd")


def path_of(program: str) -> str:
    """Where a program is; its name where it is nowhere, so that starting it says what is missing."""
    return shutil.which(program, path=_SEARCHED) or program


def missing(asked: str) -> Iterator[PreflightProblem]:
    """Requirements of Open vSwitch with a kind of ports that this machine lacks."""
    lacking = [program for program in NEEDED if shutil.which(program, path=_SEARCHED) is None]
    if lacking or not any(path.exists() for path in SCHEMAS):
        what = ", ".join(lacking) or "the database schema of Open vSwitch"
        yield PreflightProblem(f"{what} missing for the vSwitch ovs", "install it: apt-get install openvswitch-switch")
    elif asked == "dpdk" and not _WITH_DPDK.exists():
        yield PreflightProblem(
            f"{_WITH_DPDK} missing for Open vSwitch with DPDK",
            "install it: apt-get install openvswitch-switch-dpdk librte-net-af-packet23, or take other ports",
        )
    if not _TUN.exists():
        yield PreflightProblem(f"{_TUN} missing for the vSwitch ovs", "load the module: modprobe tun")


def missing_on(node: DutNode) -> Iterator[PreflightProblem]:
    """Requirements of a node's vSwitch that this machine lacks."""
    return missing("dpdk" if variant(node) == WITH_DPDK else node.settings(Ovs).ports)


class Daemons:
    """`ovsdb-server` and `ovs-vswitchd`.

    `folder`: Private; everything that the daemons write is there.
    `asked`: The kind of ports, which decides on the program.
    """

    def __init__(self, folder: Path, asked: str) -> None:
        self._folder = folder
        place = {name: str(folder) for name in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "RUNTIME_DIRECTORY")}
        schema = next((path for path in SCHEMAS if path.exists()), SCHEMAS[0])
        self._database_argv = [path_of("ovsdb-tool"), "create", str(folder / "conf.db"), str(schema)]
        with_dpdk = asked == "dpdk" and _WITH_DPDK.exists()
        self._control = folder / "vswitchd.ctl"
        self.database = Daemon(
            "ovsdb-server",
            [
                path_of("ovsdb-server"),
                str(folder / "conf.db"),
                f"--remote=punix:{folder / 'db.sock'}",
                f"--unixctl={folder / 'ovsdb.ctl'}",
                "--verbose=console:warn",
            ],
            folder / "ovsdb-server.log",
            place,
        )
        self.forwarder = Daemon(
            "ovs-vswitchd",
            [
                str(_WITH_DPDK) if with_dpdk else path_of("ovs-vswitchd"),
                f"unix:{folder / 'db.sock'}",
                f"--unixctl={self._control}",
                f"--pidfile={folder / 'vswitchd.pid'}",
                # Hands off the datapath and the routes of a system's own Open vSwitch. Where the kernel forwards, its
                # datapath is not the system's either: each network namespace has its own.
                *(() if asked == KERNEL.name else ("--disable-system",)),
                "--disable-system-route",
                "--verbose=console:warn",
            ],
            folder / "ovs-vswitchd.log",
            {
                **place,
                # Huge pages for the memory of AF_XDP ports: 4 s instead of 8 s for 40 ports.
                "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
                # One program per port and no pinned maps, so that nothing stays in the BPF file system.
                "LIBXDP_SKIP_DISPATCHER": "1",
            },
        )

    def start(
        self, inside: Callable[[Callable[[], None]], None], cpu: int, machine: MachineLock, settings: Sequence[str]
    ) -> None:
        """Start both.

        `inside`: Does work in the vSwitch's namespace, in a thread that ends with it.
        `cpu`: For all threads that have no planned place of their own.
        `settings`: A command of `ovs-vsctl` that must be done before the forwarding daemon starts.

        Raises:
            CsitError: One did not start.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._run(self._database_argv, _ANSWER_S)
        inside(lambda: self.database.start(cpu, machine))
        socket = self._folder / "db.sock"
        self.database.wait_for("its socket", lambda: "" if socket.exists() else f"no {socket}", _START_S)
        self._configure(["--no-wait", "--", "init", "--", *settings], _ANSWER_S)
        self._start_forwarder(inside, cpu, machine)
        # Waited for by ovs-vsctl: the daemon has read its settings, and said what it can do.
        self.configure(["set", "Open_vSwitch", ".", "external_ids:owner=csit"])

    def _start_forwarder(
        self, inside: Callable[[Callable[[], None]], None], cpus: int | Collection[int], machine: MachineLock
    ) -> None:
        inside(lambda: self.forwarder.start(cpus, machine))
        control = self._control
        self.forwarder.wait_for("its socket", lambda: "" if control.exists() else f"no {control}", _START_S)

    def restart_forwarder(
        self, inside: Callable[[Callable[[], None]], None], cpus: Collection[int], machine: MachineLock
    ) -> None:
        """Start the forwarding daemon again after it was killed, and wait until it has set up what the database has.

        Raises:
            CsitError: It did not start, or did not set up its ports in time.
        """
        self.forwarder.wait_end(_END_S)
        self._control.unlink(missing_ok=True)
        self._start_forwarder(inside, cpus, machine)
        # A new value: ovs-vsctl does not wait for a transaction that changes nothing.
        self.configure(["set", "Open_vSwitch", ".", f"external_ids:process={self.forwarder.pid}"])

    def configure(self, words: Sequence[str]) -> str:
        """Run one transaction and wait until the forwarding daemon has done what it says; return what was printed."""
        return self._configure(["--", *words], _CONFIGURE_S)

    def read(self, *words: str) -> str:
        return self._configure(words, _ANSWER_S)

    def ask(self, *words: str) -> str:
        """Ask the forwarding daemon itself."""
        return self._run(
            [path_of("ovs-appctl"), f"--target={self._control}", f"--timeout={_ANSWER_S:.0f}", *words], _ANSWER_S
        )

    def write_rules(self, bridge: str, rules: Sequence[str]) -> None:
        """Write the OpenFlow rules that `replace_rules` loads into a bridge."""
        self._rules(bridge).write_text("\n".join(rules) + "\n", encoding="utf-8")

    def replace_rules(self, bridge: str) -> None:
        """Replace all OpenFlow rules of a bridge by those that were written, in one transaction."""
        self._control_bridge(bridge, "--bundle", "replace-flows", str(self._rules(bridge)))

    def _rules(self, bridge: str) -> Path:
        return self._folder / f"{bridge}.rules"

    def count_rules(self, bridge: str, cookie: int) -> int:
        """Return how many OpenFlow rules of a bridge have a cookie."""
        return self._control_bridge(bridge, "dump-flows", f"cookie={cookie}/-1").count(f"cookie={cookie:#x},")

    def _control_bridge(self, bridge: str, *words: str) -> str:
        """Run ovs-ofctl; the bridge comes before the last word."""
        *first, last = words
        socket = f"unix:{self._folder / f'{bridge}.mgmt'}"
        argv = [path_of("ovs-ofctl"), f"--timeout={_ANSWER_S:.0f}", *first, socket, last]
        return self._run(argv, _ANSWER_S)

    def problems(self) -> tuple[str, ...]:
        """Why they do not run."""
        return tuple(filter(None, (self.forwarder.problem(), self.database.problem())))

    def stop(self) -> None:
        """End both. Safe to call at any time and more than once."""
        for daemon in (self.forwarder, self.database):
            daemon.request_end()
            daemon.wait_end(_END_S)

    def _configure(self, words: Sequence[str], within_s: float) -> str:
        database = f"--db=unix:{self._folder / 'db.sock'}"
        return self._run([path_of("ovs-vsctl"), database, f"--timeout={within_s:.0f}", *words], within_s)

    def _run(self, argv: Sequence[str], within_s: float) -> str:
        """Run a command to its end; give up as soon as a daemon is gone that it would wait for."""
        what = " ".join(argv[:4])
        try:
            done = completed(argv, within_s + 1.0, check=False, what=what, hopeless=self._hopeless)
        except NotReady as error:
            raise NotReady(what, within_s, self.forwarder.last_output()) from error
        if done.returncode:
            failed = CommandFailed(_short(argv), done.returncode, done.stderr)
            if why := self._hopeless():
                raise CsitError(why) from failed
            raise failed
        return done.stdout

    def _hopeless(self) -> str:
        return next(iter(self.problems() if self.forwarder.started else ()), "")


def _short(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line cut to a readable length: a transaction of 240 ports fills pages."""
    return (*argv[:8], "…") if len(argv) > 8 else tuple(argv)
