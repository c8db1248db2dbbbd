"""Sweep: one service at a series of loads, its saturation point and its profile (Troia et al.)."""
