"""What do experiments with trained models have in common?"""
