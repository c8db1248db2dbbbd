"""Studies: one folder per experiment. Model, planning and analysis are pure; the other modules run it."""
