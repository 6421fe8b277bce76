"""How good is a run, and is the difference between two runs significant?"""
