"""What do the papers' tables say on our data? Recipe → tables, plots and runs → a report."""
