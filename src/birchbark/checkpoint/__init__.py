"""How are model directories read, checked, changed and written?"""
