"""How are scores stored and reused, on disk and in memory?

    ScoreStore     stores scores on disk, in one file per scorer, for later processes
    MemoryCache    caches the most recently used scores in memory, or all scores for one query
    CachedScorer   wraps a scorer, and looks up scores in either of them first

A cache never changes a score, which depends only on the scorer, the query and the segment's tokens.
"""
