//! Queueing disciplines and congestion controls as the settings describe them.

use acklab_core::cc::{Algorithm, Factory, ance, balance, encn as encn_sender};
use acklab_core::queue::ecn::Treatment;
use acklab_core::queue::{Discipline, Limit, codel, encn, jersey, pie, red, threshold};

use super::echo::EachAck;
use super::parameters::{Above, Bandwidth, DepartureRate, Echo, Service, Set, SlowStartChoice};

/// The congestion control of every flow.
pub(super) fn congestion_control(set: &Set) -> Algorithm {
    let own = &set.balance;
    match set.cc() {
        Algorithm::Ance(plain) => Algorithm::Ance(ance::Options {
            queue_min: (own.qmin * f64::from(set.tcp.packet)) as u64,
            bandwidth: match own.ance_bandwidth {
                Bandwidth::True => ance::Bandwidth::Oracle(set.network.rate),
                Bandwidth::Estimated => ance::Bandwidth::Estimated,
            },
            spacing: own.ance_spacing,
            equation2: own.ance_equation_2,
            window: window(set, balance::SlowStart::Algorithm1),
            ..plain
        }),
        Algorithm::Encn(_) => {
            Algorithm::Encn(encn_sender::Options { window: window(set, balance::SlowStart::Prose) })
        }
        Algorithm::Reno if set.tcp.ecn_echo == Echo::EachAck => {
            Algorithm::Custom(Factory::new(|start| Box::new(EachAck::new(start))))
        }
        other => other,
    }
}

/// The window rule that ANCE and ENCN share.
fn window(set: &Set, auto: balance::SlowStart) -> balance::Options {
    balance::Options {
        slow_start: match set.balance.slow_start {
            SlowStartChoice::Algorithm1 => balance::SlowStart::Algorithm1,
            SlowStartChoice::Prose => balance::SlowStart::Prose,
            SlowStartChoice::Auto => auto,
        },
        bf_floor: set.balance.bf_floor,
        rwnd: set.tcp.rwnd,
        ..balance::Options::default()
    }
}

/// The bottleneck's queue.
pub(super) fn discipline(set: &Set) -> Discipline {
    let (own, limit) = (&set.queues, limit(set));
    let k = f64::from(own.dctcp_k);
    let discipline = match set.queue().for_packets(limit.packets) {
        Discipline::Red(_) => Discipline::Red(red(set)),
        Discipline::Codel(plain) => Discipline::Codel(codel::Options {
            target: own.codel_target,
            interval: own.codel_interval,
            variant: own.codel,
            ..plain
        }),
        Discipline::Pie(_) => Discipline::Pie(pie(set, limit.packets)),
        Discipline::Encn(plain) => {
            Discipline::Encn(encn::Options { q_min: set.balance.qmin, ..plain })
        }
        Discipline::Jersey(plain) => {
            Discipline::Jersey(jersey::Options { threshold: own.jersey_threshold, ..plain })
        }
        Discipline::Edctcp(plain) => {
            Discipline::Edctcp(threshold::Options { threshold: k, ..plain })
        }
        Discipline::Threshold(plain) => {
            Discipline::Threshold(threshold::Options { threshold: k, ..plain })
        }
        other => other,
    };
    discipline.with_limit(limit).with_ecn(treatment(set))
}

fn red(set: &Set) -> red::Options {
    let own = &set.queues;
    red::Options {
        min_threshold: own.red_min,
        max_threshold: own.red_max,
        max_probability: own.red_pmax,
        weight: own.red_weight,
        mean_packet: set.tcp.packet,
        spacing: own.red_count,
        above_max: if own.red_above == Above::Drop {
            red::AboveMax::Drop
        } else {
            red::AboveMax::Mark
        },
        gentle: own.red_above == Above::Gentle,
        ..red::Options::default()
    }
}

fn pie(set: &Set, packets: u32) -> pie::Options {
    let variant = match set.queues.pie {
        pie::Tuning::Hpsr2013 => pie::Options::hpsr_2013(packets),
        pie::Tuning::Rfc8033 => pie::Options::packets(packets),
    };
    pie::Options {
        target: set.queues.pie_target,
        mean_packet: set.tcp.packet,
        delay: match set.queues.pie_rate {
            DepartureRate::Measured => pie::Delay::Departures,
            DepartureRate::Known => pie::Delay::KnownRate,
        },
        ..variant
    }
}

/// What happens to packets that a discipline chooses. Without a control loop there is nothing to
/// exempt but bare ACKs.
fn treatment(set: &Set) -> Treatment {
    match (set.tcp.ecn.is_on(), set.control.ncs_early) {
        (false, _) => Treatment::Drop,
        (true, Treatment::Drop) if set.dumbbell => Treatment::Mark,
        (true, _) => Treatment::Exempt,
    }
}

/// What may wait at each router.
fn limit(set: &Set) -> Limit {
    let packets = set.network.buffer;
    // The queue counts what waits; the packet in service has left it.
    Limit::packets(packets - u32::from(set.network.service == Service::Within))
}
