"""A history of simulated nights, and the time to import it and to make its report."""
