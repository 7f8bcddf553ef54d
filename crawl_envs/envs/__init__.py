"""The Gymnasium environments, single and vector, rendering and wrappers."""
