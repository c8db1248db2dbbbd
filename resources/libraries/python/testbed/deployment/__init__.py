"""Deployment of a plan through the roles, health checks and removal."""
