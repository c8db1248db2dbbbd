"""Containers of network functions: Podman and Docker."""
