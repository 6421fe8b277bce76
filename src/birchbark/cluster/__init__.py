"""Work that is divided among processes and machines, with the bytes of a single process."""
