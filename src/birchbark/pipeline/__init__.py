"""How do retrieval, segmentation, scoring and aggregation work together for a query?"""
