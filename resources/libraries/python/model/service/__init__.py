"""Services of several components: what is deployed, in which sizes, and the workload that is offered."""
