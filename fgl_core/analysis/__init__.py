"""Measurements on models, graphs and clusters that are not training."""
