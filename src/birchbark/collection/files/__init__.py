"""How is a folder of files of many types read as Documents, one per file?"""
