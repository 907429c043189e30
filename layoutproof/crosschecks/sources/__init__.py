"""The sources, a file each; `layoutproof.crosschecks.source` says what is in one."""
