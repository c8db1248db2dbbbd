"""A packed runtime: what is in its archive."""

import os
import py_compile
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from resources.libraries.python.testbed.connection.packing import PackedFolder, archive

FILES = {"package/__init__.py": b"", "package/module.py": b"print('packed')", "package/other.py": b"print 'Python 2'"}
SAME_SIZE = b"print('cached')"
"""As many bytes as the module has: its byte code is valid for that, too."""


@pytest.mark.parametrize(("compiled", "printed"), [(True, "packed"), (False, "changed")])
def test_byte_code_of_the_same_python_spares_a_node_the_compiling(compiled: bool, printed: str, tmp_path: Path) -> None:
    assert printed_there(tmp_path, dict.fromkeys(FILES, tmp_path / "none") if compiled else {}) == [printed]


def printed_there(folder: Path, origins: Mapping[str, Path]) -> list[str]:
    """What the module prints on a node on which its source is changed afterwards."""
    packed = archive({"folder": PackedFolder("0", FILES, origins)})
    subprocess.run(["tar", "-xz", "-C", folder], input=packed, check=True)
    (folder / "folder/package/module.py").write_text("print('changed')")  # byte code is used as it is
    argv = [sys.executable, "-B", "-c", "import package.module"]
    done = subprocess.run(argv, cwd=folder / "folder", capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("source", "changed_s", "printed"),
    [(SAME_SIZE, 0, "cached"), (SAME_SIZE, 1, "packed"), (SAME_SIZE + b" ", 0, "packed")],
    ids=["as it was", "another time", "another size"],
)
def test_byte_code_of_this_machine_is_taken_where_it_is_that_of_the_source(
    source: bytes, changed_s: int, printed: str, tmp_path: Path
) -> None:
    origin = tmp_path / "module.py"
    origin.write_bytes(source)
    py_compile.compile(str(origin), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    found = origin.stat()
    os.utime(origin, (found.st_atime, found.st_mtime + changed_s))
    assert printed_there(tmp_path, {"package/module.py": origin}) == [printed]
