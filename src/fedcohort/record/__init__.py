"""What a run leaves behind: its folder, journal, tables and history, and how they are read again."""
