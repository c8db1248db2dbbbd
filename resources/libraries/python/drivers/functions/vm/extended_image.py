"""Initramfs of guests with programs: the image of all guests, this machine's programs and their libraries (ldd)."""

import hashlib
import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from resources.libraries.python.drivers.functions.vm.archive import ArchiveEntry, cpio, file, folder
from resources.libraries.python.drivers.functions.vm.image import Image
from resources.libraries.python.drivers.host.programs.image_cache import alone
from resources.libraries.python.drivers.host.programs.program_output import completed, path_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.whole_files import replace_file

_log = logging.getLogger(__name__)


_FOUND = re.compile(r"^[ \t]++(?:\S++ => )?(/\S++) \(0x[0-9a-f]+\)$", re.MULTILINE)
_LOST = re.compile(r"^[ \t]++(\S++) => not found$", re.MULTILINE)
_WITHIN_S = 30.0


def libraries(programs: Sequence[Path]) -> tuple[Path, ...]:
    """Libraries that programs load, the loader among them, each where it is looked for.

    Raises:
        Unsupported: There is no ldd, or a library is nowhere.
        CommandFailed: One is no program.
    """
    if path_of("ldd") is None:
        raise Unsupported("there is no ldd here, which finds what programs need inside of a guest")
    return parse(completed(("ldd", *map(str, programs)), _WITHIN_S).stdout)


def parse(shown: str) -> tuple[Path, ...]:
    """Read what ldd shows.

    Raises:
        Unsupported: A library is nowhere.
    """
    if lost := _LOST.findall(shown):
        raise Unsupported(f"programs of a guest need libraries that are not here: {', '.join(dict.fromkeys(lost))}")
    return tuple(Path(path) for path in dict.fromkeys(_FOUND.findall(shown)))


def extended(base: Image, word: str, files: Sequence[Path], entries: Sequence[ArchiveEntry], cache: Path) -> Path:
    """An archive with the guests' image and more, made once for each content; the last one of a word only is kept.

    `entries`: further files, which may replace those of the image.

    Raises:
        CsitError: It cannot be made.
    """
    place = cache / f"{word}-{_digest(base, files, entries)}.cpio"
    with alone(cache):
        if not place.exists():
            # The kernel unpacks archives that follow one another, and takes the last of two files of a name.
            content = base.initramfs.read_bytes() + cpio([*carried(files), *entries])
            replace_file(place, content, sync=False)
            for old in set(cache.glob(f"{word}-*.cpio")) - {place}:
                old.unlink()
            _log.info("made %s, %d MB", place, len(content) // 2**20)
    return place


def carried(files: Iterable[Path]) -> list[ArchiveEntry]:
    """Programs and libraries with the folders that they are in, where this machine has them."""
    rows = list(files)
    parents = sorted({parent for path in rows for parent in path.relative_to("/").parents} - {Path()})
    return [
        *(folder(str(path)) for path in parents),
        *(file(str(path.relative_to("/")), path.read_bytes(), executable=True) for path in rows),
    ]


def _digest(base: Image, files: Iterable[Path], entries: Sequence[ArchiveEntry]) -> str:
    """Changes with whatever goes into the archive; of large files, with size and time."""
    stats = [(str(path), (found := path.stat()).st_size, found.st_mtime_ns) for path in files]
    return hashlib.sha256(repr((base.description.digests, stats, entries)).encode()).hexdigest()[:12]
