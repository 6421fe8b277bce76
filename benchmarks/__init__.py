"""How does birchbark stand beside its peers, measured side by side?"""
