"""How do tables, plots and attention look to people? Values, and what is drawn of them."""
