"""Network namespaces, links, routing and traffic control by netlink."""
