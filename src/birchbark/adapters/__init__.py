"""How does birchbark work with other libraries? One module per library; each needs its extra."""
