"""Network functions as both ends of an OpenVPN tunnel: packets are encrypted and decrypted again."""
