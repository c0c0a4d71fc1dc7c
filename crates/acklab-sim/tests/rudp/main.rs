//! Goal: reliable UDP does in virtual time what docs/rudp.md asks of it: every byte, within the times of
//! its table, over one path and several, with losses, paths that die and return, and hostile peers.
//! Method: a whole client and a whole server in the world, on hosts with a link for each path: 20 Mbit/s, 20 ms each way, a queue of
//! 100 ms, independent losses in both directions, unless a test says otherwise; seeds not chosen for their outcome.

mod busy;
mod content;
mod coupled;
mod handshake;
mod hostile;
mod long;
mod paths;
mod prague;
mod sharing;
mod support;
mod table;
