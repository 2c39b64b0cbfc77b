"""Which sample belongs to which client."""
