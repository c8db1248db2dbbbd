"""Results in the formats of other tools, of mail and of chats."""
