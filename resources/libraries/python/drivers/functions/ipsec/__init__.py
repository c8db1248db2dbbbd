"""Network functions as both ends of an IPsec tunnel in the kernel: packets are encrypted and decrypted again."""
