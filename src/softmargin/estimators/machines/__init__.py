"""The estimators without scikit-learn: what fits, in processes that must start at once.

A machine has the parameters, the fit and the attributes of the estimator of the same name, and is saved in the same
file. It takes arrays and CSR matrices that a reader of ours has made, and checks no more of them than that needs. The
estimators are these machines with scikit-learn's surface: its checks of X and y, tags, metadata, callbacks, mixins.
"""
