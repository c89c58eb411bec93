"""Experiments in a process of their own, which holds nothing of its parent's and reaches nothing by itself."""
