"""How the server applies an aggregated direction."""
