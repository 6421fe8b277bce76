"""What kinds of studies are there? Each an experiment that gives tables, plots and runs."""
