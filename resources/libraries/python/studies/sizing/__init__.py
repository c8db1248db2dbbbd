"""Sizing: the smallest deployment of a multi-component service for a workload (NFV-VITAL)."""
