"""HLO modules as programs: compiled texts as equations that all interpreters read. Start in `programs`."""
