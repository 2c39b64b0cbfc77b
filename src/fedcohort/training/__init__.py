"""One client's local work, and the engines that do it for many."""
