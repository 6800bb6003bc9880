"""Integer models that under-estimate every design: refined, written as files, relaxed."""
