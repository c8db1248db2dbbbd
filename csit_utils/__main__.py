"""`python -m csit_utils`."""

import atexit
import gc
import signal
import sys

# Results and pages are many objects and hardly any cycles: searching for some after every 700 objects, as Python does,
# would be 7 % of the CPU time of a report. Runs start here too: what they hold is closed where its block ends, never by
# the search for cycles.
gc.set_threshold(50_000)
# Or Python searches all objects for cycles at its end, for 0.25 s. DuckDB prints those of its own that are not freed.
atexit.register(lambda: None if "duckdb" in sys.modules else gc.freeze())
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Until a command runs, Ctrl-C has nothing to remove, and would show the line that was being imported.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # ./csit blocks it: Python would print a traceback

from csit_utils.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
