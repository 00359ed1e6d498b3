"""The lists that everything else reads: the tasks (one record for each estimator) and the solvers."""
