"""Local training of clients, and the engines that train many clients at once."""
