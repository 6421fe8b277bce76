"""How are Documents kept on disk so that words find them? Built once, read through memory maps."""
