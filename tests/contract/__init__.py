"""The contract: promises of every filter, whatever it computes, checked for all that are found."""
