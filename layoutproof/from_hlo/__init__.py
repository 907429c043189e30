"""HLO modules as programs: what a compiler made, as equations that all interpreters read. Start in `programs`."""
