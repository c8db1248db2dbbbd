"""Network functions as both ends of an IPsec tunnel in a VPP: packets are encrypted and decrypted again."""
