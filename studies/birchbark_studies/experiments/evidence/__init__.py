"""What does segment evidence add to the first stage? The kinds `evidence` and `training`."""
