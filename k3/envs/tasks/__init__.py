"""Tasks whose answers a program checks, each under any harness."""
