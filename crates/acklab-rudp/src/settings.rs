//! What of a connection's parameters a user may set by name: those of [`Config`], then the options of its congestion
//! control, of its ACK policy, and how rare the ACKs are that it asks for.
//!
//! `cc` and `ack` replace the options of the one before by the defaults of the new one, so they are set before
//! their options.

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::options::{Conflict, Kind, Options, Parameter, Typed, Value, count, joined};

use crate::config::Config;

/// The name of the policy that does as the sender asks.
const ASKED: &str = "asked";
const ACKS: [&str; Profile::NAMES.len() + 1] = joined("", &[&[ASKED], Profile::NAMES]);

impl Config {
    /// The options of the parts that were chosen, last those of what is asked for.
    fn groups(&mut self) -> impl Iterator<Item = &mut dyn Options> {
        let Self { algorithm, ack, asks, .. } = self;
        let ack = ack.as_mut().and_then(Profile::options);
        [algorithm.options(), ack, Some(asks as &mut dyn Options)].into_iter().flatten()
    }
}

impl Options for Config {
    fn list(&self) -> Vec<Parameter<Value>> {
        let one = |name, kind, default, doc| Parameter { name, kind, default, doc };
        let ack = self.ack.as_ref().map_or(Value::Choice(ASKED), Typed::to_value);
        let window = Value::Count(self.initial_window.into());
        let batch = Value::Count(self.batch as u64);
        let mut list = vec![
            one(
                "cc",
                Algorithm::KIND,
                self.algorithm.to_value(),
                "Congestion control of each path.",
            ),
            one(
                "ack",
                Kind::Choice(&ACKS),
                ack,
                "When this end acknowledges; asked: as the peer asks.",
            ),
            one("ecn", bool::KIND, self.ecn.to_value(), "ECN marks on paths that pass them."),
            one("iw", count(1, 1000), window, "Initial window of each path, packets."),
            one("batch", count(1, 64), batch, "Datagrams that leave together, at most."),
        ];
        list.extend(self.clone().groups().flat_map(|options| options.list()));
        list
    }

    fn set(&mut self, name: &str, value: Value) -> bool {
        let set = match name {
            "cc" => Algorithm::from_value(value).map(|cc| self.algorithm = cc),
            "ack" => match value {
                Value::Choice(ASKED) => Some(None),
                value => Profile::from_value(value).map(Some),
            }
            .map(|ack| self.ack = ack),
            "ecn" => bool::from_value(value).map(|ecn| self.ecn = ecn),
            "iw" => u32::from_value(value).map(|iw| self.initial_window = iw),
            "batch" => u32::from_value(value).map(|batch| self.batch = batch as usize),
            _ => return self.groups().any(|options| options.set(name, value)),
        };
        set.is_some()
    }

    fn check(&self) -> Result<(), Conflict> {
        self.clone().groups().try_for_each(|options| options.check())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_reads_back_as_it_is_shown_and_every_policy_can_be_chosen() {
        for ack in ACKS {
            let mut config = Config::default();
            assert!(config.set("ack", Value::Choice(ack)), "{ack}");
            for Parameter { name, kind, default, .. } in config.list() {
                let value = kind.parse(&default.to_string());
                let value = value.unwrap_or_else(|e| panic!("{ack}: {name} = {default}: {e}"));
                assert!(config.set(name, value), "{ack}: {name}");
            }
            config.check().unwrap();
        }
    }

    #[test]
    fn options_follow_the_choice_of_their_policy() {
        let mut config = Config::default();
        assert!(!config.set("segments", Value::Count(16)));
        assert!(config.set("ack", Value::Choice("delayed")));
        assert!(config.set("segments", Value::Count(16)));
        assert!(config.set("ask_most", Value::Count(1)));
        assert_eq!(config.asks.ask_most, 1);
        assert!(config.set("ack", Value::Choice("asked")) && config.ack.is_none());
        assert!(!config.set("iw", Value::Flag(true)));
    }
}
