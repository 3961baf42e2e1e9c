"""What runs the samplers: scheduler, store, events and the agent's measurements of itself."""
