"""Values as nodes that know where they stand in what they were read from, so that a part is replaced and no other."""
