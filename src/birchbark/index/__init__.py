"""How are documents indexed on disk? Built once, read through memory maps."""
