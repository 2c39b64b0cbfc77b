"""Jobs: a list of override lists, handed to a launcher; their records, their status and their end."""
