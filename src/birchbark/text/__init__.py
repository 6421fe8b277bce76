"""How does text become index terms? Tokenise, stop, stem: analyzers are values, chosen by name."""
