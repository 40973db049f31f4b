"""From the text of a selector to the tree of its nodes: lexer, grammar, macros, tree, types."""
