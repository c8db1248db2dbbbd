"""Reading side of sweeps, profiles and chain predictions."""
