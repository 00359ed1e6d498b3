"""From a model file to predictions with NumPy alone: for services, functions and containers that hold nothing else."""
