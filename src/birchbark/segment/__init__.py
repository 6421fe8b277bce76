"""How is a document cut into pieces that BERT can read, so that nothing is lost?"""
