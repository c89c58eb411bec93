"""What personal values become: text of the same form, made with a keyed hash, so that equal values stay equal."""
