"""`python -m resources.libraries.python.testbed.agent`: an agent on standard input and output."""

import argparse
import logging
import os
import platform
import sys

from resources.libraries.python.recording.environment import boot_id, fingerprint
from resources.libraries.python.testbed.agent import calls, process
from resources.libraries.python.testbed.agent.service import AgentService
from resources.libraries.python.testbed.connection import project

_log = logging.getLogger(__name__)


def main() -> int:
    """Serve one controller; return the exit status."""
    source, sink = process.take_streams()
    parser = argparse.ArgumentParser(prog="agent")
    parser.add_argument("--controller", help="who calls; only shown, where processes are listed")
    parser.add_argument("--silence-s", type=float, required=True)
    options = parser.parse_args()
    process.log_to_stderr()
    greeting = calls.Greeting(
        protocol=calls.PROTOCOL,
        project=project.digest(project.sources().items()),
        python=platform.python_version(),
        hostname=platform.node(),
        pid=os.getpid(),
        boot_id=boot_id(),
    )
    service = AgentService(fingerprint, greeting)
    why = process.Conversation(source, sink, options.silence_s).serve(service.answer)
    _log.info("%s; removing what is there", why)
    service.close()  # an error ends the process with its traceback and status 1; the next agent removes what is left
    return 0


if __name__ == "__main__":
    sys.exit(main())
