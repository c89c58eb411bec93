"""What holds the process of an experiment: its network, its files, its environment, and the proxy that it may ask."""
