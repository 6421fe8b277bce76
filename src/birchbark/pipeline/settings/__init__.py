"""Which choices define how candidates are re-ranked?"""
