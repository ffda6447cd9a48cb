"""What scripts/gpu-check is made of. Standard library only."""
