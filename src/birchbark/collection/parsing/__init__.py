"""How are strangers' files opened, decoded and parsed, and what happens to bad records?"""
