"""From policies and seeds to rows, tables and pictures."""
