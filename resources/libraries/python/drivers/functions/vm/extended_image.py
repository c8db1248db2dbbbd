"""What a guest with programs begins with: the image of all guests, and on top of it programs of this machine."""

import hashlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from resources.libraries.python.drivers.functions.vm.archive import ArchiveEntry, cpio, file, folder
from resources.libraries.python.drivers.functions.vm.image import Image
from resources.libraries.python.drivers.host.programs.image_cache import alone

_log = logging.getLogger(__name__)


def extended(base: Image, word: str, files: Sequence[Path], entries: Sequence[ArchiveEntry], cache: Path) -> Path:
    """An archive with the guests' image and more, made once for each content; the last one of a word only is kept.

    Args:
        base: Of all guests.
        word: What begins its name.
        files: Programs and libraries of this machine.
        entries: Further files, which may replace those of the image.
        cache: Where archives are kept.

    Raises:
        CsitError: It cannot be made.
    """
    place = cache / f"{word}-{_digest(base, files, entries)}.cpio"
    with alone(cache):
        if not place.exists():
            # The kernel unpacks archives that follow one another, and takes the last of two files of a name.
            content = base.initramfs.read_bytes() + cpio([*carried(files), *entries])
            _write(place, content)
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


def _write(place: Path, content: bytes) -> None:
    """It appears complete or not at all."""
    with NamedTemporaryFile(dir=place.parent, delete=False) as out:
        out.write(content)
    Path(out.name).replace(place)
