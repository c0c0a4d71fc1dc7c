//! What of a connection's parameters a user may set by name, over the defaults of a system: those of
//! [`Config`], then the options of its congestion control, then those of its ACK policy.
//!
//! `cc` and `ack` replace the options of the one before by the defaults of the new one, so they are set
//! before their options.

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::options::{
    Conflict, Kind, Options, Parameter, Typed, Value, count, positive_span,
};
use acklab_core::time::Span;

use crate::ack_requests::AckRequests;
use crate::config::{Config, InitialWindow, LossRecovery, Stack};
use crate::nagle::Nagle;

/// A parameter, and how it is read and written.
struct Setting {
    name: &'static str,
    kind: Kind,
    doc: &'static str,
    value: fn(&Config) -> Value,
    set: fn(&mut Config, Value) -> Option<()>,
}

/// One line each: documentation, name, type, what is allowed where the type does not say, field.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $Type:ty $(as $kind:ident($($bound:expr),*))? => $first:ident $(.$rest:ident)*
            $(, then $then:path)?;
    )+) => {
        const SETTINGS: &[Setting] = &[$(
            Setting {
                name: stringify!($name),
                kind: acklab_core::first!(
                    $($kind($($bound),*),)?
                    <$Type as Typed>::KIND
                ),
                doc: concat!($($doc),*).trim_ascii_start(),
                value: |config| <$Type as Typed>::to_value(&config.$first$(.$rest)*),
                set: |config, value| {
                    config.$first$(.$rest)* = <$Type as Typed>::from_value(value)?;
                    $($then(config);)?
                    Some(())
                },
            },
        )+];
    };
}

settings! {
    /// Which TCP carries it: segments is Linux's, of acklab-host; stream is acklab-tcp, which has every system's habits.
    stack: Stack => stack;
    /// Largest payload of a segment, bytes; what the device or the path carries may be less.
    mss: u16 as count(48, 65_495) => mss;
    /// Congestion control.
    cc: Algorithm => congestion, then agree_on_marks;
    /// Negotiate ECN (RFC 3168).
    ecn: bool => ecn;
    /// When to acknowledge.
    ack: Profile => ack;
    /// How the sender asks for ACKs, if both ends are set so and `ack` honours it.
    ack_requests: AckRequests => ack_requests;
    /// When a small segment is held back; off is TCP_NODELAY.
    nagle: Nagle => nagle;
    /// Offer timestamps (RFC 7323).
    timestamps: bool => timestamps;
    /// How lost data is found; SACK is offered with `sack` and `rack`.
    recovery: LossRecovery => loss.recovery;
    /// Duplicate ACKs that mean loss.
    dup_thresh: u32 as count(1, 1000) => loss.dup_thresh;
    /// Initial congestion window, segments.
    iw: InitialWindow => window.initial;
    /// Initial slow-start threshold, bytes; 0: none.
    ssthresh: Option<u64> => window.ssthresh;
    /// Begin anew with the initial window after an idle time-out.
    idle_restart: bool => window.idle_restart;
    /// Bytes written and not acknowledged.
    send_buffer: u32 as count(1000, MOST_BUFFER) => send_buffer;
    /// Bytes that may wait to be read: the largest window announced.
    receive_buffer: u32 as count(1000, MOST_BUFFER) => receive_buffer, then fix_buffer;
    /// Least retransmission time-out.
    min_rto: Span as positive_span() => rto.min;
    /// Greatest retransmission time-out.
    max_rto: Span as positive_span() => rto.max;
    /// Retransmission time-out before the first measurement.
    initial_rto: Span as positive_span() => rto.initial;
    /// Retransmissions of a segment before the connection is given up.
    retries: u32 as count(1, 100) => patience.retries;
    /// The same of a SYN.
    syn_retries: u32 as count(1, 100) => patience.syn_retries;
}

