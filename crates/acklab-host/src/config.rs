//! What a connection is set up with, for the host of `acklab-host`: a TCP [`Config`] as system controls, route and
//! socket options, as an administrator would say it to Linux.

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::options::{Conflict, Options};
use acklab_core::time::Span;
use acklab_tcp::{Config, CwndUnit, KeepAlive, LossRecovery, Nagle, Rto, Stack};

use crate::asking::Asking;
use crate::connection::Setup;
use crate::settings::CONGESTION_CONTROLS;

/// Refuses what [`Stack::Segments`] cannot carry; anything else is let be.
pub fn check(config: &Config) -> Result<(), Conflict> {
    if config.stack == Stack::Segments { setup(config).map(drop) } else { Ok(()) }
}

/// The host and socket that `config` describes, or what of it Linux does not have.
pub fn setup(config: &Config) -> Result<Setup, Conflict> {
    let linux = Config::segments();
    if config.window.unit != CwndUnit::Segments || !config.rto.min_on_variance {
        return Err(Conflict { name: "stack", reason: "segments is Linux's alone".to_owned() });
    }
    let control = control(config);
    let own = control.is_none();
    let selective = match config.loss.recovery {
        LossRecovery::Rack => true,
        LossRecovery::NewReno => false,
        LossRecovery::Sack => {
            return Err(conflict("recovery", "Linux has no RFC 6675 since 6.17; rack is its own"));
        }
        LossRecovery::Reno => {
            return Err(conflict(
                "recovery",
                "Linux without SACK has newreno, not RFC 5681's alone",
            ));
        }
    };
    if config.nagle == Nagle::Bsd {
        return Err(conflict("nagle", "Linux has minshall, and is told off or classic"));
    }
    refuse_others(config, &linux)?;
    let policy = policy(config, &linux);
    let mut setup = Setup {
        control,
        policy,
        asking: Asking::new(config.announced_requests()),
        nodelay: config.nagle == Nagle::Off,
        classic_nagle: config.nagle == Nagle::Classic,
        initial_rto: config.rto.initial.as_nanos().div_ceil(1000),
        ..Setup::default()
    };
    let mut set = |name: &str, value: &str| {
        let taken = setup.sysctls.set(name, value);
        debug_assert!(taken.is_ok(), "{name} = {value}");
    };
    let flag = |on: bool| if on { "1" } else { "0" };
    if own {
        set("tcp_congestion_control", config.congestion.name());
    }
    set("tcp_sack", flag(selective));
    set("tcp_timestamps", flag(config.timestamps));
    set("tcp_window_scaling", flag(config.window_scale.is_some()));
    set("tcp_ecn", flag(config.ecn));
    set("tcp_slow_start_after_idle", flag(config.window.idle_restart));
    let millis = config.rto.max.as_nanos().div_ceil(1_000_000);
    for (name, value) in [
        ("tcp_reordering", u64::from(config.loss.dup_thresh)),
        ("tcp_rto_max_ms", millis),
        ("tcp_retries2", config.patience.retries.into()),
        ("tcp_syn_retries", config.patience.syn_retries.into()),
        ("tcp_synack_retries", config.patience.syn_ack_retries.into()),
    ] {
        set(name, &value.to_string());
    }
    if let Some(KeepAlive { idle, interval, probes }) = config.patience.keep_alive {
        setup.keep_alive = true;
        let seconds = |span: Span| span.as_nanos().div_ceil(1_000_000_000).to_string();
        set("tcp_keepalive_time", &seconds(idle));
        set("tcp_keepalive_intvl", &seconds(interval));
        set("tcp_keepalive_probes", &probes.to_string());
    }
    let mss = u32::from(config.mss);
    // Whatever is asked for is announced: by default 256 at the least.
    set("min_adv_mss", &mss.min(256).to_string());
    let route = &mut setup.route;
    route.device_mtu = mss + HEADERS;
    route.initcwnd = (config.window.initial.bytes(mss) / u64::from(mss)) as u32;
    route.ssthresh =
        config.window.ssthresh.map_or(0, |bytes| (bytes / u64::from(mss)).max(2) as u32);
    route.rto_min = config.rto.min.as_nanos().div_ceil(1000);
    let other = |own: u32, usual: u32| (own != usual).then_some(own);
    setup.send_buffer = other(config.send_buffer, linux.send_buffer);
    setup.receive_window = other(config.receive_buffer, linux.receive_buffer);
    Ok(setup)
}

