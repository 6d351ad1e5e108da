"""The methods: objects that describe documents, propose pairs, measure them and decide on them."""
