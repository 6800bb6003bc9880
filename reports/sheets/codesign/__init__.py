"""What is shown of joint designs: of one workload or several, on one number of devices or several, and of what else is asked of them."""
