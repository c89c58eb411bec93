"""Travel booking: a flight and a hotel held, quoted, approved, paid once and ticketed."""
