"""Applies a Plan through the roles and takes it down again."""
