"""Models and algorithms of a reproducible study of federated graph learning (FGSSL and FedCCH).

Data flows one way: datasets → clients → method × federation → run record → tables, figures, claims.
Importing the package, or the parts that read records and make tables, imports no torch.
"""

__version__ = "0.1.0"
