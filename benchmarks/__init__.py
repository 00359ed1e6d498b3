"""Measurements of softmargin on real data, judged by code that does not belong to it."""
