"""Local training of one client, and the engines that train many clients."""
