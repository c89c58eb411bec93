"""Support refunds: a customer asks about an order; an agent looks it up, decides by the policy and refunds."""
