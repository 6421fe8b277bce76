"""How is a document split into segments that BERT can read, so that no text is lost?"""
