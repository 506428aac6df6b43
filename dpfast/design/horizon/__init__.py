"""design/horizon."""
