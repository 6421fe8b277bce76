"""What is in a model directory?"""
