"""The testbed: nodes, connections, agents, roles, deployment of a plan, reservation and maintenance."""
