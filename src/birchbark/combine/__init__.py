"""How do segment scores become document scores, and document scores a ranking?"""
