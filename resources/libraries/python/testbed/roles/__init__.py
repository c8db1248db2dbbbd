"""What can be asked of the world: small protocols that drivers fulfil."""
