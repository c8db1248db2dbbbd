"""Network functions that share a server: matrix, sensitivity, placement. Pure; the methods are those of Zeng et al."""
