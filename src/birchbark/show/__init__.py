"""How are tables, plots and attention maps represented and drawn?"""
