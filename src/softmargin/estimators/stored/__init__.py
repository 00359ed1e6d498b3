"""What of each estimator goes into a model file, part by part; `persistence.py` says which has which."""
