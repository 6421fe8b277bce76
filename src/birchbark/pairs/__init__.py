"""How do judged collections become training pairs?"""
