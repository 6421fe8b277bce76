"""Does re-ranking help on a person's own documents? Drafted questions, judgments, a report."""
