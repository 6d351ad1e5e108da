"""How each method describes, proposes, measures and decides: the objects that the engines ask."""
