"""How is a file of each type read: its title, its text, its fields and the files in it?"""
