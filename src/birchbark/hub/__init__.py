"""How are models downloaded from the Hugging Face hub?"""
