"""softmargin and its rivals behind one function each."""
