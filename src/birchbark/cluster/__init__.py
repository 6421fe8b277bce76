"""Work that is divided among processes and machines, with the result of a single process."""
