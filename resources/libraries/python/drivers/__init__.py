"""Drivers, a package per product; product words stay inside."""
