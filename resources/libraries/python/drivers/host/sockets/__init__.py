"""Sockets and rings of other programs: backlog, losses, paths."""
