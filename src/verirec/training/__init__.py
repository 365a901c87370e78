"""Training: objectives, noise corrections, solvers, the only loop, and the recommender that it leaves."""
