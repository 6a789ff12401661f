"""Tables and numbers from records: what pages show. Reads records, computes no runs, imports no torch.

The comparison that most pages share is named here; the other modules each serve a kind of page.
"""

from fgl_core.tables.cells import comparison, paired
from fgl_core.tables.frames import curves_frame, record_curves, runs_frame
from fgl_core.tables.labels import place
from fgl_core.tables.layout import (
    accuracy_table,
    difference_table,
    missing_table,
    sensitivity_table,
    settings_table,
    wide_table,
)

__all__ = [
    "accuracy_table",
    "comparison",
    "curves_frame",
    "difference_table",
    "missing_table",
    "paired",
    "place",
    "record_curves",
    "runs_frame",
    "sensitivity_table",
    "settings_table",
    "wide_table",
]
