//! The experiment of `nagle-delack` on the Linux kernel in virtual time: the sender is the guest's kernel in every case,
//! the receiver, too, or acklab's TCP behind a TUN device of the guest.

use std::fs::File;
use std::io::BufReader;
use std::net::{Ipv4Addr, SocketAddr};

use acklab_lab::scenario::{Graph, defaults};
use acklab_tcp::System;
use acklab_trace::capture::CaptureReader;

use crate::exchange::{Exchange, Segment};
use crate::job::{Foreign, Job};
use crate::linux_vt::Machine;
use crate::nagle::Experiment;
use crate::network;
use crate::world::{ETHERNET, WorldError};

/// One run of `experiment`, whose guest's randomness is `seed`.
pub fn run(machine: &Machine, experiment: &Experiment, seed: u64) -> Result<Exchange, WorldError> {
    let file = experiment.file(System::Linux).map_err(WorldError::Network)?;
    let graph =
        Graph::from_file(file).map_err(|mistake| WorldError::Network(mistake.to_string()))?;
    let network = graph.blueprint(&defaults(graph), seed).map_err(WorldError::Network)?;
    let mut job = network::job(&network, 0)?;
    if experiment.system() != System::Linux {
        replace_receiver(&mut job, experiment);
    }
    let done = machine.run(&job, seed)?;
    if done.log.lost_frames > 0 {
        return Err(WorldError::Lost(done.log.lost_frames));
    }
    let (Some(log), Some(flow)) = (done.log.flows.first(), job.flows.first()) else {
        return Err(WorldError::Network("no flow".to_owned()));
    };
    if let Some(error) = &log.error {
        return Err(WorldError::Network(error.clone()));
    }
    let ends = flow.ends.each_ref().map(|end| SocketAddr::V4(end.address));
    let zero = done.log.zero;
    let stamped = |list: &[(u64, u32)]| -> Vec<(u64, u32)> {
        list.iter().map(|(at, bytes)| (zero + at, *bytes)).collect()
    };
    let capture = File::open(done.capture(&flow.ends[0].space))?;
    let mut reader = CaptureReader::new(BufReader::new(capture))?;
    let mut segments = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        let ip = frame.bytes.get(ETHERNET..).unwrap_or_default();
        segments.extend(Segment::of_packet(frame.time.as_nanos(), ends[0], ip));
    }
    let (writes, reads) = (stamped(&log.writes), stamped(&log.reads));
    Ok(Exchange { ends, writes, monotonic: Vec::new(), reads, segments })
}

/// The receiver's address becomes acklab's, behind a device in the receiver's namespace, whose kernel passes packets on
/// and has an address that nobody else asks for.
fn replace_receiver(job: &mut Job, experiment: &Experiment) {
    let Some(end) = job.flows.first_mut().map(|flow| &mut flow.ends[1]) else { return };
    let [its_own, host] = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
    let (space, address) = (end.space.clone(), *end.address.ip());
    end.foreign =
        Some(Foreign { system: experiment.receiver.clone(), tick: experiment.tick, host });
    for space in job.spaces.iter_mut().filter(|one| one.name == space) {
        for line in &mut space.ip {
            *line = line
                .replace(&format!("addr add {address}/"), &format!("addr add {its_own}/"))
                .replace(&format!("src {address}"), &format!("src {its_own}"));
        }
    }
}
