"""Network functions of nftables: Linux routers that filter or translate what they forward."""
