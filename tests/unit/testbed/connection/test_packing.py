"""A packed runtime: what is in its archive."""

import os
import py_compile
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from resources.libraries.python.testbed.connection.packing import PackedFolder, archive

FILES = {"package/__init__.py": b"", "package/module.py": b"print('packed')", "package/other.py": b"print 'Python 2'"}
SAME_SIZE = b"print('cached')"
"""As many bytes as the module has: its byte code is valid for that, too."""


def printed_there(folder: Path, origins: Mapping[str, Path]) -> list[str]:
    """What the module prints on a node on which its source is changed afterwards."""
    packed = archive({"folder": PackedFolder("0", FILES, origins)})
    shutil.rmtree(folder / "folder", ignore_errors=True)
    subprocess.run(["tar", "-xz", "-C", folder], input=packed, check=True)
    (folder / "folder/package/module.py").write_text("print('changed')")  # byte code is used as it is
    argv = [sys.executable, "-B", "-c", "import package.module"]
    done = subprocess.run(argv, cwd=folder / "folder", capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_byte_code_of_this_machine_is_taken_where_it_is_that_of_the_source(tmp_path: Path) -> None:
    origin = tmp_path / "module.py"
    origin.write_bytes(FILES["package/module.py"])
    compiled_after(origin, SAME_SIZE)  # to be told from a new one
    assert printed_there(tmp_path, {"package/module.py": origin}) == ["cached"]
    assert printed_there(tmp_path, dict.fromkeys(FILES, tmp_path / "none")) == ["packed"], "it is compiled here"
    assert printed_there(tmp_path, {}) == ["changed"], "it is compiled there"


@pytest.mark.parametrize("changed_s", [0, 1])
def test_byte_code_of_an_earlier_source_is_not_taken(changed_s: int, tmp_path: Path) -> None:
    """Also where the file has kept its size and its time, as within a second or by `rsync -t`."""
    origin = tmp_path / "module.py"
    origin.write_bytes(SAME_SIZE)
    compiled_after(origin, SAME_SIZE)
    found = origin.stat()
    origin.write_bytes(FILES["package/module.py"])
    os.utime(origin, (found.st_atime, found.st_mtime + changed_s))
    assert printed_there(tmp_path, {"package/module.py": origin}) == ["packed"]


def compiled_after(origin: Path, source: bytes) -> None:
    """Write byte code of a source as that of a file, later than its last change by the clock of the file system."""
    other = origin.with_name("other.py")
    other.write_bytes(source)
    place = cache_from_source(str(origin), optimization="")
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        found = origin.stat()
        os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
        mode = py_compile.PycInvalidationMode.TIMESTAMP
        py_compile.compile(str(other), cfile=place, doraise=True, invalidation_mode=mode)
        if Path(place).stat().st_mtime_ns > found.st_ctime_ns:
            return
    pytest.fail("the clock of the file system stands still")
