"""Ways of the last-level cache for single NFs, by resource groups of the kernel (resctrl).

A group has ways of each cache, and CPUs: what runs there without a group of its own uses these ways only. So kernel
threads of NFs are meant too. The ways of NFs are taken from all others, which are in the root group.

Every group, and what the root group had, is on the record of the machine before it is made or changed.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.host.cpu.cache_facts import ROOT, answer
from resources.libraries.python.drivers.host.kernel_files import line_of
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.findings import CheckFinding, ok, warning
from resources.libraries.python.model.plan import CachePart
from resources.libraries.python.model.testbed.cpu import CacheWays, expand
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.redaction import command_text

KEY = "cache"
"""Of leftovers on the record of a machine."""
_PREFIX = "csit-"
_log = logging.getLogger(__name__)


def discover(**places: str) -> CacheWays | None:
    """Read what can be divided here; None where nothing can.

    `places`: As arguments of `cache_facts.answer`; other ones for tests.
    """
    found = answer(places)
    return None if "why" in found else CacheWays.model_validate(found)


class DividedCache(Frozen):
    """Resource groups of a run, and the ways that the root group had."""

    root: Path
    groups: tuple[str, ...]
    before: str
    """Line of the root group's `schemata`: `L3:0=7ff;1=7ff`."""

    def __str__(self) -> str:
        return f"divided for {', '.join(self.groups)}; all others had {self.before}"


def remove(entries: Iterable[DividedCache]) -> list[str]:
    """Give back caches that a run divided; return a sentence for each.

    Raises:
        CsitError: The kernel refuses; the others were given back.
    """
    return take_all([partial(_give_back, each) for each in entries])


def _give_back(divided: DividedCache) -> list[str]:
    removed = []
    for name in divided.groups:
        try:
            (divided.root / name).rmdir()  # its CPUs are in the root group again
            removed.append(name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CsitError(f"resource group {divided.root / name} cannot be removed: {error.strerror}") from error
    schemata = divided.root / "schemata"
    if not schemata.exists() or (_line(schemata) == divided.before and not removed):
        return []
    try:
        schemata.write_text(f"{divided.before}\n", encoding="ascii")
    except OSError as error:
        raise CsitError(f"{schemata} could not be set back to {divided.before}: {error.strerror}") from error
    return [f"gave back the cache ways of {', '.join(removed) or 'NFs'}: all have {divided.before} again"]


class CacheDivision:
    """The ways of the NFs on this machine.

    `parts`: Of NFs, and of all others (`OTHERS`).
    `claim`: Puts an entry under `KEY` on the record of the machine.
    `release`: Takes entries off it.
    `root`: Where resctrl is mounted; another folder for tests.
    """

    def __init__(
        self,
        parts: Sequence[CachePart],
        claim: Callable[[str, object], None],
        release: Callable[[str, Iterable[object]], None],
        root: Path = Path(ROOT),
    ) -> None:
        self._parts = tuple(parts)
        self._claim, self._release = claim, release
        self._root = root
        self._divided: DividedCache | None = None

    def make(self) -> None:
        """Make the groups, and leave the other ways to all others.

        Raises:
            Unsupported: This machine divides no cache.
            CsitError: There is such a group, or the kernel refuses; what was made is given back.
        """
        found: dict[str, Any] = answer({"root": str(self._root)})
        if "why" in found:
            raise Unsupported(f"NFs cannot have cache ways of their own: {found['why']}")
        names = tuple(f"{_PREFIX}{each.owner}" for each in self._parts if not each.is_of_others)
        for name in names:
            if (group := self._root / name).exists():
                raise CsitError(
                    f"there is a resource group {group} already, not ours; `{command_text('rmdir', group)}`"
                )
        divided = DividedCache(root=self._root, groups=names, before=_line(self._root / "schemata"))
        self._claim(KEY, divided)
        self._divided = divided
        try:
            for each in self._parts:
                self._set(each)
        except (OSError, CsitError) as error:
            with suppress(CsitError):  # it stays on the record, and the next cleanup says why
                self.remove()
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            raise CsitError(f"{self._root}: cache ways cannot be set: {reason}{_last_status(self._root)}") from error

    def _set(self, part: CachePart) -> None:
        folder = self._root if part.is_of_others else self._root / f"{_PREFIX}{part.owner}"
        masks = _masks(_line(self._root / "schemata")) | part.masks
        if not part.is_of_others:
            folder.mkdir()
        _write(folder / "schemata", _as_line(masks))
        if (kept := _masks(_line(folder / "schemata"))) != masks:
            raise CsitError(f"{folder / 'schemata'} has {_as_line(kept)} instead of {_as_line(masks)}")
        if not part.is_of_others:
            _write(folder / "cpus_list", ",".join(map(str, part.cpus)))
            if set(expand((folder / "cpus_list").read_text(encoding="ascii").strip())) != set(part.cpus):
                raise CsitError(f"{folder / 'cpus_list'} has not the CPUs {', '.join(map(str, part.cpus))}")

    def facts(self) -> Mapping[str, str]:
        """Ways by owner, where the cache is divided."""
        return {f"cache ways of {each.owner}": str(each) for each in self._parts} if self._divided else {}

    def remove(self) -> None:
        """Give all ways back. Safe to call after a failure.

        Raises:
            CsitError: The kernel refuses; it stays on the record.
        """
        divided, self._divided = self._divided, None
        if divided is not None:
            for sentence in _give_back(divided):
                _log.debug(sentence)
            self._release(KEY, [divided])


def _line(schemata: Path) -> str:
    lines = schemata.read_text(encoding="ascii").splitlines()
    return next((line.strip() for line in lines if line.strip().startswith("L3:")), "")


def _masks(line: str) -> dict[int, int]:
    """Masks by domain of a line such as `L3:0=7ff;1=7ff`."""
    pairs = (pair.split("=") for pair in line.partition(":")[2].split(";") if pair)
    return {int(domain): int(mask, 16) for domain, mask in pairs}


def _as_line(masks: Mapping[int, int]) -> str:
    return "L3:" + ";".join(f"{domain}={mask:x}" for domain, mask in sorted(masks.items()))


def _write(path: Path, text: str) -> None:
    path.write_text(f"{text}\n", encoding="ascii")


def _last_status(root: Path) -> str:
    """The kernel's own words about the last refusal."""
    text = line_of(root / "info" / "last_cmd_status")
    return f" ({text})" if text not in (None, "ok") else ""


def check(place: str, node: TgNode | DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Say whether NFs can have ways of their own.

    `answer`: of `cache_facts`.
    """
    del node
    if "why" not in answer:
        text = f"{answer['ways']} ways of the last-level cache can be divided among NFs (CACHE_WAYS)"
        yield ok(place, KEY, text)
        return
    text = f"CACHE_WAYS is refused: {answer['why']}"
    yield warning(place, KEY, text, answer["fix"]) if answer["fix"] else ok(place, KEY, text)
