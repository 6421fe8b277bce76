"""How is a study of any kind run and written? Recipe → tables, plots, runs, report, manifest."""
