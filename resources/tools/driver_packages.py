"""Print the programs that drivers of some roles declare, each as `PROGRAM PACKAGE...`, with their Debian packages.

Usage: driver_packages.py ROLE... It runs before the project's Python packages are there, so it reads the declarations
as syntax trees. Programs that are looked for in a folder of the topology come from elsewhere than Debian.
"""

import ast
import sys
from pathlib import Path

_DRIVERS = Path(__file__).parents[1] / "libraries" / "python" / "drivers"

for role in sys.argv[1:]:
    for file in sorted((_DRIVERS / role).glob("*/*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id == "RequiredProgram"
                and all(keyword.arg != "path" for keyword in call.keywords)
            ):
                print(*map(ast.literal_eval, call.args[:2]))
