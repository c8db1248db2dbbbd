"""startup.conf of one VPP, from the plan and the testbed's settings. Pure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resources.libraries.python.drivers.vpp.pages import HugePageChoice
from resources.libraries.python.drivers.vpp.placement import WorkerPlacement
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.rendering import render

RxMode = Literal["polling", "interrupt", "adaptive"]
_SLEEP_US = 100
"""How long an idle main thread sleeps where it shares its core."""


@dataclass(frozen=True, slots=True)
class VppDevice:
    """A physical port that VPP drives by itself."""

    pci_address: str
    name: str
    queues: int = 1


@dataclass(frozen=True, slots=True)
class Waiting:
    """What threads do when nothing comes."""

    rx_mode: RxMode
    sleep_us: int
    """Of the main thread, each time it has looked for work; 0 for never."""

    @property
    def data_threads(self) -> str:
        """As verdicts read it: whether the time that they run says something about their load."""
        return "wait for interrupts" if self.rx_mode == "interrupt" else "poll"

    def __str__(self) -> str:
        sleep = f"main thread sleeps {self.sleep_us} us" if self.sleep_us else "no sleep"
        return f"receive queues in {self.rx_mode} mode, {sleep}"


def waiting(settings: Vpp, *, oversubscribed: bool) -> Waiting:
    """Decide it: polling on cores of its own, interrupts where cores are shared.

    A worker that polls never sleeps, so on a shared core it takes the time in which others would do the work that it
    waits for. An honest placement is measured as VPP is used: polling.
    """
    mode: RxMode = "interrupt" if oversubscribed else "polling"
    sleep_us = _SLEEP_US if oversubscribed else 0
    return Waiting(
        rx_mode=mode if settings.rx_mode == "auto" else settings.rx_mode,
        sleep_us=sleep_us if settings.poll_sleep_us == "auto" else settings.poll_sleep_us,
    )


@dataclass(frozen=True, slots=True)
class Startup:
    """All that startup.conf says."""

    name: str
    """Unique on the machine; of its shared memory."""
    folder: Path
    """Private: sockets, pid file, log of commands."""
    placement: WorkerPlacement
    heap_mb: int
    buffers: int
    pages: HugePageChoice
    waiting: Waiting
    plugins: tuple[str, ...]
    """Names without `_plugin.so`; no other one is loaded."""
    plugin_folder: Path | None = None
    """None for where VPP looks by itself."""
    devices: tuple[VppDevice, ...] = ()
    largest_frame_bytes: int = 1518
    core_mb: int = 2048
    """Most of its memory that a core file holds; more is cut off."""
    cli_address: str = ""
    """Where it takes commands instead, by TCP; empty for a socket in its folder."""

    @property
    def cli_socket(self) -> Path:
        """Where it takes commands."""
        return self.folder / "cli.sock"

    def text(self) -> str:
        """The file."""
        return render("vpp-startup.conf.j2", {"vpp": self, "poll_sleep_us": self.waiting.sleep_us})
