"""Lies on a node beside `project/` and a link `packages`, and starts an agent from them, whatever else its Python has.

python3 -I start.py ARGUMENTS...: the agent. python3 -I start.py --try MODULES...: whether they can be imported.
"""

import importlib
import os
import runpy
import sys
from pathlib import Path

here = Path(__file__).absolute().parent
paths = [str(here / "project"), str(here / "packages")]
sys.path[:0] = paths
os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # of workers, which are Python processes too
os.environ["PYTHONNOUSERSITE"] = "1"
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # agents have none, and looking for them takes time of each start
if sys.argv[1:2] == ["--try"]:
    for name in sys.argv[2:]:
        importlib.import_module(name)
else:
    for path in (here, here / "packages"):
        os.utime(path)  # it is in use: others are older
    runpy.run_module("resources.libraries.python.testbed.agent", run_name="__main__")
