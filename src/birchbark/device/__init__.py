"""How is a model's graph run on a GPU, with torch?"""
