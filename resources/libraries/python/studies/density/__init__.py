"""Density: NDR, PDR, MRR and latency of every cell of the service density matrix."""
