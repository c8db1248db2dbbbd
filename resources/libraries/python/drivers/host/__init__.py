"""The local machine: namespaces, links, kernel threads."""
