//! The virtual-time world: event loop, hosts, applications, links.
