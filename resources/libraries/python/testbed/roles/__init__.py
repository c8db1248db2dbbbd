"""Roles: small protocols that drivers fulfil."""