/// The congestion control where it is not one of the kernel's own as it stands: of the simulations, behind the host's
/// window.
fn control(config: &Config) -> Option<Algorithm> {
    let algorithm = &config.congestion;
    let name = algorithm.name();
    let plain = |congestion| is_same(&Config { congestion, ..config.clone() }, config);
    if name.parse().is_ok_and(plain) && CONGESTION_CONTROLS.contains(&name) {
        return None;
    }
    Some(algorithm.clone())
}

/// The ACK policy and the phase of its tick where it is not the kernel's own.
fn policy(config: &Config, linux: &Config) -> Option<(Profile, f64)> {
    let own = Config { ack: linux.ack.clone(), ..config.clone() };
    (!is_same(&own, config)).then(|| (config.ack.clone(), config.ack_phase))
}

/// Whether two are set up alike in all that can be set.
fn is_same(one: &Config, other: &Config) -> bool {
    let values = |config: &Config| {
        config.list().into_iter().map(|it| (it.name, it.default)).collect::<Vec<_>>()
    };
    values(one) == values(other)
}

/// Refuses whatever else differs from Linux's own: it could not be heard.
fn refuse_others(config: &Config, linux: &Config) -> Result<(), Conflict> {
    let expressed = Config {
        mss: config.mss,
        send_buffer: config.send_buffer,
        receive_buffer: config.receive_buffer,
        ecn: config.ecn,
        timestamps: config.timestamps,
        nagle: config.nagle,
        ack: config.ack.clone(),
        ack_phase: config.ack_phase,
        window: config.window,
        loss: config.loss,
        patience: config.patience,
        ack_requests: config.ack_requests,
        ..linux.clone()
    };
    let Rto { initial, min, max, .. } = config.rto;
    let mut expressed = Config { congestion: config.congestion.clone(), ..expressed };
    expressed.rto = Rto { initial, min, max, ..expressed.rto };
    let (own, heard) = (config.list(), expressed.list());
    let kernels = |name: &str| heard.iter().find(|one| one.name == name).map(|one| &one.default);
    match own.iter().find(|one| kernels(one.name) != Some(&one.default)) {
        Some(one) => {
            let kernels = kernels(one.name).map_or_else(String::new, |it| format!(", {it}"));
            let reason = format!("{} cannot be set: it is the kernel's own{kernels}", one.default);
            Err(conflict(one.name, &reason))
        }
        None => Ok(()),
    }
}

/// What is refused is in the other TCP.
fn conflict(name: &'static str, reason: &str) -> Conflict {
    Conflict { name, reason: format!("{reason} (stack = stream has it)") }
}

/// IPv4 and TCP headers without options, bytes.
const HEADERS: u32 = 40;

#[cfg(test)]
mod tests {
    use acklab_core::cc::Algorithm;
    use acklab_core::options::Value;
    use acklab_core::time::Span;

    use super::*;

    #[test]
    fn what_linux_can_be_told_becomes_its_controls() {
        let mut config = Config::segments();
        config.congestion = Algorithm::Reno;
        config.mss = 1000;
        config.nagle = Nagle::Off;
        config.window.ssthresh = Some(50_000);
        config.rto.min = Span::from_millis(30);
        config.rto.initial = Span::from_secs(3);
        config.loss.recovery = LossRecovery::NewReno;
        let setup = setup(&config).unwrap();
        assert_eq!(setup.sysctls.congestion_control(), "reno");
        assert_eq!((setup.sysctls.of("tcp_sack"), setup.nodelay), (0, true));
        let route = setup.route;
        assert_eq!((route.device_mtu, route.ssthresh, route.rto_min), (1040, 50, 30_000));
        assert_eq!((setup.send_buffer, setup.receive_window), (None, None));
        assert_eq!(setup.initial_rto, 3_000_000);
    }

    #[test]
    fn what_it_cannot_is_refused_by_its_name() {
        let check = |name: &'static str, value: Value| {
            let mut config = Config::segments();
            assert!(config.set(name, value));
            super::check(&config).unwrap_err().name
        };
        assert_eq!(check("recovery", Value::Choice("sack")), "recovery");
        assert_eq!(check("nagle", Value::Choice("bsd")), "nagle");
        assert!(super::check(&acklab_tcp::System::Qnx70.config()).is_ok());
    }
}
