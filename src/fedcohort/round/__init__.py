"""One round: who is asked, what it costs, what comes back, and the server's step."""
