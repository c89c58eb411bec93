"""What is wrong with stored threads: one module per family of rules, each rule a pure function over what was read."""
