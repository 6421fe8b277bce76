"""How are an index, its vectors and its folder kept in step? Adding, deleting, precomputing."""
