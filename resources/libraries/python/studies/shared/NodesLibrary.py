"""SSHLibrary connections to the nodes of a lab, with checked host keys."""

from contextlib import ExitStack
from typing import Any

from robot.api import logger
from robot.api.deco import library
from robot.libraries.BuiltIn import BuiltIn

from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.studies.shared.boundary import REDACTION, keyword, variable
from resources.libraries.python.studies.shared.choices import chosen_topology
from resources.libraries.python.studies.shared.choices_before_run import AT_START


@library(scope="SUITE", listener=[REDACTION, AT_START], doc_format="ROBOT")
class NodesLibrary:
    """Connections of SSHLibrary to all nodes of the testbed.

    SSHLibrary by itself takes any host key and knows one jump host at most. So its own keywords for opening and logging
    in are not used: it is given connections that stand, made as the topology says, with all host keys checked.
    """

    def __init__(self) -> None:
        self._open = ExitStack()

    @keyword
    def open_connections_to_nodes(self) -> list[str]:
        """Connect to all nodes of the testbed that the variable ``TOPOLOGY`` names, and return their names.

        Each name is an alias for SSHLibrary's ``Switch Connection``. Testbeds that are no lab have no such nodes:
        nothing is connected then, and the list is empty.

        | ${nodes} = | Open Connections To Nodes |
        """
        topology = chosen_topology(variable)
        if topology.world is not World.LAB:
            return []
        # Only labs need SSH, and importing it takes a second.
        from resources.libraries.python.testbed.connection.ssh import SshConnection  # noqa: PLC0415

        BuiltIn().import_library("SSHLibrary")
        ssh: Any = BuiltIn().get_library_instance("SSHLibrary")
        for name, node in topology.machines.items():
            assert node.access is not None  # noqa: S101 (the model sees to it)
            connection = SshConnection(name, node.access)
            self._open.callback(connection.close)
            transport = connection.connect()
            self._open.callback(ssh.close_all_connections)
            ssh.open_connection(node.access.host, alias=name, timeout="30 seconds")
            ssh.current.client._transport = transport
            logger.info(f"connected to {name} at {node.access.host}")
        return list(topology.machines)

    @keyword
    def close_connections_to_nodes(self) -> None:
        """Close what ``Open Connections To Nodes`` has opened; nothing where that was not called.

        | Close Connections To Nodes |
        """
        self._open.close()
