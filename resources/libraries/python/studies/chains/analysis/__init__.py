"""Chains compared: features, what stands out and why. Pure; the methods are those of Probius (Nam et al.)."""
