"""How does text become index terms: tokenised, without stop words, stemmed?"""
