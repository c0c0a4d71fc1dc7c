//! Queueing disciplines and congestion controls as the settings describe them.

use acklab_core::cc::{Algorithm, Factory, ance, balance, encn as encn_sender};
use acklab_core::queue::ecn::{Ect, NotEct, Treatment};
use acklab_core::queue::{Discipline, Limit, codel, encn, jersey, pie, red, threshold};

use super::echo::EachAck;
use acklab_lab::parameter::Settings;

/// The congestion control of every flow.
pub(super) fn congestion_control(settings: &Settings) -> Algorithm {
    match settings.choice("cc") {
        "ance" => Algorithm::Ance(ance::Options {
            queue_min: qmin_bytes(settings),
            bandwidth: match settings.choice("ance_bandwidth") {
                "true" => ance::Bandwidth::Oracle(settings.rate("rate")),
                _ => ance::Bandwidth::Estimated,
            },
            spacing: match settings.choice("ance_spacing") {
                "second-smallest" => ance::Spacing::SecondSmallest,
                "per-round-trip" => ance::Spacing::PerRoundTrip,
                _ => ance::Spacing::Smallest,
            },
            equation2: match settings.choice("ance_equation_2") {
                "literal" => ance::Equation2::Literal,
                "ack-length" => ance::Equation2::AckLength,
                _ => ance::Equation2::Corrected,
            },
            window: window(settings, balance::SlowStart::Algorithm1),
            ..ance::Options::default()
        }),
        "encn" => Algorithm::Encn(encn_sender::Options {
            window: window(settings, balance::SlowStart::Prose),
        }),
        "reno" if settings.choice("ecn_echo") == "each-ack" => {
            Algorithm::Custom(Factory::new(|start| Box::new(EachAck::new(start))))
        }
        name => name.parse().expect("a declared congestion control"),
    }
}

/// The window rule that ANCE and ENCN share.
fn window(settings: &Settings, auto: balance::SlowStart) -> balance::Options {
    balance::Options {
        slow_start: match settings.choice("slow_start") {
            "algorithm-1" => balance::SlowStart::Algorithm1,
            "prose" => balance::SlowStart::Prose,
            _ => auto,
        },
        bf_floor: settings.number("bf_floor"),
        rwnd: settings.count("rwnd") as u32,
        ..balance::Options::default()
    }
}

/// Qmin in bytes on the wire.
fn qmin_bytes(settings: &Settings) -> u64 {
    (settings.number("qmin") * settings.count("packet") as f64) as u64
}

/// The bottleneck's queue.
pub(super) fn discipline(settings: &Settings) -> Discipline {
    let limit = limit(settings);
    let discipline = match settings.choice("queue") {
        "drop-tail" => return Discipline::drop_tail(limit),
        "red" => Discipline::Red(red(settings)),
        "codel" => Discipline::Codel(codel::Config {
            target: settings.span("codel_target"),
            interval: settings.span("codel_interval"),
            variant: match settings.choice("codel") {
                "rfc8289" => codel::Variant::Rfc8289,
                _ => codel::Variant::Article2012,
            },
            ..codel::Config::packets(limit.packets)
        }),
        "pie" => Discipline::Pie(pie(settings, limit.packets)),
        "encn" => Discipline::Encn(encn::Config {
            q_min: settings.number("qmin"),
            ..encn::Config::packets(limit.packets)
        }),
        "jersey" => Discipline::Jersey(jersey::Config {
            threshold: settings.number("jersey_threshold"),
            ..jersey::Config::packets(limit.packets)
        }),
        "edctcp" => Discipline::Edctcp(threshold(settings, limit.packets)),
        "threshold" => Discipline::Threshold(threshold(settings, limit.packets)),
        name => Discipline::by_name(name, limit.packets).expect("a declared discipline"),
    };
    discipline.with_limit(limit).with_ecn(treatment(settings))
}

fn red(settings: &Settings) -> red::Config {
    let above = settings.choice("red_above");
    red::Config {
        min_threshold: settings.number("red_min"),
        max_threshold: settings.number("red_max"),
        max_probability: settings.number("red_pmax"),
        weight: settings.number("red_weight"),
        mean_packet: settings.count("packet") as u32,
        spacing: match settings.choice("red_count") {
            "uniform" => red::Spacing::Uniform,
            _ => red::Spacing::Geometric,
        },
        above_max: if above == "drop" { red::AboveMax::Drop } else { red::AboveMax::Mark },
        gentle: above == "gentle",
        ..red::Config::packets(u32::MAX)
    }
}

fn pie(settings: &Settings, packets: u32) -> pie::Config {
    let variant = match settings.choice("pie") {
        "hpsr2013" => pie::Config::hpsr_2013(packets),
        _ => pie::Config::packets(packets),
    };
    pie::Config {
        target: settings.span("pie_target"),
        mean_packet: settings.count("packet") as u32,
        delay: match settings.choice("pie_rate") {
            "measured" => pie::Delay::Departures { threshold: 16_384 },
            _ => pie::Delay::KnownRate,
        },
        ..variant
    }
}

fn threshold(settings: &Settings, packets: u32) -> threshold::Config {
    threshold::Config {
        threshold: settings.count("dctcp_k") as f64,
        ..threshold::Config::packets(packets)
    }
}

/// What happens to packets that a discipline chooses. Without a control loop there is nothing to
/// exempt but bare ACKs.
fn treatment(settings: &Settings) -> Treatment {
    let exempt = !settings.has("ncs_early") || settings.choice("ncs_early") == "exempt";
    Treatment {
        ect: if settings.choice("ecn") == "on" { Ect::Mark } else { Ect::Drop },
        not_ect: if exempt && settings.choice("ecn") == "on" {
            NotEct::Exempt
        } else {
            NotEct::Drop
        },
    }
}

/// What may wait at each router.
fn limit(settings: &Settings) -> Limit {
    let packets = settings.count("buffer") as u32;
    // The queue counts what waits; the packet in service has left it.
    Limit::packets(if settings.choice("service") == "within" { packets - 1 } else { packets })
}
