"""What the workflows share: tools and what stands behind them, models, versioned files, owners, answers, deletion."""
