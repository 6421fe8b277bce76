"""How are training pairs read, made from judged collections, checked, held out and written?"""
