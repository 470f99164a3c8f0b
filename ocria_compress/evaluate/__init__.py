"""Scores what a model read: one file per metric."""
