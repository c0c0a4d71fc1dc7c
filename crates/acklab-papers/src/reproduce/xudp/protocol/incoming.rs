//! The receiving half: fragments are put together, each packet and each complete parcel is acknowledged.

use std::collections::BTreeMap;

use super::packet::{Command, Fragment};

#[derive(Default)]
pub(super) struct Incoming {
    partial: BTreeMap<u64, Vec<bool>>,
    /// Parcels delivered: all below `delivered_below`, and these.
    delivered: Vec<u64>,
}

impl Incoming {
    /// A fragment came: the commands that answer it, and the parcel that it completes.
    pub(super) fn on_fragment(&mut self, fragment: &Fragment) -> (Vec<Command>, Option<u64>) {
        let mut commands = vec![Command::Packet(fragment.number)];
        let id = fragment.parcel;
        if self.delivered.binary_search(&id).is_ok() {
            return (commands, None);
        }
        let parts = self.partial.entry(id).or_insert_with(|| vec![false; fragment.count as usize]);
        if let Some(part) = parts.get_mut(fragment.index as usize) {
            *part = true;
        }
        if !parts.iter().all(|part| *part) {
            return (commands, None);
        }
        self.partial.remove(&id);
        let place = self.delivered.partition_point(|other| *other < id);
        self.delivered.insert(place, id);
        commands.push(Command::Parcel { id, step: 1 });
        (commands, Some(id))
    }
}
