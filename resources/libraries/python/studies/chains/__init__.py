"""Chain study: chains of NFs by policy, their anomalies and the reasons (Probius, Nam et al.)."""
