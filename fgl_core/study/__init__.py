"""Studies: what a run is, where its record lies, how many runs are executed and tuned, what a study has."""
