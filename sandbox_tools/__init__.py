"""Sandbox registries: the tools of each workflow without the world behind them."""
