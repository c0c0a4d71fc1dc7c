//! Flow reconstruction: connections, their two directions, and what each segment means there.

pub mod observe;
