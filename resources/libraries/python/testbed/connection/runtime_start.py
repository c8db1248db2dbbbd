"""Lies on a node beside `project/` and a link `packages`, and starts an agent from them, whatever else its Python has.

python3 -I start.py ARGUMENTS...: the agent. python3 -I start.py --try MODULES...: whether they can be imported.
"""

import fcntl
import gc
import importlib
import os
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
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_SH)  # held until exit: a locked runtime is not pruned
    # What is imported stays: looking for garbage in it would be a fifth of the CPU time of a start and an end.
    gc.disable()
    agent = importlib.import_module("resources.libraries.python.testbed.agent.__main__")
    gc.freeze()
    gc.enable()
    sys.exit(agent.main())
