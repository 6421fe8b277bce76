"""How do segment scores become document scores, and those a ranking?"""
