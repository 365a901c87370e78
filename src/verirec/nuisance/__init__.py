"""What estimators need to know besides the log: propensities, noise rates and imputed errors."""
