"""Print what the commands return: a module for each command, named after it, and the parts they share."""
