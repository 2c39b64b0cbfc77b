"""The machine: processes, memory, disk, interrupts, locks."""
