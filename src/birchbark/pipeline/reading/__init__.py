"""What is read of a query's candidates, and what are their scores? The plan and its execution."""
