"""The commands, one file each: options in, words and an exit code out."""
