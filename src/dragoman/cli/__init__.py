"""The commands, one file each; the only readers of the command line and the environment."""
