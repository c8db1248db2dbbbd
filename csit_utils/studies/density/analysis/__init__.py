"""Analysis of the density matrix. Pure."""
