"""A packed runtime: what is in its archive."""

import subprocess
import sys
from pathlib import Path

import pytest

from resources.libraries.python.testbed.connection.packing import PackedFolder, archive

FILES = {"package/__init__.py": b"", "package/module.py": b"print('packed')", "package/other.py": b"print 'Python 2'"}


@pytest.mark.parametrize(("compiled", "printed"), [(True, "packed"), (False, "changed")])
def test_byte_code_of_the_same_python_spares_a_node_the_compiling(compiled: bool, printed: str, tmp_path: Path) -> None:
    packed = archive({"folder": PackedFolder("0", FILES, compiled)})
    subprocess.run(["tar", "-xz", "-C", tmp_path], input=packed, check=True)
    (tmp_path / "folder/package/module.py").write_text("print('changed')")  # byte code is used as it is
    argv = [sys.executable, "-B", "-c", "import package.module"]
    done = subprocess.run(argv, cwd=tmp_path / "folder", capture_output=True, text=True, check=True)
    assert done.stdout.split() == [printed]
