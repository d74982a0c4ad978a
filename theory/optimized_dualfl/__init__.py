"""OptimizedDualFL: the information-theoretic exact method (ITEM) of Taylor and Drori on the dual problem of DualFL."""

PAPER = "OptimizedDualFL: Taylor and Drori, An optimal gradient method, on the dual problem"
