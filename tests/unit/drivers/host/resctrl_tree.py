"""A folder that behaves like the kernel's resctrl: its files answer to writes as the kernel's do."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.libraries.python.model.ranges import expand

WAYS, GROUPS, MIN_RUNS, SHARED = 11, 4, 2, 0x600
DOMAINS = (0, 1)
CPUS = range(16)
"""Even ones are of cache 0."""


class Kernel:
    """The behaviour of groups below a root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._mkdir, self._rmdir, self._write = Path.mkdir, Path.rmdir, Path.write_text
        self.refuses_masks = False
        """Whether it refuses every change of masks, as a processor without ways left does."""

    def mount(self) -> None:
        info = self.root / "info" / "L3"
        self._mkdir(info, parents=True)
        values = {"cbm_mask": f"{(1 << WAYS) - 1:x}", "min_cbm_bits": MIN_RUNS, "num_closids": GROUPS}
        for name, value in {**values, "shareable_bits": f"{SHARED:x}"}.items():
            self._write(info / name, f"{value}\n")
        self._write(self.root / "info" / "last_cmd_status", "ok\n")
        self._fill(self.root, CPUS)

    def _fill(self, group: Path, cpus: range | tuple[int, ...]) -> None:
        full = ";".join(f"{domain}={(1 << WAYS) - 1:x}" for domain in DOMAINS)
        self._write(group / "schemata", f"    MB:0=100;1=100\n    L3:{full}\n")
        self._write(group / "cpus_list", f"{','.join(map(str, cpus))}\n")
        self._write(group / "tasks", "")

    def groups(self) -> list[Path]:
        return [path for path in self.root.iterdir() if path.is_dir() and path.name != "info"]

    def method(self, name: str) -> Callable[..., object]:
        """A method of paths, looked up when it is called."""

        def call(path: Path, *arguments: object, **named: object) -> object:
            return getattr(self, name)(path, *arguments, **named)

        return call

    def mkdir(self, path: Path, *arguments: object, **named: object) -> None:
        if path.parent != self.root:
            return self._mkdir(path, *arguments, **named)  # type: ignore[arg-type]
        if len(self.groups()) + 1 >= GROUPS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._mkdir(path)
        return self._fill(path, ())

    def rmdir(self, path: Path) -> None:
        if path.parent == self.root and path.exists():
            back = {*self.cpus(self.root), *self.cpus(path)}
            for name in ("schemata", "cpus_list", "tasks"):
                (path / name).unlink()
            self._write(self.root / "cpus_list", ",".join(map(str, sorted(back))) + "\n")
        self._rmdir(path)

    def cpus(self, group: Path) -> tuple[int, ...]:
        text = (group / "cpus_list").read_text(encoding="ascii").strip()
        return expand(text) if text else ()

    def write_text(self, path: Path, text: str, *arguments: object, **named: object) -> int:
        if path.is_relative_to(self.root) and path.name == "schemata":
            self._set_masks(path, text)
        elif path.is_relative_to(self.root) and path.name == "cpus_list":
            self._move(path, expand(text.strip()))
        else:
            return self._write(path, text, *arguments, **named)  # type: ignore[arg-type]
        return len(text)

    def _set_masks(self, path: Path, text: str) -> None:
        kept = masks(path)
        for pair in text.strip().removeprefix("L3:").split(";"):
            domain, mask = pair.split("=")
            bits = int(mask, 16)
            runs = [run for run in f"{bits:b}".split("0") if run]
            if (
                self.refuses_masks
                or len(runs) != 1
                or len(runs[0]) < MIN_RUNS
                or bits >> WAYS
                or int(domain) not in kept
            ):
                self._write(self.root / "info" / "last_cmd_status", f"mask {mask} has non-consecutive 1-bits\n")
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            kept[int(domain)] = bits
        line = ";".join(f"{domain}={mask:x}" for domain, mask in kept.items())
        self._write(path, f"    MB:0=100;1=100\n    L3:{line}\n")

    def _move(self, path: Path, cpus: tuple[int, ...]) -> None:
        if not set(cpus) <= set(CPUS):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        for group in (self.root, *self.groups()):
            rest = sorted(set(self.cpus(group)) - set(cpus))
            self._write(group / "cpus_list", ",".join(map(str, rest)) + "\n")
        self._write(path, ",".join(map(str, cpus)) + "\n")


def masks(schemata: Path) -> dict[int, int]:
    """Masks by cache."""
    line = next(line for line in schemata.read_text(encoding="ascii").splitlines() if "L3:" in line)
    pairs = (pair.split("=") for pair in line.strip().removeprefix("L3:").split(";"))
    return {int(domain): int(mask, 16) for domain, mask in pairs}


@contextmanager
def kernel(root: Path) -> Iterator[Kernel]:
    """A mounted resctrl, in this process and those that are forked from it."""
    made = Kernel(root)
    made.mount()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("mkdir", "rmdir", "write_text"):
            patch.setattr(Path, name, made.method(name))
        yield made
