"""How are files of each format read as documents, queries, qrels and runs?"""
