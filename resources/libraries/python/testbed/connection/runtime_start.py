"""Lies on a node beside `project/` and a link `packages`, and starts an agent from them, whatever else its Python has.

python3 -I start.py ARGUMENTS...: the agent. python3 -I start.py --try MODULES...: whether they can be imported.
"""

import importlib
import os
import runpy
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

here = Path(__file__).absolute().parent
paths = [str(here / "project"), str(here / "packages")]
sys.path[:0] = paths
os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # of workers, which are Python processes too
os.environ["PYTHONNOUSERSITE"] = "1"
# Looking for pydantic plugins and running pyroute2's __init__, which imports all of its protocols, take a tenth of an
# agent's start. Agents have no plugins, and import the message classes that they use by their own modules.
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
if spec := PathFinder.find_spec("pyroute2", paths):
    sys.modules["pyroute2"] = module_from_spec(spec)  # made, and not executed
if sys.argv[1:2] == ["--try"]:
    for name in sys.argv[2:]:
        importlib.import_module(name)
else:
    for path in (here, here / "packages"):
        os.utime(path)  # it is in use: others are older
    runpy.run_module("resources.libraries.python.testbed.agent", run_name="__main__")
