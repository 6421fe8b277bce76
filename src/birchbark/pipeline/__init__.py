"""How do the rooms work together? retrieve → segment → score → combine: the only composer."""
