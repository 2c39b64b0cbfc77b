"""The files of a run: folder, journal, tables and history, with functions that write and read them."""
