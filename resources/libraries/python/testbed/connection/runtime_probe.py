"""Runs on a node by whatever Python is there: says what that Python is, and which runtimes the node has.

Argument: FOLDER. Kept to what Python 3.6 knows, so that an old one can say how old it is.
"""

import json
import os
import platform
import stat
import sys
import sysconfig

folder = sys.argv[1]
have, problem = [], ""
try:
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        mode = found.st_mode & 0o7777
        problem = f"it belongs to user {found.st_uid} with mode {mode:o}; look at it and remove it"
    else:
        names = os.listdir(folder)  # noqa: PTH208 - names are wanted
        have = sorted(name for name in names if not name.startswith("."))
except OSError as error:
    if error.errno != 2:
        problem = str(error.strerror)
print(
    json.dumps(
        {
            "version": list(sys.version_info[:3]),
            "machine": platform.machine(),
            "soabi": sysconfig.get_config_var("SOABI"),
            "libc": list(platform.libc_ver()),
            "have": have,
            "problem": problem,
        }
    )
)
