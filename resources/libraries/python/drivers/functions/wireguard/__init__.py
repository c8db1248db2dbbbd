"""Network functions as both ends of a WireGuard tunnel in user space: packets are encrypted and decrypted again."""
