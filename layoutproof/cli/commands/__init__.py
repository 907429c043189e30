"""Commands: one file each, the file's name is the command's name; `command` in it is a `click.Command`."""
