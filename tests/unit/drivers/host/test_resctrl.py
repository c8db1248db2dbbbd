"""Cache ways of NFs: made by groups of the kernel, and given back whatever happens."""

import errno
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.host.cgroups.nf_limits import NfGroups
from resources.libraries.python.drivers.host.cpu import cache_facts, resctrl
from resources.libraries.python.drivers.host.cpu.resctrl import CacheDivision
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.plan import OTHERS, CachePart
from resources.libraries.python.model.testbed.cpu import expand
from tests.builders import SIM, cpus, plan_of, raising
from tests.unit.testbed.node.machine_trees import tree

WAYS, GROUPS, MIN_RUNS, SHARED = 11, 4, 2, 0x600
DOMAINS = (0, 1)
CPUS = range(16)
"""Even ones are of cache 0."""


class Kernel:
    """The behaviour of groups below a root, for paths of this process and of those that are forked from it."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._mkdir, self._rmdir, self._write = Path.mkdir, Path.rmdir, Path.write_text
        self.refuses_masks = False
        """Whether it refuses every change of masks, as a processor without ways left does."""
        info = root / "info" / "L3"
        info.mkdir(parents=True)
        values = {"cbm_mask": f"{(1 << WAYS) - 1:x}", "min_cbm_bits": MIN_RUNS, "num_closids": GROUPS}
        for name, value in {**values, "shareable_bits": f"{SHARED:x}", "../last_cmd_status": "ok"}.items():
            (info / name).write_text(f"{value}\n")
        self._fill(root, CPUS)
        for name in ("mkdir", "rmdir", "write_text"):
            patch.setattr(Path, name, self._method(name))

    def _method(self, name: str) -> Callable[..., object]:
        """A method of paths, looked up when it is called."""

        def call(path: Path, *arguments: object, **named: object) -> object:
            return getattr(self, name)(path, *arguments, **named)

        return call

    def _fill(self, group: Path, cpus: Iterable[int]) -> None:
        full = ";".join(f"{domain}={(1 << WAYS) - 1:x}" for domain in DOMAINS)
        self._write(group / "schemata", f"    MB:0=100;1=100\n    L3:{full}\n")
        self._write(group / "tasks", "")
        self._set_cpus(group, cpus)

    def _set_cpus(self, group: Path, cpus: Iterable[int]) -> None:
        self._write(group / "cpus_list", ",".join(map(str, sorted(cpus))) + "\n")

    def groups(self) -> list[Path]:
        return [path for path in self.root.iterdir() if path.is_dir() and path.name != "info"]

    def cpus(self, group: Path) -> tuple[int, ...]:
        text = (group / "cpus_list").read_text(encoding="ascii").strip()
        return expand(text) if text else ()

    def mkdir(self, path: Path, *arguments: object, **named: object) -> None:
        if path.parent == self.root and len(self.groups()) + 1 >= GROUPS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._mkdir(path, *arguments, **named)  # type: ignore[arg-type]
        if path.parent == self.root:
            self._fill(path, ())

    def rmdir(self, path: Path) -> None:
        if path.parent == self.root and path.exists():
            self._set_cpus(self.root, {*self.cpus(self.root), *self.cpus(path)})
            for name in ("schemata", "cpus_list", "tasks"):
                (path / name).unlink()
        self._rmdir(path)

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
            one_run = len(runs) == 1 and len(runs[0]) >= MIN_RUNS and not bits >> WAYS
            if self.refuses_masks or not one_run or int(domain) not in kept:
                self._write(self.root / "info" / "last_cmd_status", f"mask {mask} has non-consecutive 1-bits\n")
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            kept[int(domain)] = bits
        line = ";".join(f"{domain}={mask:x}" for domain, mask in kept.items())
        self._write(path, f"    MB:0=100;1=100\n    L3:{line}\n")

    def _move(self, path: Path, cpus: tuple[int, ...]) -> None:
        for group in (self.root, *self.groups()):
            self._set_cpus(group, set(self.cpus(group)) - set(cpus))
        self._set_cpus(path.parent, cpus)


def masks(schemata: Path) -> dict[int, int]:
    line = next(line for line in schemata.read_text(encoding="ascii").splitlines() if "L3:" in line)
    pairs = (pair.split("=") for pair in line.strip().removeprefix("L3:").split(";"))
    return {int(domain): int(mask, 16) for domain, mask in pairs}


FULL = {0: 0x7FF, 1: 0x7FF}
PARTS = (
    CachePart(owner="nf-1-1", cpus=(4,), masks={0: 0x3}),
    CachePart(owner="nf-1-2", cpus=(6, 8), masks={0: 0xC}),
    CachePart(owner=OTHERS, cpus=(), masks={0: 0x7F0}),
)


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path / "resctrl", monkeypatch)


@pytest.fixture
def lock(tmp_path: Path) -> MachineLock:
    return MachineLock(tmp_path / "run", tmp_path / "settings")


def division(lock: MachineLock, root: Path, parts: Sequence[CachePart] = PARTS) -> CacheDivision:
    return CacheDivision(parts, lock.claim, lock.release, root)


def untouched(made: Kernel) -> bool:
    return not made.groups() and masks(made.root / "schemata") == FULL and made.cpus(made.root) == tuple(CPUS)


def test_nfs_get_their_ways_and_all_else_the_others(mounted: Kernel, lock: MachineLock) -> None:
    with lock:
        made = division(lock, mounted.root)
        made.make()
        root = mounted.root
        assert masks(root / "csit-nf-1-1" / "schemata") == {0: 0x3, 1: 0x7FF}
        assert masks(root / "csit-nf-1-2" / "schemata") == {0: 0xC, 1: 0x7FF}
        assert masks(root / "schemata") == {0: 0x7F0, 1: 0x7FF}, "the other cache stays as it is"
        assert mounted.cpus(root / "csit-nf-1-2") == (6, 8)
        assert made.facts()["cache ways of nf-1-1"] == "2 (0x3) of cache 0, for CPUs 4"
        assert any("last-level cache divided for csit-nf-1-1" in each for each in lock.leftovers())
        made.remove()
        assert untouched(mounted)
        assert lock.leftovers() == []
        assert made.facts() == {}


@pytest.mark.parametrize("steps", range(1, 9))
def test_the_run_after_a_killed_one_gives_ways_back(mounted: Kernel, lock: MachineLock, steps: int) -> None:
    """Killed before each change of the kernel, and once when all are made."""
    child = os.fork()
    if not child:
        left = [steps]

        def dying(change: Callable[..., object], *arguments: object, **named: object) -> object:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*arguments, **named)

        lock.__enter__()
        for name in ("mkdir", "_set_masks", "_move"):
            setattr(mounted, name, partial(dying, getattr(mounted, name)))
        division(lock, mounted.root).make()
        os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "it was killed"
    with lock:
        removed = lock.remove_leftovers()
        assert untouched(mounted)
        assert lock.leftovers() == []
    assert len(removed) == (steps > 1), "no removal is reported where nothing was created"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((CachePart(owner="nf-1-1", cpus=(4,), masks={0: 0x5}), PARTS[-1]), "cannot be set: .*mask 5 has non-consec"),
        ([CachePart(owner=f"nf-{n}-1", cpus=(n,), masks={0: 0x3 << 2 * n}) for n in range(4)], "No space left"),
    ],
    ids=["holes", "too many groups"],
)
def test_a_refusal_is_said(mounted: Kernel, lock: MachineLock, parts: Sequence[CachePart], reason: str) -> None:
    with lock:
        with pytest.raises(CsitError, match=reason):
            division(lock, mounted.root, parts).make()
        assert untouched(mounted)
        assert lock.leftovers() == []


def test_a_group_of_others_is_not_touched(mounted: Kernel, lock: MachineLock) -> None:
    (mounted.root / "csit-nf-1-1").mkdir()
    with lock:
        with pytest.raises(CsitError, match=r"there is a resource group .*csit-nf-1-1 already, not ours; `rmdir"):
            division(lock, mounted.root).make()
        assert lock.leftovers() == []
    assert [each.name for each in mounted.groups()] == ["csit-nf-1-1"]


def test_ways_that_cannot_be_given_back_stay_on_the_record(mounted: Kernel, lock: MachineLock) -> None:
    with lock:
        made = division(lock, mounted.root)
        made.make()
        mounted.refuses_masks = True
        with pytest.raises(CsitError, match=r"schemata could not be set back to L3:0=7ff;1=7ff"):
            made.remove()
        assert lock.leftovers()
        mounted.refuses_masks = False
        assert lock.remove_claimed()
        assert untouched(mounted)


def test_the_layout_of_the_machine_has_what_the_kernel_divides(mounted: Kernel, tmp_path: Path) -> None:
    for cpu in (0, 1):
        for index, level in ((0, 1), (3, 3)):
            tree(tmp_path / f"cpus/cpu{cpu}/cache/index{index}", {"level": level, "id": cpu})
    found = resctrl.discover(root=str(mounted.root), cpus=str(tmp_path / "cpus"))
    assert found is not None
    assert (found.ways, found.least, found.reserved, found.domains) == (WAYS, MIN_RUNS, SHARED, {0: 0, 1: 1})


@pytest.mark.parametrize(
    ("filesystems", "folders", "why", "fix"),
    [
        ("nodev\tproc\n", (), "the kernel has no resctrl for this processor", ""),
        ("nodev\tresctrl\n", (), "resctrl is not mounted at", "mount -t resctrl resctrl"),
        ("nodev\tresctrl\n", ("info/L3CODE",), "divides code and data apart", "without cdp"),
        ("nodev\tresctrl\n", ("info/MB",), "the last-level cache of this processor cannot be divided", ""),
    ],
)
def test_the_doctor_says_why(tmp_path: Path, filesystems: str, folders: tuple[str, ...], why: str, fix: str) -> None:
    (tmp_path / "filesystems").write_text(filesystems)
    for folder in folders:
        (tmp_path / "resctrl" / folder).mkdir(parents=True)
    answer = cache_facts.answer({"root": tmp_path / "resctrl", "filesystems": tmp_path / "filesystems"})
    (finding,) = resctrl.check("nodes.DUT1", SIM.dut, answer)
    assert f"CACHE_WAYS is refused: {why}" in finding.what.replace(f"resctrl at {tmp_path / 'resctrl'} ", "")
    assert fix in finding.fix


def test_ways_are_given_back_even_where_containers_do_not_stop(mounted: Kernel, lock: MachineLock) -> None:
    stuck: Any = SimpleNamespace(start=lambda: None, stop=raising(CsitError("a container does not stop")), facts=dict)
    plan = plan_of("sim", "CSC", cores=cpus(28))
    with lock:
        cache = division(lock, mounted.root)
        groups = NfGroups(plan.functions, plan, cast(Any, None), lock, stuck, cache=cache)
        assert groups
        groups.make()
        assert groups.facts()["cache ways of nf-1-2"] == "2 (0xc) of cache 0, for CPUs 6, 8"
        with pytest.raises(CsitError, match="does not stop"):
            groups.remove()
        assert untouched(mounted)
