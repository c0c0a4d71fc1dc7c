//! Queues against oracles: straightforward transliterations of what their RFCs and papers say, driven
//! with the same arrivals, and closed forms.

mod ack_filter;
mod codel;
mod drive;
mod dualpi2;
mod fairness;
mod marking;
mod pie;
mod policer;
mod red;
