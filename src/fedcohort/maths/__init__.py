"""Mathematics with a name, which methods share."""