/// A count of segments; what an RFC defines in bytes shows as segments of 1460.
impl Typed for InitialWindow {
    const KIND: Kind = count(1, 1000);

    fn from_value(value: Value) -> Option<Self> {
        u32::from_value(value).map(Self::Segments)
    }

    fn to_value(&self) -> Value {
        Value::Count(self.bytes(1460) / 1460)
    }
}

/// A congestion control that needs marks gets them.
fn agree_on_marks(config: &mut Config) {
    config.ecn |= config.congestion.needs_marks();
}

/// The window scale lets the whole buffer be announced, where scaling is offered, and nothing tunes it.
fn fix_buffer(config: &mut Config) {
    // SO_RCVBUF ends the tuning (socket(7)).
    config.receive_tuning = false;
    let needed = |shift: &u8| u16::try_from(config.receive_buffer >> shift).is_ok();
    let needed = (0..14).find(needed).unwrap_or(14);
    config.window_scale = config.window_scale.map(|scale| scale.max(needed));
}

impl Options for Config {
    fn list(&self) -> Vec<Parameter<Value>> {
        let own = |Setting { name, kind, doc, value, .. }: &Setting| Parameter {
            name,
            kind: *kind,
            default: value(self),
            doc,
        };
        let mut list: Vec<_> = SETTINGS.iter().map(own).collect();
        let (mut congestion, mut ack) = (self.congestion.clone(), self.ack.clone());
        let groups = [congestion.options(), ack.options()];
        list.extend(groups.into_iter().flatten().flat_map(|options| options.list()));
        list
    }

    fn set(&mut self, name: &str, value: Value) -> bool {
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) {
            return (setting.set)(self, value).is_some();
        }
        let groups = [self.congestion.options(), self.ack.options()];
        groups.into_iter().flatten().any(|options| options.set(name, value))
    }

    fn check(&self) -> Result<(), Conflict> {
        let (mut congestion, mut ack) = (self.congestion.clone(), self.ack.clone());
        let groups = [congestion.options(), ack.options()];
        groups.into_iter().flatten().try_for_each(|options| options.check())?;
        self.check_requests()?;
        if self.rto.min > self.rto.max {
            let reason = format!("must be at most max_rto, {}", self.rto.max);
            return Err(Conflict { name: "min_rto", reason });
        }
        Ok(())
    }
}

/// 1 GiB less one, what a window scale of 14 can say.
const MOST_BUFFER: u64 = (1 << 30) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::System;
    use acklab_core::options::Word;

    #[test]
    fn every_setting_of_every_system_reads_back_as_it_is_shown() {
        for system in System::ALL {
            let mut config = system.config();
            for Parameter { name, kind, default, .. } in config.list() {
                let value = kind.parse(&default.to_string());
                let value = value.unwrap_or_else(|e| panic!("{system}: {name} = {default}: {e}"));
                assert!(config.set(name, value), "{system}: {name}");
            }
            let names: Vec<_> = config.list().iter().map(|one| one.name).collect();
            assert!((1..names.len()).all(|at| !names[at..].contains(&names[at - 1])), "{names:?}");
            config.check().unwrap();
        }
    }

    #[test]
    fn options_of_the_chosen_control_and_policy_follow_their_choice() {
        let mut config = System::Linux.config();
        assert!(!config.set("delay", Value::Span(Span::from_millis(7))));
        assert!(config.set("ack", Value::Choice("delayed")));
        assert!(config.set("delay", Value::Span(Span::from_millis(7))));
        assert!(config.set("cc", Value::Choice("dctcp")) && config.ecn);
        assert!(!config.set("mss", Value::Flag(true)));
        assert!(config.set("receive_buffer", Value::Count(64 << 20)));
        assert_eq!(config.window_scale, Some(11));
        assert!(config.set("max_rto", Value::Span(Span::from_millis(1))));
        assert_eq!(config.check().unwrap_err().name, "min_rto");
    }
}
