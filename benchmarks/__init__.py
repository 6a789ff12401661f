"""How fast the package is, against plain loops that do the same work."""
