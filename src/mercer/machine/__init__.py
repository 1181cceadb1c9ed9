"""What all machines share at the border to scikit-learn.

Data and targets are checked here, kernel strings become kernels, sample and class weights become one weight for each
point, a Solution becomes fitted attributes and warnings, and a Monitor speaks scikit-learn's callbacks.
"""
