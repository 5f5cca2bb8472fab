"""When each pod really occupied which resources."""
