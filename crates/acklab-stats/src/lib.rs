//! Distributions, quantiles and intervals; knows no packets.
